"""Owns whether a model can take a picture, and roughly what it costs.

What this is not: the reading of pictures (`images`), making them smaller (a door's `Shrink`), or where they go in a
result (`blocks`).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from attrs import field

from mcp_actors.tools.images import MODEL_IMAGES, read_picture, sniff_mime
from mcp_actors.tools.plans import ModelImage
from mcp_actors.values import frozen

if TYPE_CHECKING:
    from mcp_actors.tools.images import Picture
    from mcp_actors.tools.plans import Shrink

__all__ = ["CorruptPicture", "FiledPicture", "ShownPicture", "judge_picture"]

# What models take (S214). The limit of 5 MB is on the encoded form, which is a third longer.
MAX_IMAGE_EDGE: Final = 8_000
GOOD_IMAGE_EDGE: Final = 1_568
MAX_IMAGE_BYTES: Final = 5 * 1024 * 1024 * 3 // 4
# More than this, unpacked, is not worth a try: 400 MB.
MAX_SHRUNK_PIXELS: Final = 100_000_000
# Roughly what a picture costs: an area in pixels by this, and a picture of the good size.
PIXELS_PER_TOKEN: Final = 750
MAX_IMAGE_TOKENS: Final = 1_600


@frozen
class ShownPicture:
    """One that a model gets, and what it costs in tokens."""

    image: ModelImage
    tokens: int


@frozen
class FiledPicture:
    """One that no model takes: to be saved under this label."""

    data: bytes = field(repr=False)
    mime: str
    label: str


@frozen
class CorruptPicture:
    """One that claims, or begins, to be what a model takes, and cannot be read."""


def judge_picture(data: bytes, mime: str, shrink: Shrink | None) -> ShownPicture | FiledPicture | CorruptPicture:
    """Judge the data of a picture, which are not empty.

    Args:
        data: decoded.
        mime: what the server says that it is.
        shrink: makes large pictures smaller; None: nothing does.

    Source:
        S214, S222.
    """
    picture, found = read_picture(data), sniff_mime(data)
    if picture is None:
        if mime in MODEL_IMAGES or found in MODEL_IMAGES:
            return CorruptPicture()
        return FiledPicture(data, mime if found is None else found, f"image ({found or mime})")
    if picture.long_edge > GOOD_IMAGE_EDGE or len(data) > MAX_IMAGE_BYTES:
        data, picture = _shrunk(data, picture, shrink)
    if picture.long_edge > MAX_IMAGE_EDGE or len(data) > MAX_IMAGE_BYTES:
        label = f"image ({picture.mime}, {picture.width}x{picture.height}), too large to be shown"
        return FiledPicture(data, picture.mime, label)
    area = math.ceil(picture.width * picture.height / PIXELS_PER_TOKEN)
    return ShownPicture(ModelImage(data, picture.mime), min(area, MAX_IMAGE_TOKENS))


def _shrunk(data: bytes, picture: Picture, shrink: Shrink | None) -> tuple[bytes, Picture]:
    """Shrink a picture where the door can; what it gives is looked at, too."""
    if shrink is None or picture.width * picture.height > MAX_SHRUNK_PIXELS:
        return data, picture
    smaller = shrink(data, picture.mime, GOOD_IMAGE_EDGE, MAX_IMAGE_BYTES)
    again = None if smaller is None else read_picture(smaller[0])
    return (data, picture) if smaller is None or again is None else (smaller[0], again)
