"""Tests of `config.jsonc`."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_actors.config.documents import find_odd_number
from mcp_actors.config.jsonc import MAX_DEPTH, decode_text, parse_json, parse_json_with_odd_numbers, parse_toml
from mcp_actors.errors import ConfigError

ACCEPTED = [
    ("{}", {}),
    ("\ufeff{}", {}),
    ('{"a": 1,}', {"a": 1}),
    ('{"a": [1, 2, ], }', {"a": [1, 2]}),
    ('// c\n{"a": 1} // d', {"a": 1}),
    ('/* c */{"a": /* d\n */ 1}', {"a": 1}),
    ('{"a": 1, /* last */ }', {"a": 1}),
    ('{"a": 1, // last\n }', {"a": 1}),
    ('{"u": "https://x", /**/}', {"u": "https://x"}),
    ('{"u": "/* no */", "v": ",]", "w": ", }",}', {"u": "/* no */", "v": ",]", "w": ", }"}),
    (r'{"q": "a\"// b", "r": "\\",}', {"q": 'a"// b', "r": "\\"}),
    ('{"a": 12345678901234567890123}', {"a": 12345678901234567890123}),
]


@pytest.mark.parametrize(("text", "expected"), ACCEPTED)
def test_parse_accepts_what_people_write_by_hand(text: str, expected: object) -> None:
    """Comments, trailing commas and a mark are accepted outside strings; strings stay untouched (faults 22, 24)."""
    assert expected == parse_json(text, "f").value


REFUSED = [
    ("", 1, 1),
    (" \n ", 1, 1),
    ("{", 1, 2),
    ('{"a": }', 1, 7),
    ('{\n  "a": 1\n  "b": 2\n}', 3, 3),
    ('{\n  // note\n  "a": 1\n  "b": 2,\n}', 4, 3),
    ('{"a": 1} x', 1, 10),
    ("{'a': 1}", 1, 2),
    ('{"a": NaN}', 1, 7),
    ('{"NaN": "NaN",\n "b": -Infinity}', 2, 7),
    ('{"a": "1e400",\n "b": 1e400}', 2, 7),
    ('{"a": 1}\n/* open', 2, 1),
    ('{"a": 1} /*/', 1, 10),
    ('{"a": "x\n"}', 1, 9),
]


@pytest.mark.parametrize(("text", "line", "column"), REFUSED)
def test_parse_tells_where_it_failed(text: str, line: int, column: int) -> None:
    """A real syntax error names file, line and column, also behind comments (S001, fault 24)."""
    with pytest.raises(ConfigError) as caught:
        parse_json(text, "some.json")

    assert ("some.json", line, column) == (caught.value.file, caught.value.line, caught.value.column)


@pytest.mark.parametrize("text", ["[" * 100_000, "[" * (MAX_DEPTH + 2) + "]" * (MAX_DEPTH + 2), '{"a":' * 3000])
def test_parse_refuses_deep_nesting(text: str) -> None:
    """Deep nesting is an error of the file, never of our stack."""
    with pytest.raises(ConfigError):
        parse_json(text, "f")


@pytest.mark.parametrize("number", ["1e400", "-1e400", "NaN", "-Infinity", "9" * 5000])
@pytest.mark.parametrize("before", ["", "// a comment\n", "[1, 2.5], "])
def test_odd_numbers_may_be_kept_as_infinity(number: str, before: str) -> None:
    """Everything else is as it was, and where the first of them stands is told."""
    text = '{"a": [' + before + '{"b": ' + number + '}], "c": 2}'

    document = parse_json_with_odd_numbers(text, "f")

    assert document.has_odd_numbers
    assert document.value["c"] == 2
    assert find_odd_number(document.value) == ("a", 1 if "[" in before else 0, "b")
    assert find_odd_number({"c": document.value["c"], "d": [1.5, True, None, "1e400"]}) is None


def test_ordinary_numbers_are_not_odd() -> None:
    """The largest that can be kept, too."""
    assert not parse_json_with_odd_numbers('{"a": [1e308, -1.5, 1' + "0" * 300 + ', "1e400"]}', "f").has_odd_numbers


def test_parse_refuses_endless_digits() -> None:
    """An integer that Python refuses to read is an error of the file."""
    with pytest.raises(ConfigError, match="digits"):
        parse_json("[" + "9" * 5000 + "]", "f")


@pytest.mark.parametrize("piece", ["/*", '"', '"\\', ",", "//", '"a" ,\n'])
def test_parse_takes_linear_time_for_hostile_text(piece: str) -> None:
    """A megabyte of openings that never close is refused at once."""
    with pytest.raises(ConfigError):
        parse_json(piece * 200_000, "f")


def test_duplicate_keys_are_told() -> None:
    """The last of two equal keys counts, and both are reported by name."""
    document = parse_json('{"a": {"x": 1, "x": 2}, "b": 1, "b": 2,}', "f")

    assert document.value == {"a": {"x": 2}, "b": 2}
    assert document.duplicates == ("x", "b")


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=12,
)


@given(values, st.sampled_from(["", " ", "\n", "/* , */", "// ]\n"]))
def test_parse_reads_json_with_comments_between_tokens(value: object, filler: str) -> None:
    """Fillers between the tokens change nothing."""
    pieces = json.JSONEncoder().iterencode(value)
    text = filler + filler.join(pieces) + filler

    assert value == parse_json(text, "f").value


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32"])
def test_decode_knows_marks(encoding: str) -> None:
    """UTF-8 with and without mark, UTF-16 and UTF-32 with one are read (fault 22)."""
    assert decode_text('{"ä": "€"}'.encode(encoding), "f") == '{"ä": "€"}'


@pytest.mark.parametrize("data", [b'{\n"a": "\xff"}', b"\xff\xfea"])
def test_decode_names_the_encoding_that_failed(data: bytes) -> None:
    """Bytes that are no text say which encoding was tried."""
    with pytest.raises(ConfigError, match="UTF-"):
        decode_text(data, "f")


def test_toml_is_read_and_its_errors_have_a_place() -> None:
    """Codex's files parse; a fault has line and column but quotes nothing."""
    assert parse_toml('[a]\nb = "c"', "f").value == {"a": {"b": "c"}}

    with pytest.raises(ConfigError) as caught:
        parse_toml('[a]\ntoken = "canary\n', "f")

    assert caught.value.line == 2
    assert "canary" not in str(caught.value)


@pytest.mark.parametrize(
    "text", ['{"t": "canary', '{"t": canary}', '{"t": "\\canary"}', '{"canary"}', '{"t": "a" canary}']
)
def test_errors_quote_nothing(text: str) -> None:
    """The message of a syntax error holds no part of the file (S030)."""
    with pytest.raises(ConfigError) as caught:
        parse_json(text, "f")

    assert "canary" not in str(caught.value) + repr(caught.value)
    assert caught.value.__cause__ is None


@pytest.mark.parametrize(
    ("text", "column"), [("{,}", 2), ("[,]", 2), ("[1,,]", 4), ('{"a": ,}', 7), ("{ /* x */ , }", 11), (",", 1)]
)
def test_a_comma_that_trails_nothing_is_a_mistake(text: str, column: int) -> None:
    """Only the comma behind a value may stand before a bracket."""
    with pytest.raises(ConfigError) as caught:
        parse_json(text, "f")

    assert (caught.value.line, caught.value.column) == (1, column)
