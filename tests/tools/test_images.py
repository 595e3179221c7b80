"""What the first bytes of a file say."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_actors.tools.images import extension_of, read_picture, sniff_mime

PNG = b"\x89PNG\r\n\x1a\n" + struct.pack(">I4sII", 13, b"IHDR", 300, 200) + b"\x08" * 9 + b"\0\0\0\0IEND\xaeB`\x82"
JPEG = b"\xff\xd8\xff\xe0\x00\x04ab\xff\xff\xc2\x00\x0b\x08" + struct.pack(">HH", 200, 300) + b"rest"
GIF = b"GIF89a" + struct.pack("<HH", 300, 200) + b"\0\0\0;"
WEBP_X = b"RIFF....WEBPVP8X" + b"\0" * 8 + (299).to_bytes(3, "little") + (199).to_bytes(3, "little")
WEBP_L = b"RIFF....WEBPVP8L....\x2f" + struct.pack("<I", 299 | 199 << 14)
WEBP = b"RIFF....WEBPVP8 ....abc\x9d\x01\x2a" + struct.pack("<HH", 300, 200)


@pytest.mark.parametrize(
    ("data", "mime"),
    [(PNG, "png"), (JPEG, "jpeg"), (GIF, "gif"), (WEBP_X, "webp"), (WEBP_L, "webp"), (WEBP, "webp")],
)
def test_pictures(data: bytes, mime: str) -> None:
    """Type and size are read from the head (S214)."""
    assert read_picture(data) == (f"image/{mime}", 300, 200)


@pytest.mark.parametrize("data", [PNG, JPEG, GIF, WEBP_X, WEBP_L, WEBP])
def test_a_picture_cut_anywhere(data: bytes) -> None:
    """Whatever is cut off, nothing raises; and no head, no picture (S215)."""
    assert [read_picture(data[:length]) for length in range(12)] == [None] * 12
    for length in range(len(data)):
        read_picture(data[:length])


@given(st.sampled_from([PNG[:8], JPEG[:3], GIF[:6], WEBP_X[:16], WEBP_L[:16], b""]), st.binary(max_size=80))
def test_any_bytes(head: bytes, rest: bytes) -> None:
    """Whatever follows a known head, the answer is a picture with a size, or none."""
    picture = read_picture(head + rest)

    assert picture is None or min(picture.width, picture.height) > 0


@pytest.mark.parametrize(
    ("data", "mime"),
    [
        (b"%PDF-1.7", "application/pdf"),
        (b"RIFF....WAVE", "audio/wav"),
        (b"....ftypavif", "image/avif"),
        (b"<svg/>", None),
        (b"", None),
    ],
)
def test_other_files(data: bytes, mime: str | None) -> None:
    """Other types are told by their first bytes, or not at all."""
    assert sniff_mime(data) == mime


@pytest.mark.parametrize(
    ("mime", "extension"), [("image/JPEG", "jpg"), ("text/plain;charset=utf-8", "txt"), ("x/../../y", "bin")]
)
def test_extensions(mime: str, extension: str) -> None:
    """Extensions come from a table (S218)."""
    assert extension_of(mime) == extension
