"""Owns ``python -m mcp_actors.cli``, which is the command `mcp-actors`.

What this is not: the command itself (`cli.main`).
"""

from __future__ import annotations

import sys

from mcp_actors.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
