"""Owns the YAML at the head of a ``SKILL.md``: finding it, and whether it says what the skill's entry said.

What this is not: a reader of YAML into values. Parsers disagree about what a plain ``yes`` or ``2026-01-01`` is, so the
file's own words are held against the entry, one beside the other.

This is the one doorway of PyYAML (the extra ``skills``), loaded when first needed.

Rule 1: the file is hostile. It is bounded before it is parsed, only nodes are made of it, and aliases stay aliases.
Rule 2: what two parsers could read differently in its structure (a key twice, a merge) is a difference.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from mcp_actors.errors import ConfigError, RemoteProtocolError
from mcp_actors.tools.sanitise import is_list

if TYPE_CHECKING:
    from collections.abc import Iterable

    import yaml

    from mcp_actors.jsontypes import Json, JsonObject

__all__ = ["MAX_FRONTMATTER_CHARS", "find_difference", "find_frontmatter"]

# The standard fields together take 2 KiB at most. Parsing this much takes a quarter of a second, brackets some seconds.
MAX_FRONTMATTER_CHARS: Final = 64 * 1024

_FENCE: Final = re.compile(r"^---[ \t]*\r?$", re.MULTILINE)
_DATE: Final = re.compile(r"\d{4}-\d\d-\d\d")
_NULLS: Final = frozenset({"", "~", "null", "Null", "NULL"})
_BOOLS: Final = {True: frozenset({"true", "yes", "on", "y"}), False: frozenset({"false", "no", "off", "n"})}
_BASES: Final = {"0x": 16, "0o": 8, "0b": 2}


def find_frontmatter(text: str) -> str:
    """Give what stands between the two fences at the head of a ``SKILL.md``.

    Raises:
        RemoteProtocolError: there is none, or too much of it.
    """
    text = text.removeprefix("\ufeff")
    opening = _FENCE.match(text)
    closing = None if opening is None else _FENCE.search(text, opening.end(), opening.end() + MAX_FRONTMATTER_CHARS)
    if opening is None or closing is None:
        raise RemoteProtocolError(reason=f"SKILL.md has no frontmatter of at most {MAX_FRONTMATTER_CHARS} characters")
    return text[opening.end() : closing.start()]


def find_difference(frontmatter: str, expected: JsonObject) -> str | None:
    """Name the field in which a file's frontmatter differs from that of its entry; None when they agree.

    Raises:
        RemoteProtocolError: it is no YAML.
        ConfigError: PyYAML is not installed.

    Source:
        MCP skills extension (SEP-2640), "Frontmatter Verification".
    """
    try:
        import yaml
    except ImportError as exc:
        raise ConfigError(
            reason="checking a skill needs the package PyYAML", remedy="install mcp-actors[skills]"
        ) from exc
    try:
        root = yaml.compose(frontmatter, Loader=yaml.SafeLoader)
    except (yaml.YAMLError, RecursionError, ValueError) as exc:
        raise RemoteProtocolError(reason="the frontmatter of SKILL.md is no YAML") from exc
    return _differ(root, expected, "")


def _differ(node: yaml.Node | None, expected: Json, path: str) -> str | None:
    """Walk both side by side; the entry, which is finite, bounds the walk."""
    from yaml import MappingNode, ScalarNode, SequenceNode

    if isinstance(node, ScalarNode) and _says(node, expected):
        return None
    if isinstance(node, MappingNode) and isinstance(expected, Mapping):
        fields = {key.value: value for key, value in node.value if isinstance(key, ScalarNode)}
        if len(fields) == len(node.value) and not any(key.tag.endswith(":merge") for key, _ in node.value):
            unlike = sorted(fields.keys() ^ expected.keys())
            if unlike:
                return f"{path}.{unlike[0]}".lstrip(".")
            return _first_difference(
                (fields[name], value, f"{path}.{name}".lstrip(".")) for name, value in expected.items()
            )
    if isinstance(node, SequenceNode) and is_list(expected) and len(expected) == len(node.value):
        both = zip(node.value, expected, strict=True)
        return _first_difference((item, value, f"{path}[{n}]") for n, (item, value) in enumerate(both))
    return path or "frontmatter"


def _first_difference(pairs: Iterable[tuple[yaml.Node, Json, str]]) -> str | None:
    found = (_differ(node, value, path) for node, value, path in pairs)
    return next((path for path in found if path is not None), None)


def _says(node: yaml.ScalarNode, expected: Json) -> bool:
    """Whether a scalar says this value. Only a plain one can be anything but a text."""
    text, is_plain = str(node.value), node.style is None
    if isinstance(expected, str):
        # A plain date is one to some writers of JSON.
        is_date = is_plain and _DATE.fullmatch(text) is not None and expected.startswith(f"{text}T00:00:00")
        return text == expected or is_date
    if not is_plain:
        return False
    if expected is None:
        return text in _NULLS
    if isinstance(expected, bool):
        return text.lower() in _BOOLS[expected]
    return isinstance(expected, int | float) and expected in _numbers(text)


def _numbers(text: str) -> list[int | float]:
    """What a plain scalar is to a parser of YAML 1.1, or of 1.2."""
    sign, digits = (-1 if text.startswith("-") else 1), text.lstrip("+-")
    octal = 8 if digits.startswith("0") else 0
    found: list[int | float] = []
    for written, base in ((digits, 10), (digits[2:], _BASES.get(digits[:2].lower(), 0)), (digits, octal)):
        with suppress(ValueError):
            found += [sign * int(written, base)] if base else []
    with suppress(ValueError):
        found.append(float(text))
    return found
