"""Tests of `config.editing`."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_actors.config.editing import document_with, document_without, mask_texts, remove_value, set_value, set_values
from mcp_actors.config.jsonc import parse_json
from mcp_actors.errors import ConfigError

ENTRY = {"command": "y", "args": ["1"]}
DRAWN = '"n": {\n      "command": "y",\n      "args": [\n        "1"\n      ]\n    }'
PATH = ("mcpServers", "n")


@pytest.mark.parametrize(
    ("text", "edited"),
    [
        ("{}\n", f'{{\n  "mcpServers": {{\n    {DRAWN}\n  }}\n}}\n'),
        ('{"mcpServers":{}}', '{"mcpServers":{"n": {"command": "y", "args": ["1"]}}}'),
        ('{"mcpServers": null}', '{"mcpServers": {"n": {"command": "y", "args": ["1"]}}}'),
        (
            '{"mcpServers": {"a": {"url": "x"}}, "k": 1}',
            '{"mcpServers": {"a": {"url": "x"}, "n": {"command": "y", "args": ["1"]}}, "k": 1}',
        ),
        # A remark behind the last entry stays beside it; one below it stays below.
        (
            '{\n  "mcpServers": {\n    "a": {} // why\n    // later: "b"\n  }\n}\n',
            f'{{\n  "mcpServers": {{\n    "a": {{}}, // why\n    {DRAWN}\n    // later: "b"\n  }}\n}}\n',
        ),
        # Who writes trailing commas gets one.
        (
            '{\n  "mcpServers": {\n    "a": {},\n  },\n}\n',
            f'{{\n  "mcpServers": {{\n    "a": {{}},\n    {DRAWN},\n  }},\n}}\n',
        ),
        (
            '{\n  "mcpServers": {\n    // none yet\n  }\n}',
            f'{{\n  "mcpServers": {{\n    // none yet\n    {DRAWN}\n  }}\n}}',
        ),
        # A block remark that spans lines is not written into.
        (
            '{\n  "mcpServers": {\n    "a": {} /* one\n    two */\n  }\n}',
            f'{{\n  "mcpServers": {{\n    "a": {{}},\n    {DRAWN} /* one\n    two */\n  }}\n}}',
        ),
        # A doubled key: the last one is the one that counts.
        ('{"mcpServers": {"n": 1, "n": 2}}', '{"mcpServers": {"n": 1, "n": {"command": "y", "args": ["1"]}}}'),
        # What looks like structure inside of a string is none.
        ('{"a": "}, //", "mcpServers": {}}', '{"a": "}, //", "mcpServers": {"n": {"command": "y", "args": ["1"]}}}'),
    ],
)
def test_set(text: str, edited: str) -> None:
    """An entry is added in the file's own layout; what else stands there stays, to the character."""
    assert set_value(text, PATH, ENTRY, "f") == edited


def test_line_ends_and_tabs_are_the_files_own() -> None:
    """A file with CRLF and tabs gets lines of that kind."""
    text = '{\r\n\t"mcpServers": {\r\n\t\t"a": {}\r\n\t}\r\n}\r\n'

    edited = set_value(text, PATH, {"url": "u"}, "f")

    assert edited == '{\r\n\t"mcpServers": {\r\n\t\t"a": {},\r\n\t\t"n": {\r\n\t\t\t"url": "u"\r\n\t\t}\r\n\t}\r\n}\r\n'
    assert remove_value(edited, PATH, "f") == text


@pytest.mark.parametrize(
    ("text", "key", "edited"),
    [
        ('{"a": 1, "b": 2}', "a", '{"b": 2}'),
        ('{"a": 1, "b": 2}', "b", '{"a": 1}'),
        ('{"a": 1}', "a", "{}"),
        ('{"a": 1, "b": 2,}', "b", '{"a": 1, }'),
        ('{"a": 1, "a": 2}', "a", "{}"),
        ('{"a": 1}', "z", '{"a": 1}'),
        ('{\n  "a": 1,\n  "b": 2\n}\n', "a", '{\n  "b": 2\n}\n'),
        ('{\n  "a": 1,\n  "b": 2\n}\n', "b", '{\n  "a": 1\n}\n'),
        ('{\n  "a": 1, // of a\n  // of all\n  "b": 2\n}\n', "a", '{\n  // of all\n  "b": 2\n}\n'),
        ('{\n  // of all\n  "a": 1\n}\n', "a", "{\n  // of all\n}\n"),
        ('{\n  "a": 1, "b": 2,\n  "c": 3\n}\n', "b", '{\n  "a": 1, \n  "c": 3\n}\n'),
    ],
)
def test_remove(text: str, key: str, edited: str) -> None:
    """An entry goes with its lines and the remark behind it; everything else stays, to the character."""
    assert remove_value(text, (key,), "f") == edited


@pytest.mark.parametrize("edit", [lambda text: set_value(text, PATH, ENTRY, "f"), lambda t: remove_value(t, PATH, "f")])
@pytest.mark.parametrize(
    ("text", "place"), [("{\n  x", (2, 3)), ('{"a": 1 "b": 2}', (1, 9)), ("", (1, 1)), ("[]", (1, 1))]
)
def test_a_text_that_does_not_parse_is_not_edited(edit: object, text: str, place: tuple[int, int]) -> None:
    """The refusal names line and column (fault 23)."""
    with pytest.raises(ConfigError) as caught:
        edit(text)  # type: ignore[operator]

    assert (caught.value.line, caught.value.column) == place


@pytest.mark.parametrize("held", ["[]", "1", '"x"', "true"])
def test_what_is_no_object_is_not_overwritten(held: str) -> None:
    """A table of servers of another kind is refused, by its key."""
    with pytest.raises(ConfigError, match="mcpServers"):
        set_value(f'{{"mcpServers": {held}}}', PATH, ENTRY, "f")


# ── anything ─────────────────────────────────────────────────────────────────────────────────────────────────────────
KEYS = st.sampled_from(["a", "b", "c", 'q"{', "ä//", "x,}"])
LEAVES = st.sampled_from([None, True, 0, -1.5, "", "//", "/* }", '"', "\\", "a\nb", "é"])
VALUES = st.recursive(LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4))
DOCUMENTS = st.dictionaries(KEYS, VALUES, max_size=4)
REMARKS = ["", "", "", " ", "/**/", '/* { , " */', "/* one\n two */", "// rest } ,\n", "\n", "\n  "]


@st.composite
def texts(draw: st.DrawFn) -> tuple[str, object]:
    """A document in some layout: remarks and blanks between any two lexemes, trailing commas, either line end."""
    document = draw(DOCUMENTS)
    indent = draw(st.sampled_from([None, 2, "\t"]))
    plain = json.dumps(document, indent=indent, ensure_ascii=draw(st.booleans()))
    lexemes = re.findall(r'"(?:[^"\\]|\\.)*"|[{}\[\],:]|[^\s{}\[\],:"]+|\s+', plain)
    pieces = []
    for lexeme in lexemes:
        if lexeme in "}]" and not pieces[-1].strip().endswith(("{", "[")) and draw(st.booleans()):
            last = next(piece for piece in reversed(pieces) if piece.strip())
            pieces += [","] if last not in ("{", "[") and not last.startswith("/") else []
        pieces += [lexeme, draw(st.sampled_from(REMARKS))]
    text = "".join(pieces)
    return (text.replace("\n", "\r\n") if draw(st.booleans()) else text), document


@given(texts(), st.lists(KEYS, min_size=1, max_size=3).map(tuple), VALUES)
def test_set_changes_what_it_says_and_nothing_else(
    written: tuple[str, object], path: tuple[str, ...], value: object
) -> None:
    """Whatever the layout, the edited text holds the one new value and every remark that was there."""
    text, document = written
    try:
        wanted = document_with(document, path, value, "f")
    except ConfigError:
        with pytest.raises(ConfigError, match="no object"):
            set_value(text, path, value, "f")
        return

    edited = set_value(text, path, value, "f")

    assert parse_json(edited, "f").value == wanted
    if document_without(document, path) == document:  # nothing was there whose inside could go
        assert edited.count("/*") >= text.count("/*")
        assert edited.count("//") >= text.count("//")


@given(texts(), st.lists(KEYS, min_size=1, max_size=3).map(tuple))
def test_remove_changes_what_it_says_and_nothing_else(written: tuple[str, object], path: tuple[str, ...]) -> None:
    """Whatever the layout, the edited text lacks the one value; a text without it stays as it is."""
    text, document = written
    wanted = document_without(document, path)

    edited = remove_value(text, path, "f")

    assert parse_json(edited, "f").value == wanted
    assert wanted != document or edited == text


@given(texts(), st.lists(KEYS, min_size=1, max_size=2).map(tuple), st.dictionaries(KEYS, VALUES, max_size=4))
def test_many_are_set_as_one_after_the_other(
    written: tuple[str, object], path: tuple[str, ...], values: dict[str, object]
) -> None:
    """Setting several members at once says the same as setting each."""
    text, wanted = written
    try:
        for key, value in values.items():
            wanted = document_with(wanted, (*path, key), value, "f")
    except ConfigError:
        with pytest.raises(ConfigError):
            set_values(text, path, values, "f")
        return

    assert parse_json(set_values(text, path, values, "f"), "f").value == wanted


@given(texts())
def test_masking_hides_each_string_and_keeps_the_rest(written: tuple[str, object]) -> None:
    """Every string value is replaced where it stands; keys, numbers, remarks and layout stay."""
    text, document = written

    def stars(value: object) -> object:
        if isinstance(value, dict):
            return {key: stars(item) for key, item in value.items()}
        if isinstance(value, list):
            return [stars(item) for item in value]
        return "***" if isinstance(value, str) else value

    assert parse_json(mask_texts(text, stars, "f"), "f").value == stars(document)
