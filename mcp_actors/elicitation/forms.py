"""Owns what a form asks for: the flat schema of an elicitation, read into fields.

What this is not: the judge of what is filled in (`answers`), nor how a form looks (a door's prompter).

Rule 1: "flat object with primitive properties only". Anything else is refused, since no person could fill it in.
Rule 2: field names and the values of choices stay raw, for the wire; titles and descriptions are cleaned, for people.
Rule 3: a default that the field itself would not take is no default.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import TYPE_CHECKING, Final, TypeAlias, TypeGuard

from attrs import evolve

from mcp_actors.elicitation.answers import check_value
from mcp_actors.elicitation.fields import Choice, Field, FieldType, Form
from mcp_actors.values import frozen

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mcp_actors.jsontypes import Json, JsonObject

__all__ = ["Clean", "RefusedForm", "read_form"]

# Makes a server's text safe to be seen; raises `RemoteProtocolError` for text that cannot be.
Clean: TypeAlias = Callable[[str], str]

MAX_FIELDS: Final = 100
MAX_CHOICES: Final = 1000
# Titles and descriptions are cut here, as those of tools are (S157).
MAX_TEXT_CHARS: Final = 2048


@frozen
class RefusedForm:
    """A schema that is no form, and why."""

    reason: str


class _Refused(Exception):
    """Never leaves this file."""


def read_form(schema: Json, clean: Clean) -> Form | RefusedForm:
    """Read `requestedSchema`.

    Args:
        schema: as sent.
        clean: see `Clean`.

    Raises:
        RemoteProtocolError: a text in it cannot be cleaned.

    Source:
        S283, F09; spec_client 9.5.
    """
    try:
        return Form(_read_fields(schema, clean))
    except _Refused as exc:
        return RefusedForm(str(exc))


def _read_fields(schema: Json, clean: Clean) -> tuple[Field, ...]:
    if not isinstance(schema, Mapping) or schema.get("type", "object") != "object":
        raise _Refused("requestedSchema is not an object schema")
    properties, required = schema.get("properties", {}), schema.get("required", ())
    if not isinstance(properties, Mapping) or not _is_names(required):
        raise _Refused("requestedSchema has malformed 'properties' or 'required'")
    if len(properties) > MAX_FIELDS:
        raise _Refused(f"requestedSchema has more than {MAX_FIELDS} fields")
    if any(name not in properties for name in required):
        raise _Refused("requestedSchema requires a field that it does not have")
    return tuple(_read_field(name, inner, name in required, clean) for name, inner in properties.items())


def _is_names(value: Json) -> TypeGuard[Sequence[str]]:
    return isinstance(value, list | tuple) and all(isinstance(name, str) for name in value)


def _read_field(name: str, schema: Json, is_required: bool, clean: Clean) -> Field:
    if not isinstance(schema, Mapping):
        raise _Refused(f"the field {name[:80]!r} has no schema")
    kind = _type_of(schema)
    reader = _READERS.get(kind) if isinstance(kind, str) else None
    if reader is None:
        raise _Refused(f"the field {name[:80]!r} is not a primitive one")
    title = _text(schema, "title", clean) or clean(name)[:MAX_TEXT_CHARS] or "?"
    plain = Field(name, FieldType.STRING, title, _text(schema, "description", clean), is_required)
    read = reader(plain, schema, clean)
    if read.type is FieldType.STRING:
        read = evolve(read, asks_secret=_asks_secret(read))
    default = schema.get("default")
    if default is not None and check_value(read, default) is None:
        read = evolve(read, default=default)
    return read


def _type_of(schema: JsonObject) -> Json:
    kind = schema.get("type")
    if isinstance(kind, list | tuple):
        # Not in the spec, and common: "string or null" is a field that may be left out.
        named = [item for item in kind if item != "null"]
        return named[0] if len(named) == 1 else None
    if kind is None and ("enum" in schema or "oneOf" in schema):
        return "string"
    return kind


def _text(schema: JsonObject, key: str, clean: Clean) -> str:
    text = schema.get(key)
    return clean(text)[:MAX_TEXT_CHARS] if isinstance(text, str) else ""


def _count(schema: JsonObject, key: str) -> int | None:
    value = schema.get(key)
    is_count = isinstance(value, int | float) and not isinstance(value, bool) and value >= 0 and value == value // 1
    return int(value) if is_count and isinstance(value, int | float) else None


def _bound(schema: JsonObject, key: str) -> float | None:
    value = schema.get(key)
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


# ── the primitive types ──────────────────────────────────────────────────────────────────────────────────────────────


def _read_string(plain: Field, schema: JsonObject, clean: Clean) -> Field:
    choices = _read_choices(plain.name, schema, "oneOf", clean)
    if choices is not None:
        return evolve(plain, type=FieldType.CHOICE, choices=choices)
    pattern, form = schema.get("pattern"), schema.get("format")
    return evolve(
        plain,
        format=form if isinstance(form, str) else None,
        pattern=pattern if isinstance(pattern, str) else None,
        min_count=_count(schema, "minLength") or 0,
        max_count=_count(schema, "maxLength"),
    )


def _read_number(plain: Field, schema: JsonObject, clean: Clean) -> Field:
    del clean
    kind = FieldType.INTEGER if _type_of(schema) == "integer" else FieldType.NUMBER
    return evolve(plain, type=kind, minimum=_bound(schema, "minimum"), maximum=_bound(schema, "maximum"))


def _read_boolean(plain: Field, schema: JsonObject, clean: Clean) -> Field:
    del schema, clean
    return evolve(plain, type=FieldType.BOOLEAN)


def _read_array(plain: Field, schema: JsonObject, clean: Clean) -> Field:
    items = schema.get("items")
    choices = None
    if isinstance(items, Mapping):
        choices = _read_choices(plain.name, items, "anyOf", clean) or _read_choices(plain.name, items, "oneOf", clean)
    if choices is None:
        raise _Refused(f"the field {plain.name[:80]!r} is an array, and no multiple choice")
    return evolve(
        plain,
        type=FieldType.CHOICES,
        choices=choices,
        min_count=_count(schema, "minItems") or 0,
        max_count=_count(schema, "maxItems"),
    )


_READERS: Final[Mapping[str, Callable[[Field, JsonObject, Clean], Field]]] = {
    "string": _read_string,
    "number": _read_number,
    "integer": _read_number,
    "boolean": _read_boolean,
    "array": _read_array,
}


def _read_choices(name: str, schema: JsonObject, combinator: str, clean: Clean) -> tuple[Choice, ...] | None:
    """Read the shapes of an enum: plain, with `enumNames` beside it (legacy), or constants with titles."""
    listed, titled = schema.get("enum"), schema.get(combinator)
    if isinstance(listed, list | tuple):
        names = schema.get("enumNames")
        titles = names if isinstance(names, list | tuple) and len(names) == len(listed) else listed
        pairs = [(value, title) for value, title in zip(listed, titles, strict=True)]
    elif isinstance(titled, list | tuple):
        if not all(isinstance(option, Mapping) and "const" in option for option in titled):
            raise _Refused(f"the field {name[:80]!r} has a choice without 'const'")
        pairs = [(o["const"], o.get("title", o["const"])) for o in titled if isinstance(o, Mapping)]
    else:
        return None
    if not 0 < len(pairs) <= MAX_CHOICES:
        raise _Refused(f"the field {name[:80]!r} offers {len(pairs)} choices")
    if not all(isinstance(value, str | int | float) for value, _ in pairs):
        raise _Refused(f"the field {name[:80]!r} offers what is no primitive value")
    return tuple(Choice(value, clean(str(title))[:MAX_TEXT_CHARS] or str(value)[:80]) for value, title in pairs)


# ── secrets ──────────────────────────────────────────────────────────────────────────────────────────────────────────

_WORDS: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_SECRET_WORDS: Final = frozenset(
    {"password", "passwd", "pwd", "passphrase", "passcode", "secret", "secrets", "credential", "credentials", "apikey"}
    | {"cvv", "cvc", "otp", "totp", "mnemonic", "bearer"}
)
# Pairs of neighbours; "token" itself must end the name: `max_tokens` and `token count` ask for numbers.
_SECRET_PAIRS: Final = frozenset(
    {("api", "key"), ("access", "key"), ("private", "key"), ("secret", "key"), ("signing", "key"), ("security", "code")}
    | {("pin", "code"), ("seed", "phrase"), ("recovery", "phrase"), ("card", "number"), ("encryption", "key")}
)


def _asks_secret(item: Field) -> bool:
    return item.format == "password" or any(_names_secret(text) for text in (item.name, item.title))


def _names_secret(text: str) -> bool:
    words = [word.lower() for word in _WORDS.findall(text[:200])]
    if any(word in _SECRET_WORDS for word in words) or (words and words[-1] in ("token", "pin")):
        return True
    return any(pair in _SECRET_PAIRS for pair in pairwise(words))
