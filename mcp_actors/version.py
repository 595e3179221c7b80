"""Owns the version of this package: what is built, told to servers and printed.

What this is not: a revision of the protocol (`protocol.revisions`).
"""

from __future__ import annotations

__all__ = ["VERSION"]

VERSION = "0.1.0"  # the build reads this line
