"""Owns the close codes of a WebSocket: those that we send, and what an ended connection is said to have ended of.

What this is not: whether a connection has ended (`websocket`).
"""

from __future__ import annotations

from typing import Final

from mcp_actors.shown import one_line

__all__ = ["ABNORMAL", "NORMAL", "UNSUPPORTED_DATA", "describe_close"]

# RFC 6455, 7.4.1.
NORMAL: Final = 1000
UNSUPPORTED_DATA: Final = 1003
# Nothing was said.
ABNORMAL: Final = 1006
TOO_BIG: Final = 1009
# These are mostly our own words about what the server sent.
FAULT_CODES: Final = frozenset({1002, 1007})
# With which the library says that a message is beyond the bound that we gave it.
TOO_BIG_WORDS: Final = "Exceeded maximum message size"


def describe_close(code: int, name: str, words: str, *, max_bytes: int) -> str:
    """Say why a connection ended.

    Args:
        code: with which it was closed.
        name: of the code.
        words: what was said with it; a stranger's.
        max_bytes: the bound of a message.
    """
    if code == ABNORMAL:
        return "the connection ended without a word"
    if code == TOO_BIG and words.startswith(TOO_BIG_WORDS):
        return f"message larger than {max_bytes} bytes"
    who = "the connection was closed" if code in FAULT_CODES else "the server closed the connection"
    text = f"{who}: {code} {name}"
    return f"{text}: {one_line(words)}" if words else text
