"""Which pictures a model can take, and what becomes of the others."""

from __future__ import annotations

import pytest

from mcp_actors.tools.pictures import CorruptPicture, FiledPicture, ShownPicture, judge_picture
from mcp_actors.tools.plans import ModelImage
from tests.tools.png import png


@pytest.mark.parametrize(
    ("data", "is_asked", "expected"),
    [
        (png(1_568, 1_568), False, 1_568),
        (png(1_569, 10), True, 100),
        (png(9_000, 10), True, 100),
        (png(10, 10, 4_000_000), True, 100),
        (png(20_000, 20_000), False, None),
    ],
)
def test_large_pictures_are_shrunk_by_the_door(data: bytes, is_asked: bool, expected: int | None) -> None:
    """Pictures beyond the good size are shrunk where there are means; a bomb is not even tried (S214)."""
    asked: list[tuple[str, int, int]] = []

    def shrink(given: bytes, mime: str, max_edge: int, max_bytes: int) -> tuple[bytes, str]:
        asked.append((mime, max_edge, max_bytes))
        return png(100, 100), "image/png"

    judged = judge_picture(data, "image/png", shrink)

    assert asked == ([("image/png", 1_568, 3_932_160)] if is_asked else [])
    assert isinstance(judged, FiledPicture if expected is None else ShownPicture)
    if expected == 100:
        assert judged == ShownPicture(ModelImage(png(100, 100), "image/png"), 14)


@pytest.mark.parametrize("answer", [None, (b"", "image/png"), (b"junk", "image/png")])
def test_a_door_that_cannot_shrink(answer: object) -> None:
    """Where shrinking fails the picture is shown if a model can take it, else saved."""
    assert isinstance(judge_picture(png(2_000, 10), "image/png", lambda *_: answer), ShownPicture)
    assert isinstance(judge_picture(png(9_000, 10), "image/png", lambda *_: answer), FiledPicture)


@pytest.mark.parametrize(
    ("data", "mime", "kind"),
    [
        (b"junk", "image/png", CorruptPicture),
        (png(10, 10)[:20], "image/x-odd", CorruptPicture),
        (b"<svg/>", "image/svg+xml", FiledPicture),
        (png(10, 10), "image/x-odd", ShownPicture),
    ],
)
def test_what_it_is_counts_and_not_what_it_is_called(data: bytes, mime: str, kind: type) -> None:
    """A picture is known by its first bytes; what claims to be one and cannot be read is corrupt (S214)."""
    judged = judge_picture(data, mime, None)

    assert isinstance(judged, kind)
    assert repr(data) not in repr(judged)


@pytest.mark.parametrize(("width", "tokens"), [(10, 1), (1_568, 1_600)])
def test_a_picture_costs_by_its_area(width: int, tokens: int) -> None:
    """Tokens are estimated by the area, and no picture costs more than one of the good size (S222)."""
    judged = judge_picture(png(width, width), "image/png", None)

    assert isinstance(judged, ShownPicture)
    assert judged.tokens == tokens
