"""What becomes of a result: texts, pictures and files for a model."""

from __future__ import annotations

import base64
import json
import random

import pytest

from mcp_actors.errors import RemoteProtocolError
from mcp_actors.tools.blocks import EMPTY, plan_result
from mcp_actors.tools.plans import Limits, ModelText, ResultPlan
from mcp_actors.tools.results import ToolResult
from mcp_actors.tools.validation import Check, Fit
from tests.tools.png import png

NOISE = random.Random(0).randbytes(3_000)


def b64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def text(words: str) -> dict[str, object]:
    return {"type": "text", "text": words}


def image(data: bytes | str, mime: str = "image/png") -> dict[str, object]:
    return {"type": "image", "data": data if isinstance(data, str) else b64(data), "mimeType": mime}


def plan(*content: dict[str, object], keys: dict[str, object] | None = None, **options: object) -> ResultPlan:
    return plan_result(ToolResult(json.dumps({"content": content, **(keys or {})}).encode()), **options)


def seen(planned: ResultPlan) -> list[object]:
    """What a model gets: texts as they are, pictures by their type; files are called FILE0, FILE1, ..."""
    finished = planned.finish([f"FILE{index}" for index in range(len(planned.files))])
    return [block.text if isinstance(block, ModelText) else block.mime for block in finished.blocks]


PICTURE = png(10, 10)


@pytest.mark.parametrize(
    ("block", "expected"),
    [
        (text("hello"), ["hello"]),
        (text("a\u200bb\u202e \u2764\ufe0f"), ["ab \u2764\ufe0f"]),
        (image(PICTURE), ["image/png"]),
        (image(PICTURE, "image/jpeg"), ["image/png"]),
        (image("data:image/png;base64," + b64(PICTURE)), ["image/png"]),
        (image(""), ["[image (image/png) is empty]"]),
        (image("***"), ["[image (image/png) could not be decoded]"]),
        (image(b"not a picture"), ["[image (image/png), 13 bytes, is corrupt]"]),
        (image(PICTURE[:30]), ["[image (image/png), 30 bytes, is corrupt]"]),
        (image(b"<svg/>", "image/svg+xml"), ["[image (image/svg+xml), 6 bytes, saved to FILE0]"]),
        (image(b"BM....", "image/bmp"), ["[image (image/bmp), 6 bytes, saved to FILE0]"]),
        ({"type": "image", "mimeType": "image/png"}, ["[image (image/png) could not be decoded]"]),
        (
            {"type": "audio", "data": b64(b"RIFF"), "mimeType": "audio/wav"},
            ["[audio (audio/wav), 4 bytes, saved to FILE0]"],
        ),
        ({"type": "resource", "resource": {"uri": "x:y", "text": "t"}}, ["[Resource x:y]\nt"]),
        (
            {"type": "resource", "resource": {"uri": "x:y", "blob": b64(PICTURE), "mimeType": "image/png"}},
            ["[Resource x:y]", "image/png"],
        ),
        (
            {"type": "resource", "resource": {"uri": "x:y", "blob": b64(b"%PDF-1"), "mimeType": "application/pdf"}},
            ["[Resource x:y]", "[resource (application/pdf), 6 bytes, saved to FILE0]"],
        ),
        ({"type": "resource"}, ["[a resource block without a resource]"]),
        (
            {"type": "resource_link", "name": "n", "uri": "x:y", "description": "d"},
            ["[Resource link: n (x:y)]\nd"],
        ),
        ({"type": "hologram"}, ["[block 1 is of the unknown type hologram]"]),
        ({"type": 7}, ["[block 1 is of the unknown type unknown]"]),
        ({"type": "h]\n[x"}, ["[block 1 is of the unknown type h) (x]"]),
        ({"type": "text"}, ["[a text block without text]"]),
    ],
)
def test_each_block(block: dict[str, object], expected: list[object]) -> None:
    """Every type of block becomes text, a picture, or a file that the text names (S212-S219, S216, S217, S226)."""
    assert seen(plan(block)) == expected


@pytest.mark.parametrize(
    ("mime", "extension"),
    [("audio/mpeg", "mp3"), ("audio/wav; rate=8", "wav"), ("application/x-sh", "bin"), ("../../x", "bin"), ("", "bin")],
)
def test_the_extension_is_ours(mime: str, extension: str) -> None:
    """A file's extension comes from a table, whatever the server says (S218)."""
    [file] = plan({"type": "audio", "data": b64(b"abc"), "mimeType": mime}).files

    assert (file.extension, file.data) == (extension, b"abc")


STRUCTURED = {"structuredContent": {"n": 5}}


@pytest.mark.parametrize(
    ("content", "keys", "options", "expected"),
    [
        ([text("n is 5")], STRUCTURED, {}, ['{"n":5}']),
        ([text("n is 5"), image(PICTURE)], STRUCTURED, {}, ['{"n":5}', "image/png"]),
        ([text("n is 5")], STRUCTURED, {"check": Check(Fit.VALID)}, ['{"n":5}']),
        ([text("n is 5")], STRUCTURED, {"check": Check(Fit.UNCHECKED, "r")}, ['{"n":5}']),
        ([text("n is 5")], STRUCTURED, {"check": Check(Fit.INVALID, "r")}, ["n is 5", '{"n":5}']),
        ([text("refused")], {"isError": True, **STRUCTURED}, {}, ["refused", '{"n":5}']),
        ([text("refused"), image(PICTURE)], {"isError": True}, {}, ["refused", "image/png"]),
        ([text("x")], {"structuredContent": None}, {}, ["x"]),
        ([], {"toolResult": {"old": 1}}, {}, ['{"old":1}']),
        ([], {"structuredContent": []}, {}, ["[]"]),
        ([], {}, {}, [EMPTY]),
        ([text("")], {}, {}, [EMPTY]),
    ],
)
def test_structured_content(
    content: list[dict[str, object]], keys: dict[str, object], options: dict[str, object], expected: object
) -> None:
    """Structured content stands for the texts, not in errors or where it does not fit (S220, S221, S225, fault 84)."""
    planned = plan(*content, keys=keys, **options)

    assert seen(planned) == expected
    assert planned.is_error is (keys.get("isError") is True)


def test_what_does_not_fit_is_a_note() -> None:
    """A failed check is told to the host; the result is used (fault 84)."""
    planned = plan(text("x"), keys=STRUCTURED, check=Check(Fit.INVALID, "at n: no"))

    assert planned.notes == ("structured content is invalid: at n: no",)
    assert planned.check == Check(Fit.INVALID, "at n: no")


# ── base64 ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_data_that_is_repeated_is_recognised() -> None:
    """A picture's base64 in structured content or in text is named, not repeated (field note 44)."""
    data = b64(png(10, 10, 3_000))
    planned = plan(image(data), text(f"see {data}."), keys={"structuredContent": {"image": data, "n": 1}})

    assert seen(planned) == ['{"image":"[the data of block 1]","n":1}', "image/png"]
    assert seen(plan(image(data), text(f"see {data}."))) == ["image/png", "see [the data of block 1]."]


@pytest.mark.parametrize(
    ("words", "expected", "extension"),
    [
        (f"a {b64(NOISE)} b", "a [base64 data (application/octet-stream), 3000 bytes, saved to FILE0] b", "bin"),
        (
            f"![x](data:image/png;base64,{b64(png(1, 1, 600))})",
            "![x]([base64 data (image/png), 669 bytes, saved to FILE0])",
            "png",
        ),
        (
            base64.urlsafe_b64encode(NOISE).decode(),
            "[base64 data (application/octet-stream), 3000 bytes, saved to FILE0]",
            "bin",
        ),
    ],
)
def test_base64_in_text_becomes_a_file(words: str, expected: str, extension: str) -> None:
    """Long runs of base64 are saved and referred to (S218)."""
    planned = plan(text(words))

    assert seen(planned) == [expected]
    assert planned.files[0].extension == extension


@pytest.mark.parametrize(
    "words",
    ["x" * 5_000, "ACGT" * 2_000, "0123456789abcdef" * 500, "/usr/share/lib/" * 300, b64(NOISE)[:400], "word " * 3_000],
)
def test_other_long_words_stay(words: str) -> None:
    """What merely uses the signs of base64 is text."""
    planned = plan(text(words))

    assert seen(planned) == [words]
    assert planned.files == ()


# ── pictures ─────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (png(1_568, 10), "image/png"),
        (png(8_000, 10), "image/png"),
        (png(8_001, 10), "[image (image/png, 8001x10), too large to be shown, 69 bytes, saved to FILE0]"),
        (png(10, 10, 4_000_000), "[image (image/png, 10x10), too large to be shown, 4000069 bytes, saved to FILE0]"),
    ],
)
def test_large_pictures_are_saved_without_means_to_shrink_them(data: bytes, expected: str) -> None:
    """What a model cannot take is saved and referred to (S214)."""
    assert seen(plan(image(data))) == [expected]


# ── limits ───────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("chars", "limits", "is_spilled", "has_note"),
    [
        (40_000, Limits(), False, False),
        (40_001, Limits(), False, True),
        (100_000, Limits(), False, True),
        (100_001, Limits(), True, True),
        (200_000, Limits(max_result_chars=200_000), False, True),
        (200_001, Limits(max_result_chars=200_000), True, True),
        (5_000, Limits(max_result_chars=4_000), True, True),
        (60, Limits(max_tokens=10), True, True),
    ],
)
def test_limits(chars: int, limits: Limits, is_spilled: bool, has_note: bool) -> None:
    """25,000 tokens, a note above 10,000, and a tool's own limit in characters instead (S222, S224)."""
    planned = plan(text("x " * (chars // 2) + "x" * (chars % 2)), limits=limits)

    assert (planned.is_spilled, bool(planned.notes)) == (is_spilled, has_note)
    assert planned.tokens == -(-chars // 4)


def test_a_result_beyond_the_limit_is_saved_whole() -> None:
    """The model gets a message with the path; the file holds everything (S223, fault 86)."""
    whole = "line\n" * 60_000
    planned = plan(text(whole), image(PICTURE))

    [message] = seen(planned)

    assert isinstance(message, str)
    assert message.startswith(
        "Error: the result (300000 characters, about 75001 tokens) is larger than what fits here."
    )
    assert "saved to FILE1" in message
    assert "[image (image/png), 69 bytes, saved to FILE0]" in message
    assert planned.is_error
    assert planned.files[1].data.decode() == whole
    assert len(message) < 1_000


def test_structured_results_spill_as_json() -> None:
    """A large structured result is a JSON file."""
    planned = plan(keys={"structuredContent": {"rows": ["value"] * 30_000}})

    assert [(file.extension, len(json.loads(file.data)["rows"])) for file in planned.files] == [("json", 30_000)]


def test_pictures_count() -> None:
    """Pictures are estimated too, and stay bound by tokens whatever a tool says of its texts (S222, S224)."""
    many = [image(png(1_500, 1_500))] * 20

    assert plan(*many, limits=Limits(max_result_chars=500_000)).is_spilled
    assert not plan(*many[:10]).is_spilled


def test_many_blocks_and_many_files() -> None:
    """Blocks and files beyond the bounds are named, never left out in silence (fault 86)."""
    blocks = seen(plan(*[text("x")] * 5_000))
    audio = plan(*[{"type": "audio", "data": "AAAA", "mimeType": "audio/wav"}] * 150)

    assert blocks == ["x"] * 1_000 + ["[4000 more blocks were left out]"]
    assert len(audio.files) == 100
    assert seen(audio)[-1] == "[audio (audio/wav), 3 bytes, was not saved: there are more than 100 files]"


def test_a_file_that_could_not_be_saved() -> None:
    """The text says so instead of a path."""
    planned = plan({"type": "audio", "data": "AAAA", "mimeType": "audio/wav"})

    assert planned.finish([None]).blocks == (
        ModelText("[audio (audio/wav), 3 bytes, saved to (it could not be saved)]"),
    )
    with pytest.raises(ValueError, match="1 files"):
        planned.finish([])


def test_meta_is_for_the_caller() -> None:
    """`_meta` is cleaned and kept, and is no part of what a model gets (S227)."""
    planned = plan(text("x"), keys={"_meta": {"a\u200b": "b\u200b"}})

    assert planned.meta == {"a": "b"}
    assert seen(planned) == ["x"]


def test_hidden_text_is_counted() -> None:
    """The host learns how many hidden code points a result held (S195)."""
    assert plan(text("a\u200b\u202e"), text("b\u200b")).notes == ("3 hidden code points were removed",)


@pytest.mark.parametrize("raw", [b'{"content":7}', b'{"content":[7]}', b"[]"])
def test_a_result_of_the_wrong_shape(raw: bytes) -> None:
    """What is no result is the server's fault (S226)."""
    with pytest.raises(RemoteProtocolError):
        plan_result(ToolResult(raw))


def test_reprs_hold_no_content() -> None:
    """A plan's repr tells sizes only (invariant 8)."""
    planned = plan(text("canary"), {"type": "audio", "data": b64(b"canary"), "mimeType": "audio/wav"})

    assert "canary" not in repr(planned) + repr(planned.finish(["p"]))
