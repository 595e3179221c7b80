"""Owns the judging of answers: is this value one that the field takes, is this form filled in.

What this is not: where answers come from. A person's, a hook's and a file's are all judged here before they are sent
(S292, S316, E04).

Rule 1: on accept, a field that was left out takes its default (F09).
Rule 2: what the form does not ask for is a problem; it would be sent to a server that never asked.
Rule 3: a problem never quotes the value.
"""

from __future__ import annotations

import math
import re
from datetime import date, datetime
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from attrs import field

from mcp_actors.elicitation.fields import Field, FieldType, Form
from mcp_actors.elicitation.patterns import matches
from mcp_actors.values import frozen

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mcp_actors.jsontypes import Json, JsonObject

__all__ = ["Filled", "NotRead", "check_value", "fill_form", "read_text"]

MAX_VALUE_CHARS: Final = 100_000


@frozen
class Filled:
    """A form with its values. `content` is what may be sent if there are no `problems` (raw name -> what is wrong)."""

    content: JsonObject = field(repr=False)
    problems: Mapping[str, str] = field(factory=dict)


def fill_form(form: Form, content: JsonObject) -> Filled:
    """Judge the values of a form, and put in the defaults of the fields that were left out.

    Args:
        form: what was asked for.
        content: maps raw field name -> value.

    Source:
        S292, F09, E04.
    """
    filled: dict[str, Json] = {}
    problems: dict[str, str] = {}
    for item in form.fields:
        value = content.get(item.name, item.default)
        if value is None:
            if item.is_required:
                problems[item.name] = "is required"
            continue
        problem = check_value(item, value)
        if problem is not None:
            problems[item.name] = problem
        filled[item.name] = _normal(item, value)
    known = {item.name for item in form.fields}
    problems.update((name, "is not a field of this form") for name in content if name not in known)
    return Filled(filled, problems)


def check_value(item: Field, value: Json) -> str | None:
    """Say what is wrong with a value, None when the field takes it."""
    return _CHECKS[item.type](item, value)


def _normal(item: Field, value: Json) -> Json:
    """3.0 is an integer in JSON Schema; servers that parse JSON strictly want to read 3."""
    return int(value) if item.type is FieldType.INTEGER and isinstance(value, float) and value.is_integer() else value


# ── values ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def _check_string(item: Field, value: Json) -> str | None:
    if not isinstance(value, str):
        return "must be a text"
    size = len(value)
    if size < item.min_count:
        return f"must have at least {item.min_count} characters"
    most = MAX_VALUE_CHARS if item.max_count is None else min(MAX_VALUE_CHARS, item.max_count)
    if size > most:
        return f"must have at most {most} characters"
    is_format = _FORMATS.get(item.format or "")
    if is_format is not None and not is_format(value):
        return f"must be {_FORMAT_WORDS[item.format or '']}"
    if item.pattern is not None and matches(item.pattern, value) is False:
        return f"must match the pattern {ascii(item.pattern)[:80]}"
    return None


def _check_number(item: Field, value: Json) -> str | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return "must be a number"
    if isinstance(value, float) and not math.isfinite(value):
        return "must be a finite number"
    if item.type is FieldType.INTEGER and isinstance(value, float) and not value.is_integer():
        return "must be a whole number"
    if item.minimum is not None and value < item.minimum:
        return f"must be at least {item.minimum:.15g}"
    if item.maximum is not None and value > item.maximum:
        return f"must be at most {item.maximum:.15g}"
    return None


def _check_boolean(item: Field, value: Json) -> str | None:
    del item
    return None if isinstance(value, bool) else "must be true or false"


def _check_choice(item: Field, value: Json) -> str | None:
    return None if _is_offered(item, value) else "must be one of the choices"


def _check_choices(item: Field, value: Json) -> str | None:
    if not isinstance(value, list | tuple) or not all(_is_offered(item, inner) for inner in value):
        return "must be a list of the choices"
    if len(value) < item.min_count:
        return f"needs at least {item.min_count} choices"
    if item.max_count is not None and len(value) > item.max_count:
        return f"takes at most {item.max_count} choices"
    return None


def _is_offered(item: Field, value: Json) -> bool:
    # In Python 1 == True; in JSON it is not.
    return any(
        choice.value == value and isinstance(choice.value, bool) is isinstance(value, bool) for choice in item.choices
    )


_CHECKS: Final[Mapping[FieldType, Callable[[Field, Json], str | None]]] = {
    FieldType.STRING: _check_string,
    FieldType.NUMBER: _check_number,
    FieldType.INTEGER: _check_number,
    FieldType.BOOLEAN: _check_boolean,
    FieldType.CHOICE: _check_choice,
    FieldType.CHOICES: _check_choices,
}

# ── formats ──────────────────────────────────────────────────────────────────────────────────────────────────────────

_EMAIL: Final = re.compile(r"[^\s@<>()\[\],;:\\\"]{1,64}@[^\s@<>()\[\],;:\\\"]{1,255}")
_DATE: Final = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)
_DATE_TIME: Final = re.compile(r"(\d{4}-\d{2}-\d{2}[Tt]\d{2}:\d{2}:)(\d{2})(\.\d+)?([Zz]|[+-]\d{2}:\d{2})", re.ASCII)
_URI: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:[!-~]+", re.ASCII)


def _is_date(text: str) -> bool:
    try:
        date.fromisoformat(text)
    except ValueError:
        return False
    return _DATE.fullmatch(text) is not None


def _is_date_time(text: str) -> bool:
    """RFC 3339: the offset is required, and the last minute of a day may have a leap second."""
    parts = _DATE_TIME.fullmatch(text)
    if parts is None:
        return False
    try:
        datetime.fromisoformat(f"{parts[1]}{'59' if parts[2] == '60' else parts[2]}{parts[4]}".upper())
    except ValueError:
        return False
    return True


def _is_uri(text: str) -> bool:
    try:
        urlsplit(text)
    except ValueError:
        return False
    return _URI.fullmatch(text) is not None


_FORMATS: Final[Mapping[str, Callable[[str], bool]]] = {
    "email": lambda text: _EMAIL.fullmatch(text) is not None,
    "uri": _is_uri,
    "date": _is_date,
    "date-time": _is_date_time,
}
_FORMAT_WORDS: Final = {
    "email": "an e-mail address",
    "uri": "a URI such as https://example.com/",
    "date": "a date such as 2026-07-28",
    "date-time": "a date and time such as 2026-07-28T12:00:00Z",
}


# ── typed text ───────────────────────────────────────────────────────────────────────────────────────────────────────


@frozen
class NotRead:
    """Text that is no value of its field, and why."""

    problem: str


_YES: Final = frozenset({"y", "yes", "true", "1", "on"})
_NO: Final = frozenset({"n", "no", "false", "0", "off"})


def read_text(item: Field, text: str) -> Json | NotRead:
    """Read what a person typed into a field; choices by number, title or value, several of them between commas."""
    value = _read(item, text)
    if isinstance(value, NotRead):
        return value
    problem = check_value(item, value)
    return value if problem is None else NotRead(problem)


def _read(item: Field, text: str) -> Json | NotRead:
    bare = text.strip()
    match item.type:
        case FieldType.BOOLEAN:
            word = bare.lower()
            return True if word in _YES else False if word in _NO else NotRead("answer yes or no")
        case FieldType.INTEGER | FieldType.NUMBER:
            return _read_number(bare)
        case FieldType.CHOICE:
            return _choose(item, bare)
        case FieldType.CHOICES:
            whole = _choose(item, bare)
            if not isinstance(whole, NotRead):
                return [whole]
            chosen = [_choose(item, part.strip()) for part in bare.split(",") if part.strip()]
            failed = next((one for one in chosen if isinstance(one, NotRead)), None)
            return failed or [one for one in chosen if not isinstance(one, NotRead)]
        case FieldType.STRING:
            return text


def _read_number(text: str) -> int | float | NotRead:
    try:
        return int(text)
    except ValueError:
        pass
    try:
        return float(text)
    except ValueError:
        return NotRead("type a number")


def _choose(item: Field, text: str) -> Json | NotRead:
    """Titles and values go before numbers: a form may well offer "2" as its first choice."""
    for choice in item.choices:
        if text == choice.title or text == str(choice.value):
            return choice.value
    for choice in item.choices:
        if text.lower() == choice.title.lower():
            return choice.value
    if text.isascii() and text.isdigit() and len(text) <= 4 and 1 <= int(text) <= len(item.choices):
        return item.choices[int(text) - 1].value
    return NotRead(f"choose by number, 1 to {len(item.choices)}")
