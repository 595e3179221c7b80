"""The words of `call`, as tables."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_actors.cli.arguments import (
    Word,
    build_arguments,
    call_words,
    coerce,
    misfits,
    parse_object,
    parse_word,
    parse_words,
    server_candidates,
)
from mcp_actors.cli.exits import UsageError
from mcp_actors.tools.naming import callable_name, server_prefix

FILES = {"note.txt": "line one\nline two", "data.json": '{"a": [1]}', "n.txt": "3", "-": "from stdin"}


def read(name: str) -> str:
    return FILES[name]


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("k=v", Word("k", "v", False)),
        ("k=", Word("k", "", False)),
        ("k=a=b", Word("k", "a=b", False)),
        ("k=a:=b", Word("k", "a:=b", False)),
        ("k= spaced ", Word("k", " spaced ", False)),
        ("k=two\nlines", Word("k", "two\nlines", False)),
        ("k-e.y_1=v", Word("k-e.y_1", "v", False)),
        ("ns:key=v", Word("ns:key", "v", False)),
        ("k==v", Word("k", "=v", False)),
        ("k:=1", Word("k", 1, True)),
        ("k:=-1.5", Word("k", -1.5, True)),
        ("k:=true", Word("k", True, True)),
        ("k:=null", Word("k", None, True)),
        ('k:="@text"', Word("k", "@text", True)),
        ('k:={"a":[1,"=",null]}', Word("k", {"a": [1, "=", None]}, True)),
        ("k:=123456789012345678901234567890", Word("k", 123456789012345678901234567890, True)),
        ("k=@note.txt", Word("k", "line one\nline two", False)),
        ("k=@-", Word("k", "from stdin", False)),
        ("k:=@data.json", Word("k", {"a": [1]}, True)),
        ("user=me@example.org", Word("user", "me@example.org", False)),
    ],
)
def test_word_forms(word, expected):
    """Each form gives its key, its value, and whether the value is exact."""
    assert parse_word(word, read) == expected


@pytest.mark.parametrize(
    "word",
    [
        "plain",
        "=v",
        ":=1",
        "k:=",
        "k:={",
        "k:=NaN",
        "k:=Infinity",
        "k:=1e999",
        "k:=[-1e999]",
        "k:=tru",
        "k:=@note.txt",
        "",
    ],
)
def test_word_broken(word):
    """A word without sign or key, or with broken JSON, is a usage error."""
    with pytest.raises(UsageError):
        parse_word(word, read)


def test_word_json_too_deep():
    """JSON that is nested without end is a usage error, not a crash."""
    with pytest.raises(UsageError):
        parse_word("k:=" + "[" * 200_000, read)


def test_words_key_twice():
    """A key that is given twice is a usage error that names it."""
    with pytest.raises(UsageError, match="k is given twice"):
        parse_words(["k=1", "k:=2"], read)


@pytest.mark.parametrize("text", ["[1]", "1", "null", "{", '"x"', "@note.txt"])
def test_args_not_an_object(text):
    """The value of --args is a JSON object or a usage error."""
    with pytest.raises(UsageError):
        parse_object(text, read)


def test_args_from_file():
    """An at-sign reads the object from a file."""
    assert parse_object("@data.json", read) == {"a": [1]}


INT, NUM, BOOL, STR = ({"type": name} for name in ("integer", "number", "boolean", "string"))


@pytest.mark.parametrize(
    ("text", "schema", "expected"),
    [
        ("3", INT, 3),
        ("-3", INT, -3),
        ("+3", INT, 3),
        ("007", INT, 7),
        ("3.0", INT, "3.0"),
        ("1e3", INT, "1e3"),
        ("three", INT, "three"),
        ("", INT, ""),
        ("٣", INT, "٣"),
        ("1_000", INT, "1_000"),
        (" 3", INT, " 3"),
        ("9" * 5000, INT, "9" * 5000),
        ("3", NUM, 3),
        ("3.5", NUM, 3.5),
        ("1e3", NUM, 1000.0),
        (".5", NUM, 0.5),
        ("1e999", NUM, "1e999"),
        ("nan", NUM, "nan"),
        ("inf", NUM, "inf"),
        ("true", BOOL, True),
        ("false", BOOL, False),
        ("True", BOOL, "True"),
        ("1", BOOL, "1"),
        ("3", STR, "3"),
        ("true", STR, "true"),
        ("3", {"type": ["integer", "null"]}, 3),
        ("3", {"type": ["integer", "number"]}, 3),
        ("3", {"type": ["integer", "string"]}, "3"),
        ("null", {"type": ["integer", "null"]}, "null"),
        ("3", {"anyOf": [{"type": "integer"}, {"type": "null"}]}, 3),
        ("3", {"anyOf": [{"type": "integer"}, {"type": "string"}]}, "3"),
        ("true", {"oneOf": [{"type": "null"}, {"type": "boolean"}]}, True),
        ("[1]", {"type": "array"}, "[1]"),
        ("{}", {"type": "object"}, "{}"),
        ("3", {}, "3"),
        ("3", None, "3"),
        ("3", True, "3"),
        ("3", {"type": 7}, "3"),
        ("3", {"type": "null"}, "3"),
        ("3", {"$ref": "#/$defs/n"}, "3"),
        ("3", {"enum": [1, 2, 3]}, "3"),
    ],
)
def test_coerce(text, schema, expected):
    """Text becomes what the schema plainly says, and stays text wherever there is doubt."""
    value = coerce(text, schema)

    assert value == expected
    assert type(value) is type(expected)


@given(st.text())
def test_coerce_string_is_untouched(text):
    """A text for a string property arrives unchanged."""
    assert coerce(text, STR) == text


def test_build_words_win():
    """Words of the line win over --args, exact values stay exact, keys without schema are strings."""
    schema = {"properties": {"n": INT, "flag": BOOL}}
    words = parse_words(["n=4", 'm:="5"', "extra=6", "flag=true"], read)

    built = build_arguments({"n": 1, "kept": [None]}, words, schema)

    assert built == {"n": 4, "kept": [None], "m": "5", "extra": "6", "flag": True}


@pytest.mark.parametrize("schema", [None, {}, {"properties": None}, {"properties": []}, [], "x", {"type": "object"}])
def test_build_schema_is_odd(schema):
    """A schema that says nothing leaves all texts strings."""
    assert build_arguments({}, (Word("k", "1", False),), schema) == {"k": "1"}


NAMES = ["time", "a", "a.b", "my server", "mcp__odd", "x-y"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("time.now", [("time", "now")]),
        ("time.get.current", [("time", "get.current")]),
        ("a.b.c", [("a.b", "c"), ("a", "b.c")]),
        ("a.b", [("a", "b")]),
        ("a.c", [("a", "c")]),
        ("my server.tool", [("my server", "tool")]),
        ("mcp__time__now", [("time", "now")]),
        ("mcp__my_server__do_it", [("my server", "do_it")]),
        ("mcp__a_b__c", [("a.b", "c")]),
        ("mcp__mcp__odd__t", [("mcp__odd", "t")]),
        ("mcp__odd.t", [("mcp__odd", "t")]),
        ("time", []),
        ("time.", []),
        (".now", []),
        ("timer.now", []),
        ("mcp__time", []),
        ("mcp__time__", []),
        ("mcp__timer__now", []),
        ("", []),
    ],
)
def test_server_candidates(text, expected):
    """The longest configured name that fits comes first; a prefix of a name never fits (S174, S180)."""
    assert server_candidates(text, NAMES, {name: server_prefix(name) for name in NAMES}) == expected


@given(
    st.lists(st.text("ab._", min_size=1, max_size=4), unique=True, min_size=1), st.text("ab.", min_size=1, max_size=4)
)
def test_every_route_is_found(names, tool):
    """Whatever the names, a route written out is among its candidates, and so is the callable name."""
    prefixes = {name: server_prefix(name) for name in names}
    for name in names:
        assert (name, tool) in server_candidates(f"{name}.{tool}", names, prefixes)
        assert name in [server for server, _ in server_candidates(callable_name(name, tool), names, prefixes)]


TAKES = "it takes: a (number), b"
SUM = {"type": "object", "properties": {"a": {"type": "number"}, "b": {}}, "required": ["a", "b", 3]}


@pytest.mark.parametrize(
    ("arguments", "schema", "lines"),
    [
        ({"a": 1, "b": 2}, SUM, []),
        ({"a": "no number", "b": 2}, SUM, []),
        ({"a": 1, "bb": 2}, SUM, ["it needs b, which was not given", "it knows no bb; did you mean b?", TAKES]),
        ({"a": 1, "b": 2, "xyz": 2}, SUM, ["it knows no xyz", TAKES]),
        ({"a": 1}, {"type": "object", "properties": {}}, ["it knows no a", "it takes: nothing"]),
        ({"a": 1}, {"type": "object"}, []),
        ({"a": 1}, None, []),
        ({}, {"properties": {"a": {}}, "required": "a"}, []),
    ],
)
def test_a_refused_call_is_compared_with_the_schema(arguments, schema, lines):
    """Names that lack or are unknown are told, nearest first; values are the server's to judge."""
    assert misfits(arguments, schema) == lines


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        (None, ""),
        ({}, ""),
        ({"properties": []}, ""),
        ({"properties": {}}, ""),
        ({"properties": {"a": {"type": "string"}}, "required": ["a"]}, "a=string"),
        ({"properties": {"a": {"type": "string"}}, "required": "a"}, "[a=string]"),
        ({"properties": {"a": {"type": ["integer", "null"]}, "b": {"type": "boolean"}}}, "[a=integer] [b=boolean]"),
        ({"properties": {"a": {"type": ["integer", "number"]}}}, "[a=integer|number]"),
        ({"properties": {"a": {"type": ["integer", "string"]}}}, "[a:=integer|string]"),
        ({"properties": {"a": {"type": "array"}, "b": {}, "c": True}}, "[a:=array] [b:=json] [c:=json]"),
    ],
)
def test_call_words(schema, words):
    """A tool's arguments are told as they are written, in brackets those that it does not need."""
    assert call_words(schema) == words
