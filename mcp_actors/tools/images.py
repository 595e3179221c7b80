"""Owns what the first bytes of a file say: its type, and how large a picture is.

What this is not: a decoder. Nothing is unpacked here, so that no picture can be a bomb; shrinking one is a door's work.

Source:
    PNG 3rd edition, 11.2.1; ITU-T T.81 (JPEG), B.2; GIF89a, 18; RFC 9649 (WebP).
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["EXTENSIONS", "MODEL_IMAGES", "Picture", "extension_of", "read_picture", "sniff_mime"]

_MAGIC: Final = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
    (b"%PDF-", "application/pdf"),
    (b"PK\x03\x04", "application/zip"),
    (b"\x1f\x8b", "application/gzip"),
    (b"OggS", "audio/ogg"),
    (b"fLaC", "audio/flac"),
    (b"ID3", "audio/mpeg"),
    (b"\x1aE\xdf\xa3", "video/webm"),
    (b"BM", "image/bmp"),
    (b"II*\x00", "image/tiff"),
    (b"MM\x00*", "image/tiff"),
)
# Types of pictures that models take (S214).
MODEL_IMAGES: Final = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
_RIFF: Final[Mapping[bytes, str]] = {b"WEBP": "image/webp", b"WAVE": "audio/wav"}

# Maps media type -> extension of a file that holds it.
EXTENSIONS: Final[Mapping[str, str]] = {
    "application/gzip": "gz",
    "application/json": "json",
    "application/msword": "doc",
    "application/octet-stream": "bin",
    "application/pdf": "pdf",
    "application/vnd.ms-excel": "xls",
    "application/vnd.openxmlformats-officedocument.presentationml.presentation": "pptx",
    "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet": "xlsx",
    "application/vnd.openxmlformats-officedocument.wordprocessingml.document": "docx",
    "application/xml": "xml",
    "application/zip": "zip",
    "audio/aac": "aac",
    "audio/flac": "flac",
    "audio/mp4": "m4a",
    "audio/mpeg": "mp3",
    "audio/ogg": "ogg",
    "audio/wav": "wav",
    "audio/webm": "weba",
    "audio/x-wav": "wav",
    "image/avif": "avif",
    "image/bmp": "bmp",
    "image/gif": "gif",
    "image/heic": "heic",
    "image/jpeg": "jpg",
    "image/png": "png",
    "image/svg+xml": "svg",
    "image/tiff": "tiff",
    "image/webp": "webp",
    "text/csv": "csv",
    "text/html": "html",
    "text/markdown": "md",
    "text/plain": "txt",
    "video/mp4": "mp4",
    "video/webm": "webm",
}


def extension_of(mime: str) -> str:
    """Give the extension for a media type, ``bin`` where it is unknown: a server never chooses it (S218)."""
    return EXTENSIONS.get(mime.partition(";")[0].strip().lower(), "bin")


def sniff_mime(data: bytes) -> str | None:
    """Tell the media type by the first bytes; None when they are of no known kind."""
    if data[:4] == b"RIFF":
        return _RIFF.get(data[8:12])
    if data[4:8] == b"ftyp":
        return {b"avif": "image/avif", b"heic": "image/heic", b"M4A ": "audio/mp4"}.get(data[8:12], "video/mp4")
    return next((mime for magic, mime in _MAGIC if data.startswith(magic)), None)


class Picture(NamedTuple):
    """What the head of a picture says."""

    mime: str
    width: int
    height: int

    @property
    def long_edge(self) -> int:
        """Pixels of the longer side."""
        return max(self.width, self.height)


def read_picture(data: bytes) -> Picture | None:
    """Read type and size of a PNG, JPEG, GIF or WebP; None when it is another type, cut short or corrupt (S215)."""
    mime = sniff_mime(data)
    reader = {"image/png": _png, "image/jpeg": _jpeg, "image/gif": _gif, "image/webp": _webp}.get(mime or "")
    if mime is None or reader is None:
        return None
    try:
        size = reader(data)
    except (struct.error, IndexError):
        return None
    return Picture(mime, *size) if size is not None and size[0] > 0 and size[1] > 0 else None


def _png(data: bytes) -> tuple[int, int] | None:
    # The last chunk must be there: a file that was cut short shows nothing or half a picture.
    if data[12:16] != b"IHDR" or b"IEND" not in data[-64:]:
        return None
    width, height = struct.unpack_from(">II", data, 16)
    return width, height


def _gif(data: bytes) -> tuple[int, int] | None:
    width, height = struct.unpack_from("<HH", data, 6)
    return (width, height) if len(data) > 13 else None


def _jpeg(data: bytes) -> tuple[int, int] | None:
    at = 2
    while at + 4 <= len(data):
        if data[at] != 0xFF:
            return None
        marker = data[at + 1]
        if marker == 0xFF:  # fill
            at += 1
            continue
        if marker in {0x01, *range(0xD0, 0xD9)}:
            at += 2
            continue
        (length,) = struct.unpack_from(">H", data, at + 2)
        if marker in {*range(0xC0, 0xD0)} - {0xC4, 0xC8, 0xCC}:
            height, width = struct.unpack_from(">HH", data, at + 5)
            return width, height
        if marker == 0xDA or length < 2:
            return None
        at += 2 + length
    return None


def _webp(data: bytes) -> tuple[int, int] | None:
    kind = data[12:16]
    if kind == b"VP8X":
        width = int.from_bytes(data[24:27], "little") + 1
        return (width, int.from_bytes(data[27:30], "little") + 1) if len(data) >= 30 else None
    if kind == b"VP8L" and data[20] == 0x2F:
        (bits,) = struct.unpack_from("<I", data, 21)
        return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    if kind == b"VP8 " and data[23:26] == b"\x9d\x01\x2a":
        width, height = struct.unpack_from("<HH", data, 26)
        return width & 0x3FFF, height & 0x3FFF
    return None
