"""The head of a SKILL.md: found, bounded, and held against what the skill's entry said."""

from __future__ import annotations

import json
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_actors.errors import ConfigError, RemoteProtocolError
from mcp_actors.tools.frontmatter import MAX_FRONTMATTER_CHARS, find_difference, find_frontmatter


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("---\nname: a\n---\nbody", "\nname: a\n"),
        ("---  \r\nname: a\r\n---\r\nbody", "\nname: a\r\n"),
        ("\ufeff---\nname: a\n---", "\nname: a\n"),
        ("---\nname: a\n----\n---\n", "\nname: a\n----\n"),
    ],
)
def test_the_frontmatter_stands_between_the_fences(text: str, found: str) -> None:
    """What the first two lines of three hyphens enclose, whatever the line ends."""
    assert find_frontmatter(text) == found


@pytest.mark.parametrize(
    "text",
    ["", "body", "\n---\nname: a\n---\n", "---\nname: a\n", "---\n" + "x" * MAX_FRONTMATTER_CHARS + "\n---\n"],
    ids=["empty", "none", "late", "open", "long"],
)
def test_a_file_without_frontmatter_is_refused(text: str) -> None:
    """A file that has none, or too much, is no SKILL.md."""
    with pytest.raises(RemoteProtocolError, match="no frontmatter"):
        find_frontmatter(text)


# What the file says, and what a writer of JSON may have made of it.
SAME = [
    ("a: one", {"a": "one"}),
    ("a: 'it''s'\nb: \"x\\n\"", {"a": "it's", "b": "x\n"}),
    ("a: |\n  two\n  lines\n", {"a": "two\nlines\n"}),
    ("a: 30", {"a": 30}),
    ("a: 30", {"a": "30"}),
    ("a: 1.50", {"a": 1.5}),
    ("a: -0x1f", {"a": -31}),
    ("a: 010", {"a": 8}),
    ("a: 010", {"a": 10}),
    ("a: yes", {"a": True}),
    ("a: yes", {"a": "yes"}),
    ("a: false", {"a": False}),
    ("a:", {"a": None}),
    ("a: ~", {"a": None}),
    ("a: 2026-01-01", {"a": "2026-01-01"}),
    ("a: 2026-01-01", {"a": "2026-01-01T00:00:00.000Z"}),
    ("a: [x, 2]\nb: {c: d}", {"a": ["x", 2], "b": {"c": "d"}}),
    ("a: &n [x]\nb: *n", {"a": ["x"], "b": ["x"]}),
    ("a: []\nb: {}", {"a": [], "b": {}}),
]
OTHER = [
    ("a: one", {"a": "two"}, "a"),
    ("a: one", {}, "a"),
    ("a: one", {"a": "one", "b": "x"}, "b"),
    ("a: one\na: one", {"a": "one"}, "frontmatter"),
    ("m: &m {a: one}\n<<: *m", {"m": {"a": "one"}, "a": "one"}, "frontmatter"),
    ("a: '30'", {"a": 30}, "a"),
    ("a: 'yes'", {"a": True}, "a"),
    ("a: '2026-01-01'", {"a": "2026-01-01T00:00:00Z"}, "a"),
    ("a: 1", {"a": True}, "a"),
    ("a: 31", {"a": 30}, "a"),
    ("a: [x, y]", {"a": ["x"]}, "a"),
    ("a: [x, y]", {"a": ["x", "z"]}, "a[1]"),
    ("a: {b: c}", {"a": {"b": "d"}}, "a.b"),
    ("a: {b: c}", {"a": "b"}, "a"),
    ("a: x", {"a": ["x"]}, "a"),
    ("a: &a [*a]", {"a": [["x"]]}, "a[0][0]"),
    ("[a]", {"a": None}, "frontmatter"),
    ("", {"a": None}, "frontmatter"),
]


@pytest.mark.parametrize(("text", "entry"), SAME)
def test_what_says_the_same_does_not_differ(text: str, entry: dict[str, object]) -> None:
    """A plain word is what any parser may take it for; a quoted one is a text."""
    assert find_difference(text, entry) is None


@pytest.mark.parametrize(("text", "entry", "where"), OTHER)
def test_what_says_another_thing_is_named(text: str, entry: dict[str, object], where: str) -> None:
    """The first field that differs is named; what parsers could read differently is a difference."""
    assert find_difference(text, entry) == where


@pytest.mark.parametrize("text", ["a: b: c", "a: [", "[" * 2000, "\x00", "--- a\n--- b"])
def test_what_is_no_yaml_is_refused(text: str) -> None:
    """Broken, endlessly nested or several documents: the server's fault, and nothing else happens."""
    with pytest.raises(RemoteProtocolError, match="no YAML"):
        find_difference(text, {})


# YAML takes the rest only where it is escaped, and not as JSON escapes it.
TEXT = st.text(st.characters(exclude_categories=("C", "Zl", "Zp")), max_size=8)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(TEXT, JSON, max_size=4))
def test_json_is_yaml_that_says_the_same(entry: dict[str, object]) -> None:
    """Whatever an entry holds, a file that says exactly that agrees with it (JSON is YAML)."""
    assert find_difference(json.dumps(entry, ensure_ascii=False), entry) is None


def test_without_the_package_a_person_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """The extra ``skills`` is named where PyYAML is not installed."""
    monkeypatch.setitem(sys.modules, "yaml", None)

    with pytest.raises(ConfigError, match=r"mcp-actors\[skills\]"):
        find_difference("a: b", {"a": "b"})
