"""Owns the values that a form is made of: fields, their types, their choices.

What this is not: how they are read (`forms`) or filled in (`answers`).
"""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING

from mcp_actors.values import frozen

if TYPE_CHECKING:
    from mcp_actors.jsontypes import Json

__all__ = ["Choice", "Field", "FieldType", "Form"]


class FieldType(enum.StrEnum):
    """What a field holds."""

    STRING = "string"
    NUMBER = "number"
    INTEGER = "integer"
    BOOLEAN = "boolean"
    CHOICE = "choice"  # one of `choices`
    CHOICES = "choices"  # any of `choices`


@frozen
class Choice:
    """One value that may be chosen: as it goes on the wire, and as a person reads it."""

    value: Json
    title: str


@frozen
class Field:
    """One field of a form."""

    name: str
    type: FieldType
    title: str
    description: str = ""
    is_required: bool = False
    # None: there is none; JSON null is no value of any field.
    default: Json = None
    choices: tuple[Choice, ...] = ()
    # "email", "uri", "date", "date-time"; others are hints only.
    format: str | None = None
    pattern: str | None = None
    # Characters of a text, or values of a multiple choice.
    min_count: int = 0
    max_count: int | None = None
    minimum: float | None = None
    maximum: float | None = None
    # Whether it seems to ask for a secret, which a form must not do (spec_client 12).
    asks_secret: bool = False


@frozen
class Form:
    """The fields of a form, in the server's order."""

    fields: tuple[Field, ...] = ()

    @property
    def secret_fields(self) -> tuple[Field, ...]:
        """The fields that seem to ask for a secret."""
        return tuple(item for item in self.fields if item.asks_secret)
