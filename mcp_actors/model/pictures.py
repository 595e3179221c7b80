"""Owns the doorway of Pillow: one picture made small enough for a model.

What this is not: the choice of what is too large (`tools.blocks`), or a thread; decoding takes time, so call it in one.

Rule 1: a picture is hostile. Its head was read before (`tools.images`), Pillow's own guard against bombs stays on, only
the formats that models take are decoded, and whatever goes wrong means None: then the picture is saved instead (S214).
"""

from __future__ import annotations

import io
import warnings
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from PIL.Image import Image

__all__ = ["shrink_picture"]

# Decoders that are let near a picture.
FORMATS: Final = ("PNG", "JPEG", "GIF", "WEBP")
# Tried in turn until the picture fits: qualities of JPEG, then smaller edges.
QUALITIES: Final = (85, 70, 50)
SMALLER: Final = (1.0, 0.7, 0.5)


def shrink_picture(data: bytes, mime: str, max_edge: int, max_bytes: int, /) -> tuple[bytes, str] | None:
    """Make a picture smaller. Blocking; the shape of `tools.plans.Shrink`.

    Args:
        data: PNG, JPEG, GIF or WebP; of a moving picture the first frame is taken.
        mime: its media type.
        max_edge: pixels that no side may exceed.
        max_bytes: bytes that the result may have.

    Returns:
        The picture and its media type; None when Pillow is not installed (the ``images`` extra), or cannot do it.

    Source:
        S214, S215.
    """
    try:
        from PIL import Image
    except ImportError:
        return None
    try:
        with warnings.catch_warnings():
            # A decompression bomb is only a warning to Pillow until it is twice as large.
            warnings.simplefilter("error")
            with Image.open(io.BytesIO(data), formats=FORMATS) as opened:
                opened.seek(0)
                has_alpha = "A" in opened.getbands() or "transparency" in opened.info
                picture = opened.convert("RGBA" if has_alpha else "RGB")
        for factor in SMALLER:
            edge = max(1, int(max_edge * factor))
            picture.thumbnail((edge, edge))
            small = _encode(picture, mime, max_bytes, has_alpha=has_alpha)
            if small is not None:
                return small
    except Exception:  # noqa: BLE001 - a decoder of foreign bytes raises whatever it likes; all of it means None
        return None
    return None


def _encode(picture: Image, mime: str, max_bytes: int, *, has_alpha: bool) -> tuple[bytes, str] | None:
    """Write it as what loses least and fits: PNG for drawings and what is transparent, else JPEG."""
    if has_alpha or mime in ("image/png", "image/gif"):
        out = io.BytesIO()
        picture.save(out, "PNG", optimize=True)
        if out.tell() <= max_bytes:
            return out.getvalue(), "image/png"
    if has_alpha:
        return None
    for quality in QUALITIES:
        out = io.BytesIO()
        picture.save(out, "JPEG", quality=quality)
        if out.tell() <= max_bytes:
            return out.getvalue(), "image/jpeg"
    return None
