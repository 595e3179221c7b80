"""Owns the way from the bytes of a JSON or TOML file to a `Document` of plain values.

What this is not: the wire's codec (`protocol.jsonrpc`), nor what the values mean (`formats`, `validate`).

Rules. Comments and trailing commas are accepted outside strings, a byte order mark too (faults 22, 24). Numbers that
JSON does not know or nobody can keep are refused, or stand as infinity where one entry must not cost the others. A
message never quotes the file (S030).
"""

from __future__ import annotations

import codecs
import json
import math
import re
from typing import TYPE_CHECKING

from mcp_actors.config.documents import Document
from mcp_actors.config.positions import STRING, TOKEN
from mcp_actors.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcp_actors.jsontypes import Json

__all__ = [
    "MAX_DEPTH",
    "blank_comments",
    "decode_text",
    "mark_of",
    "parse_json",
    "parse_json_with_odd_numbers",
    "parse_toml",
]

# Levels of lists and objects. Real files have seven; anything deeper than this is an attack or an accident.
MAX_DEPTH = 64
# Of a whole number; Python reads no more than 4300.
MAX_DIGITS = 4000

# In the order that matters: a UTF-32 mark begins with a UTF-16 one.
MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)

# Nothing is scanned twice, whatever the file holds.
COMMENT = re.compile(rf"({STRING})|//[^\n]*+|/\*.*?(?:\*/|\Z)", re.DOTALL)
TRAILING_COMMA = re.compile(rf"({STRING})|,(?=\s*[}}\]])")
TOML_PLACE = re.compile(r"\s*\(at (?:line (\d+), column (\d+)|end of document)\)$")


def decode_text(data: bytes, file: str) -> str:
    """Decode a file by its byte order mark, UTF-8 without one.

    Raises:
        ConfigError: the bytes are not text in that encoding.
    """
    mark, encoding = mark_of(data)
    try:
        return data[len(mark) :].decode(encoding)
    except UnicodeDecodeError as exc:
        line = data.count(b"\n", 0, len(mark) + exc.start) + 1
        raise ConfigError(
            file=file, line=line, column=1, reason=f"is not {encoding.upper()} text", remedy="save it as UTF-8"
        ) from None


def mark_of(data: bytes) -> tuple[bytes, str]:
    """The byte order mark that `data` begins with, empty when none, and the encoding that it names."""
    return next(((mark, name) for mark, name in MARKS if data.startswith(mark)), (b"", "utf-8"))


def parse_json(text: str, file: str) -> Document:
    """Parse JSON with comments and trailing commas.

    Raises:
        ConfigError: with line and column; never with a part of the text.

    Source:
        Faults 22 and 24; S001.
    """
    return _parse_json(text, file, _refuse, _finite)


def parse_json_with_odd_numbers(text: str, file: str) -> Document:
    """Parse JSON as `parse_json` does, but for numbers that it refuses: they stand in it as infinity.

    Raises:
        ConfigError: with line and column; never with a part of the text.
    """
    odd: list[str] = []

    def keep(token: str) -> float:
        odd.append(token)
        return math.inf

    def number(token: str) -> float:
        read = float(token)
        return read if math.isfinite(read) else keep(token)

    def whole(token: str) -> Json:
        return int(token) if len(token) <= MAX_DIGITS else keep(token)

    try:
        document = _parse_json(text, file, keep, number)
    except _EndlessDigits:
        document = _parse_json(text, file, keep, number, whole)
    document.has_odd_numbers = bool(odd)
    return document


def _parse_json(
    text: str,
    file: str,
    constant: Callable[[str], Json],
    number: Callable[[str], float],
    whole: Callable[[str], Json] | None = None,
) -> Document:
    text = text.removeprefix("\ufeff")
    if not text.strip():
        raise ConfigError(file=file, line=1, column=1, reason="the file is empty", remedy='write {"mcpServers": {}}')
    duplicates: dict[str, None] = {}

    def pairs(items: list[tuple[str, Json]]) -> dict[str, Json]:
        found = dict(items)
        if len(found) != len(items):
            seen: set[str] = set()
            for key, _ in items:
                if key in seen:
                    duplicates[key] = None
                seen.add(key)
        return found

    def load(source: str) -> Json:
        loaded: Json = json.loads(
            source, object_pairs_hook=pairs, parse_constant=constant, parse_float=number, parse_int=whole
        )
        return loaded

    clean = text
    try:
        try:
            value = load(text)
        except json.JSONDecodeError:
            # Only now: most files are strict JSON, which the C scanner reads a hundred times faster.
            duplicates.clear()
            clean = _blank_extras(text, file)
            value = load(clean)
    except json.JSONDecodeError as exc:
        raise ConfigError(
            file=file, line=exc.lineno, column=exc.colno, reason=f"is not valid JSON: {_plain(exc.msg)}"
        ) from None
    except _RefusedNumber as exc:
        line, column = _find_token(clean, exc.token)
        raise ConfigError(
            file=file, line=line, column=column, reason="holds a number that JSON does not know or we cannot keep"
        ) from None
    except RecursionError:
        raise _too_deep(file) from None
    except ValueError:
        raise _EndlessDigits(file=file, reason="holds a number with too many digits") from None
    if _depth_exceeds(value, MAX_DEPTH):
        raise _too_deep(file)
    return Document(value, clean, tuple(duplicates))


def parse_toml(text: str, file: str) -> Document:
    """Parse TOML (Codex).

    Raises:
        ConfigError: with line and column where the parser knows them.
    """
    import tomllib  # only who has a TOML file pays for it

    try:
        value: Json = tomllib.loads(text.removeprefix("\ufeff"))
    except tomllib.TOMLDecodeError as exc:
        place = TOML_PLACE.search(str(exc))
        line, column = (int(place[1]), int(place[2])) if place and place[1] else (None, None)
        # The parser's own sentence may quote a key or a value: only its place is told.
        raise ConfigError(file=file, line=line, column=column, reason="is not valid TOML") from None
    except RecursionError:
        raise _too_deep(file) from None
    if _depth_exceeds(value, MAX_DEPTH):
        raise _too_deep(file)
    return Document(value, "", has_odd_numbers=True)  # TOML has `inf` and `nan`


class _EndlessDigits(ConfigError):
    """An integer of more digits than Python reads."""


class _RefusedNumber(Exception):
    def __init__(self, token: str) -> None:
        super().__init__()
        self.token = token


def _refuse(token: str) -> Json:
    raise _RefusedNumber(token)


def _finite(token: str) -> float:
    number = float(token)
    if not math.isfinite(number):
        raise _RefusedNumber(token)
    return number


def _too_deep(file: str) -> ConfigError:
    return ConfigError(file=file, reason=f"is nested deeper than {MAX_DEPTH} levels")


def _plain(message: str) -> str:
    """The parser's sentence without what it quotes."""
    return message.partition(": ")[0].lower()


def _blank_extras(text: str, file: str) -> str:
    """Turn comments and trailing commas into blanks, so that every position stays."""
    clean = blank_comments(text, file)

    def comma(match: re.Match[str]) -> str:
        if match[1] is not None:
            return match[1]
        before = match.start() - 1
        while before >= 0 and clean[before].isspace():
            before -= 1
        # It trails a value; in ``{,}`` and ``[1,,]`` it trails nothing, and is a mistake.
        return "," if before < 0 or clean[before] in "{[,:" else " "

    return TRAILING_COMMA.sub(comma, clean)


def blank_comments(text: str, file: str) -> str:
    """Turn comments into blanks; line ends and every position stay.

    Raises:
        ConfigError: a comment never ends.
    """

    def comment(match: re.Match[str]) -> str:
        if match[1] is not None:
            return match[1]
        found = match.group()
        if found.startswith("/*") and (len(found) < 4 or not found.endswith("*/")):
            line = text.count("\n", 0, match.start()) + 1
            column = match.start() - text.rfind("\n", 0, match.start())
            raise ConfigError(file=file, line=line, column=column, reason="a comment that begins here never ends")
        return re.sub(r"[^\n]", " ", found)

    return COMMENT.sub(comment, text)


def _depth_exceeds(value: Json, limit: int) -> bool:
    """Level by level, so that no depth can exhaust the stack."""
    level: list[Json] = [value]
    for _ in range(limit + 1):
        below: list[Json] = []
        for item in level:
            if isinstance(item, dict):
                below.extend(item.values())
            elif isinstance(item, list):
                below.extend(item)
        if not below:
            return False
        level = below
    return True


def _find_token(text: str, lexeme: str) -> tuple[int, int]:
    """Line and column of a bare lexeme outside strings."""
    for match in TOKEN.finditer(text):
        if match[3] == lexeme:
            start = match.start()
            return text.count("\n", 0, start) + 1, start - text.rfind("\n", 0, start)
    return 1, 1
