"""Owns base64: decoding what servers call it, and finding it where it does not belong, in text for a model.

What this is not: a judge of what the bytes are (`images`).

A megabyte of base64 is a third of a million tokens of noise. It reaches text as data URLs, as a picture's data repeated
in structured content, or as a whole file in one string (field note 44).
"""

from __future__ import annotations

import binascii
import re
from typing import TYPE_CHECKING, Final, NamedTuple

from mcp_actors.tools.images import MODEL_IMAGES, sniff_mime

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["MIN_RUN_CHARS", "Run", "decode_base64", "find_base64", "normal_base64"]

# Shorter runs are keys, hashes and tokens, and cost a model little.
MIN_RUN_CHARS: Final = 512
# Bytes in base64 use nearly all of its 64 signs; words, hex and sequences of genes do not.
MIN_SIGNS: Final = 40

# Types whose first bytes are long enough to be no accident.
BINARY_HEADS: Final = MODEL_IMAGES | {"application/pdf", "audio/wav"}

_RUN: Final = re.compile(
    r"(?:data:([a-zA-Z0-9!#$&^_.+-]+/[a-zA-Z0-9!#$&^_.+-]+)?(?:;[a-zA-Z0-9=_.-]+)*;base64,|(?<![A-Za-z0-9+/_-]))"
    rf"([A-Za-z0-9+/_-]{{{MIN_RUN_CHARS},}}={{0,2}})"
)
_BLANK: Final = re.compile(r"\s+")
_DATA_URL: Final = re.compile(r"data:[^,]{0,200};base64,")
_URL_SAFE: Final = str.maketrans("-_", "+/")


class Run(NamedTuple):
    """Base64 inside a text."""

    start: int
    end: int
    # Without the head of a data URL.
    encoded: str
    # Media type of a data URL; None elsewhere.
    mime: str | None
    is_likely: bool


def decode_base64(text: str) -> bytes | None:
    """Decode base64 as servers write it: with line ends, as a data URL, in the URL alphabet, without padding.

    Returns:
        None when it is no base64.
    """
    encoded = normal_base64(text)
    try:
        return binascii.a2b_base64(encoded + "=" * (-len(encoded) % 4), strict_mode=True)
    except (binascii.Error, ValueError):
        return None


def normal_base64(text: str) -> str:
    """Write base64 in one way, so that two spellings of the same data are equal."""
    head = _DATA_URL.match(text)
    return _BLANK.sub("", text[head.end() :] if head else text).translate(_URL_SAFE).rstrip("=")


def find_base64(text: str) -> Iterator[Run]:
    """Find long runs of the signs of base64 in a text, in order; `Run.is_likely` tells bytes from mere long words."""
    if len(text) < MIN_RUN_CHARS:
        return
    for match in _RUN.finditer(text):
        encoded = match[2]
        is_named = match.start(2) != match.start()
        yield Run(match.start(), match.end(), encoded, match[1], is_named or _looks_like_bytes(encoded))


def _looks_like_bytes(encoded: str) -> bool:
    head = decode_base64(encoded[:64])
    if head is not None and sniff_mime(head) in BINARY_HEADS:
        return True
    signs = set(encoded)
    return len(signs) >= MIN_SIGNS and all(
        any(test(sign) for sign in signs) for test in (str.isdigit, str.islower, str.isupper)
    )
