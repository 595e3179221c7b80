"""How the text of a result looks to a person."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_actors.tools.render import Rendered, display_width, render_result, strip_controls, wrap_line


def flat(count: int) -> dict[str, object]:
    return {f"k{number}": number for number in range(count)}


@pytest.mark.parametrize(
    ("value", "tier", "lines"),
    [
        ({"messages": "line1\nline2"}, 1, ["line1", "line2"]),
        ({"result": "x" * 201}, 1, ["x" * 201]),
        ({"ok": True, "text": "a\nb", "n": 3}, 1, ["ok: true", "n: 3", "", "a", "b"]),
        ({"a": 1, "b": 2, "c": 3, "d": 4, "t": "x\ny"}, 1, ["a: 1", "b: 2", "c: 3", "d: 4", "", "x", "y"]),
        ({"t": "x\ny", "o": "z" * 120}, 1, ["o: " + "z" * 120, "", "x", "y"]),
        ({"result": "x" * 200}, 2, ["result: " + "x" * 200]),
        ({"id": 7, "name": "n", "none": None, "ok": False}, 2, ["id:   7", "name: n", "none: null", "ok:   false"]),
        ({"a": 1.50, "b": ""}, 2, ["a: 1.5", "b:"]),
        ({"名": 1, "abc": 2}, 2, ["名:  1", "abc: 2"]),
        (flat(12), 2, [f"k{n}:{' ' * (2 if n < 10 else 1)}{n}" for n in range(12)]),
    ],
)
def test_tiers(value: object, tier: int, lines: list[str]) -> None:
    """One long text is unwrapped, simple values are aligned (S340, S341, S342, S343)."""
    assert render_result(json.dumps(value, ensure_ascii=False)) == Rendered(tuple(lines), tier)


@pytest.mark.parametrize(
    "text",
    [
        "{}",
        "plain text",
        "[1, 2]",
        '"text"',
        '{"a": [1]}',
        '{"a": {"b": 1}}',
        '{"a": 1, "a": 2}',
        '{"a": NaN}',
        '{"a": 1} x',
        '{"a": 1',
        json.dumps(flat(13)),
        json.dumps({**{str(n): n for n in range(5)}, "t": "x\ny"}),
        json.dumps({"t": "x\ny", "u": "x\ny"}),
        json.dumps({"t": "x\ny", "o": "z" * 121}),
        json.dumps({"t": "x\ny", "o": [1]}),
        '{"a":' * 5_000,
        json.dumps({"a": "x" * 200_001}),
        json.dumps(flat(13), indent=2),
        "",
    ],
)
def test_everything_else_is_shown_as_it_came(text: str) -> None:
    """Arrays, nesting, repeated keys, too many keys and what is no JSON stay unchanged (S344, S346)."""
    assert render_result(text) == Rendered(tuple(text.split("\n")), 3)


def test_numbers_keep_their_spelling() -> None:
    """Large and long numbers are shown as the server wrote them."""
    assert render_result('{"a": 1.10, "b": 123456789012345678901234567890, "c": 1E400}').lines == (
        "a: 1.10",
        "b: 123456789012345678901234567890",
        "c: 1E400",
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x9b31mred", "red"),
        ("\x1b]0;title\x07after", "after"),
        ("\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x1b]0;never ends\nnext", "\nnext"),
        ("\x1bPdata\x9cafter", "after"),
        ("\x1b(Bx\x1bcy", "xy"),
        ("a\rb\r\nc\bd\x07", "ab\ncd"),
        ("tab\tline\n", "tab\tline\n"),
        ("a\u202eb\u200bc\u2028d", "abc\nd"),
        ("\U0001f468\u200d\U0001f469", "\U0001f468\u200d\U0001f469"),
        ("\x1b", ""),
        ("\x1b[", ""),
    ],
)
def test_control_sequences_are_stripped(text: str, expected: str) -> None:
    """A server cannot move the cursor, recolour the terminal or set its title (S347)."""
    assert strip_controls(text) == expected


@given(st.text(st.one_of(st.sampled_from("\x1b[]m;\x07\\\x9b\r\n\u202e0ab"), st.characters())))
def test_nothing_that_a_terminal_obeys_gets_through(text: str) -> None:
    """Whatever comes, as it is or inside JSON, no control character but tab is in a line."""
    for shown in (text, json.dumps({"key" + text: text}), json.dumps({"a": text + "\n"})):
        for line in render_result(shown, 20).lines:
            assert not [sign for sign in line if (ord(sign) < 32 and sign != "\t") or 0x7F <= ord(sign) < 0xA0]


@pytest.mark.parametrize(
    ("text", "width"),
    [("abc", 3), ("", 0), ("日本", 4), ("e\u0301", 1), ("\U0001f600", 2), ("a\u200db", 2)],
)
def test_display_width(text: str, width: int) -> None:
    """Wide characters take two columns, marks none."""
    assert display_width(text) == width


@pytest.mark.parametrize(
    ("line", "width", "expected"),
    [
        ("one two three", 8, ["one two", "three"]),
        ("abcdefgh", 3, ["abc", "def", "gh"]),
        ("日本語です", 4, ["日本", "語で", "す"]),
        ("short", 10, ["short"]),
        ("", 10, [""]),
        ("ab", 0, ["ab"]),
    ],
)
def test_wrap_line(line: str, width: int, expected: list[str]) -> None:
    """Lines break at blanks, or within words that are too long, by columns."""
    assert wrap_line(line, width) == expected


@given(st.text(st.sampled_from("ab 日\u0301"), max_size=60), st.integers(2, 12))
def test_wrapping_loses_nothing(line: str, width: int) -> None:
    """No part is wider than asked, and only blanks are lost."""
    parts = wrap_line(line, width)

    assert max(map(display_width, parts)) <= width
    assert "".join(parts).replace(" ", "") == line.replace(" ", "")


def test_a_long_line_wraps_in_one_pass() -> None:
    """The length of a line costs in proportion."""
    assert len(wrap_line("x" * 200_000, 10)) == 20_000


def test_flat_values_wrap_under_themselves() -> None:
    """A long value goes on beneath its own beginning."""
    assert render_result('{"key": "one two three four", "k": 1}', 15).lines == (
        "key: one two",
        "     three four",
        "k:   1",
    )
