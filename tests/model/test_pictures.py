"""Pictures made small enough for a model."""

from __future__ import annotations

import io

import pytest

from mcp_actors.model.pictures import shrink_picture

Image = pytest.importorskip("PIL.Image")


def picture(form: str, size: tuple[int, int], mode: str = "RGB") -> bytes:
    out = io.BytesIO()
    Image.effect_noise(size, 90).convert(mode).save(out, form)
    return out.getvalue()


@pytest.mark.parametrize(
    ("form", "mode", "mime", "gives"),
    [
        ("PNG", "RGB", "image/png", "image/png"),
        ("PNG", "RGBA", "image/png", "image/png"),
        ("PNG", "P", "image/png", "image/png"),
        ("JPEG", "RGB", "image/jpeg", "image/jpeg"),
        ("GIF", "P", "image/gif", "image/png"),
        ("WEBP", "RGB", "image/webp", "image/jpeg"),
    ],
)
def test_each_format_comes_smaller(form: str, mode: str, mime: str, gives: str) -> None:
    """Both sides fit the edge, the proportions stay, the bytes fit the bound (S214)."""
    small = shrink_picture(picture(form, (400, 200), mode), mime, 100, 1_000_000)

    assert small is not None
    assert small[1] == gives
    assert Image.open(io.BytesIO(small[0])).size == (100, 50)


def test_what_is_too_many_bytes_becomes_a_jpeg() -> None:
    """Noise that a PNG cannot hold in the bound is written as JPEG."""
    small = shrink_picture(picture("PNG", (300, 300)), "image/png", 300, 40_000)

    assert small is not None
    assert small[1] == "image/jpeg"
    assert len(small[0]) <= 40_000


@pytest.mark.parametrize(
    "data",
    [b"", b"\x89PNG\r\n\x1a\n", picture("PNG", (50, 50))[:200], b"<svg/>", picture("BMP", (5, 5))],
    ids=["empty", "head", "cut", "svg", "bmp"],
)
def test_what_cannot_be_decoded_is_none(data: bytes) -> None:
    """S215: corrupt and foreign formats give None, whatever the decoder raises."""
    assert shrink_picture(data, "image/png", 10, 1000) is None


def test_a_bomb_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """A picture that unpacks beyond Pillow's bound is not unpacked."""
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 1000)

    assert shrink_picture(picture("PNG", (40, 40)), "image/png", 10, 100_000) is None
