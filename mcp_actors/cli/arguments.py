"""Owns the words of ``call``: which server and tool are meant, and what ``key=value`` words say.

What this is not: validation; the server checks what it is sent. Pure: texts in, values out; `read` opens files.

Forms, told apart by whichever sign comes first in the word:

==================  ================================================================================================
``key=text``        by the tool's schema when that names one plain type (integer, number, boolean) and the text reads as
                    one exactly; a string in every other case
``key:=json``       the JSON value, exactly
``key=@file``       the file's text, as ``key=text`` would take it; ``@-`` is standard input
``key:=@file``      the file's JSON
``--args JSON``     an object to start from (``@file`` too); words of the line win over its keys
==================  ================================================================================================

A text that starts with an at-sign is written ``key:='"@text"'``.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from mcp_actors.cli.exits import UsageError

if TYPE_CHECKING:
    from mcp_actors.jsontypes import Json, JsonObject

__all__ = [
    "Word",
    "build_arguments",
    "call_words",
    "coerce",
    "misfits",
    "parse_object",
    "parse_word",
    "parse_words",
    "server_candidates",
]

# Takes the text after the at-sign, gives the file's text.
ReadFile: TypeAlias = Callable[[str], str]

_WORD: Final = re.compile(r"(?P<key>(?!:=)[^=]+?)(?P<sign>:=@|:=|=@|=)(?P<text>.*)", re.DOTALL)
_INTEGER: Final = re.compile(r"[+-]?[0-9]+")
_NUMBER: Final = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?")
_BOOLEANS: Final[Mapping[str, bool]] = {"true": True, "false": False}


class Word(NamedTuple):
    """One ``key=value`` word."""

    key: str
    # Text that the schema may turn into something else, or an exact JSON value.
    value: Json
    is_exact: bool


def _no_constant(text: str) -> float:
    raise ValueError(f"{text} is no JSON")


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text} is too large a number")
    return number


def _parse_json(text: str, place: str) -> Json:
    try:
        value: Json = json.loads(text, parse_constant=_no_constant, parse_float=_finite)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{place} is no JSON: {error}") from error
    return value


def parse_word(word: str, read: ReadFile) -> Word:
    """Understand one ``key=value`` word.

    Raises:
        UsageError: it has no sign, no key, or its JSON cannot be read.
    """
    match = _WORD.fullmatch(word)
    if match is None:
        raise UsageError(f"{word!r} is no argument: write key=text, key:=json or key=@file")
    key, sign, text = match.group("key", "sign", "text")
    if sign.endswith("@"):
        text = read(text)
    if sign.startswith(":"):
        return Word(key, _parse_json(text, f"{key}:="), is_exact=True)
    return Word(key, text, is_exact=False)


def parse_words(words: Sequence[str], read: ReadFile) -> tuple[Word, ...]:
    """Understand all ``key=value`` words of a line, in order.

    Raises:
        UsageError: one of them cannot be read, or a key occurs twice.
    """
    parsed = tuple(parse_word(word, read) for word in words)
    seen: set[str] = set()
    for word in parsed:
        if word.key in seen:
            raise UsageError(f"{word.key} is given twice")
        seen.add(word.key)
    return parsed


def parse_object(text: str, read: ReadFile) -> JsonObject:
    """Read the value of ``--args``: a JSON object, or ``@file`` with one.

    Raises:
        UsageError: it is no JSON object.
    """
    if text.startswith("@"):
        text = read(text[1:])
    value = _parse_json(text, "--args")
    if not isinstance(value, dict):
        raise UsageError("--args is no JSON object")
    return value


def _plain_types(schema: object) -> frozenset[str]:
    """Name the types that a property's schema allows, without null; empty when it does not say so plainly."""
    if not isinstance(schema, Mapping):
        return frozenset()
    named = schema.get("type")
    if isinstance(named, str):
        return frozenset({named}) - {"null"}
    if isinstance(named, Sequence):
        return frozenset(name for name in named if isinstance(name, str)) - {"null"}
    for word in ("anyOf", "oneOf"):
        branches = schema.get(word)
        if isinstance(branches, Sequence) and not isinstance(branches, str):
            parts = [
                branch for branch in branches if not (isinstance(branch, Mapping) and branch.get("type") == "null")
            ]
            if len(parts) == 1:
                return _plain_types(parts[0])
    return frozenset()


def _to_integer(text: str) -> Json:
    return int(text) if _INTEGER.fullmatch(text) and len(text) <= 400 else text


def _to_number(text: str) -> Json:
    if _INTEGER.fullmatch(text):
        return _to_integer(text)
    value = float(text) if _NUMBER.fullmatch(text) else None
    return text if value is None or value in (float("inf"), float("-inf")) else value


def _to_boolean(text: str) -> Json:
    return _BOOLEANS.get(text, text)


_COERCIONS: Final[Mapping[frozenset[str], Callable[[str], Json]]] = {
    frozenset({"integer"}): _to_integer,
    frozenset({"number"}): _to_number,
    frozenset({"integer", "number"}): _to_number,
    frozenset({"boolean"}): _to_boolean,
}


def coerce(text: str, schema: object) -> Json:
    """Turn text into what a property's schema plainly asks for; text stays text wherever there is any doubt."""
    coercion = _COERCIONS.get(_plain_types(schema))
    return text if coercion is None else coercion(text)


def build_arguments(base: JsonObject, words: Sequence[Word], input_schema: object) -> dict[str, Json]:
    """Put together the arguments of a call: `base`, then the words, each by the schema of its property."""
    properties = input_schema.get("properties") if isinstance(input_schema, Mapping) else None
    schemas = properties if isinstance(properties, Mapping) else {}
    arguments = dict(base)
    for word in words:
        is_text = isinstance(word.value, str) and not word.is_exact
        arguments[word.key] = coerce(str(word.value), schemas.get(word.key)) if is_text else word.value
    return arguments


def misfits(arguments: JsonObject, input_schema: object) -> list[str]:
    """Say in what a refused call's arguments plainly differ from the tool's schema; no lines where they do not.

    A guess at what the server may have meant, for a person: names alone are compared, and nothing is refused for it.
    """
    properties = input_schema.get("properties") if isinstance(input_schema, Mapping) else None
    if not isinstance(input_schema, Mapping) or not isinstance(properties, Mapping):
        return []
    required = input_schema.get("required")
    needed = [name for name in required if isinstance(name, str)] if isinstance(required, list) else []
    from difflib import get_close_matches

    lines = [f"it needs {name}, which was not given" for name in needed if name not in arguments]
    for name in arguments:
        if name not in properties:
            nearest = get_close_matches(name, [str(known) for known in properties], n=1, cutoff=0.5)
            lines.append(f"it knows no {name}" + (f"; did you mean {nearest[0]}?" if nearest else ""))
    if lines:
        lines.append(
            f"it takes: {', '.join(_parameter(str(name), properties[name]) for name in properties) or 'nothing'}"
        )
    return lines


def call_words(input_schema: object) -> str:
    """What may follow ``call SERVER.TOOL`` by the tool's schema, such as ``text=string [tags:=array]``."""
    properties = input_schema.get("properties") if isinstance(input_schema, Mapping) else None
    if not isinstance(input_schema, Mapping) or not isinstance(properties, Mapping):
        return ""
    required = input_schema.get("required")
    needed = required if isinstance(required, list) else ()
    words = {name: _word_of(str(name), properties[name]) for name in properties}
    return " ".join(word if name in needed else f"[{word}]" for name, word in words.items())


def _word_of(name: str, schema: object) -> str:
    types = _plain_types(schema)
    sign = "=" if types == {"string"} or types in _COERCIONS else ":="
    return name + sign + ("|".join(sorted(types)) or "json")


def _parameter(name: str, schema: object) -> str:
    kind = schema.get("type") if isinstance(schema, Mapping) else None
    return f"{name} ({kind})" if isinstance(kind, str) else name


def server_candidates(text: str, names: Sequence[str], prefixes: Mapping[str, str]) -> list[tuple[str, str]]:
    """Find which servers ``SERVER.TOOL`` or a callable name can mean.

    Args:
        text: the word of the command line.
        names: configured servers; a name may hold dots.
        prefixes: maps server name -> prefix of its callable names (``mcp__name__``).

    Returns:
        (server, rest of the text) pairs, longest server name first, dotted form before callable form; empty when no
        configured server fits.

    Source:
        S174, S180.
    """
    longest_first = sorted(names, key=lambda name: (-len(name), name))
    dotted = [(name, text[len(name) + 1 :]) for name in longest_first if text.startswith(f"{name}.")]
    called = [(name, text[len(prefixes[name]) :]) for name in longest_first if text.startswith(prefixes[name])]
    return [(name, rest) for name, rest in dotted + called if rest]
