"""Owns the proof key of an authorization request (RFC 7636), S256 only. Pure.

What this is not: the check that the server supports it (`flow`).
"""

from __future__ import annotations

import base64
import hashlib
from typing import TYPE_CHECKING

from attrs import field

from mcp_actors.values import frozen

if TYPE_CHECKING:
    from mcp_actors.auth.messages import Sources

__all__ = ["Pkce", "b64url", "make_pkce"]


@frozen
class Pkce:
    """A secret, and what is told of it beforehand."""

    verifier: str = field(repr=False)
    challenge: str


def b64url(data: bytes) -> str:
    """Base64 for URLs, without padding."""
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def make_pkce(sources: Sources) -> Pkce:
    """Make a new one: 64 bytes of entropy are 86 characters, within 43-128 as the rule asks.

    Source:
        RFC 7636, sections 4.1 and 4.2; D05, S243.
    """
    verifier = sources.token(64)
    return Pkce(verifier, b64url(hashlib.sha256(verifier.encode()).digest()))
