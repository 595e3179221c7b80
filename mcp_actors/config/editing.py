"""Owns changes to the text of a JSON file: set or remove what stands at one key path, and leave the rest as it is.

What this is not: reading or writing files (`files.writing`), what an entry means, where things stand in a text
(`spans`), or how its writer lays it out (`layout`).

Rules.

1. A text that does not parse is not edited (fault 23).
2. Order, unknown keys, comments, line ends and the layout of everything else stay as a person wrote them.
3. Whatever is about to be returned is parsed again and compared with what was asked for; an edit that would say
   anything else is not made.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING

from mcp_actors.config.jsonc import blank_comments, parse_json
from mcp_actors.config.layout import draw, indent_of, line_end, line_margin, margin_before, newline_of
from mcp_actors.config.notes import dotted
from mcp_actors.config.spans import Member, ObjectSpan, object_at, root_object, strings_in
from mcp_actors.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mcp_actors.jsontypes import Json

__all__ = ["document_with", "document_without", "mask_texts", "remove_value", "set_value", "set_values"]


def set_value(text: str, path: tuple[str, ...], value: Json, file: str) -> str:
    """Give the text in which `value` stands at `path`; objects on the way there are made.

    Args:
        text: a JSON object, with comments and trailing commas or without.
        path: keys from the root, at least one.
        value: what shall stand there, in the place of what does or as the last member.
        file: for messages.

    Raises:
        ConfigError: `text` does not parse, or what is no object stands on the way.
    """
    wanted = document_with(_parse(text, file), path, value, file)
    bare = blank_comments(text, file)
    held, depth = root_object(bare), 0
    while (member := held.find(path[depth])) is not None and depth < len(path) - 1 and bare[member.value] == "{":
        held, depth = object_at(bare, member.value), depth + 1
    # What is null or missing on the way becomes an object around the value.
    for key in reversed(path[depth + 1 :]):
        value = {key: value}
    edited = (
        _insert(text, bare, held, [(path[depth], value)]) if member is None else _replace(text, bare, member, value)
    )
    return _checked(edited, wanted, file)


def set_values(text: str, path: tuple[str, ...], values: Mapping[str, Json], file: str) -> str:
    """Give the text in which each of `values` stands in the object at `path`: many at the price of one.

    Raises:
        ConfigError: as `set_value`.
    """
    document = _parse(text, file)
    table = _at(document, path)
    if not isinstance(table, Mapping):
        if not values:
            return text
        document_with(document, (*path, next(iter(values))), None, file)  # refuses to write over what is no object
        return set_value(text, path, dict(values), file)
    wanted = document_with(document, path, {**table, **values}, file)
    for key in values.keys() & table.keys():
        text = set_value(text, (*path, key), values[key], file)
    new = [(key, value) for key, value in values.items() if key not in table]
    if not new:
        return text
    bare = blank_comments(text, file)
    held = root_object(bare)
    for step in path:
        member = held.find(step)
        assert member is not None
        held = object_at(bare, member.value)
    return _checked(_insert(text, bare, held, new), wanted, file)


def remove_value(text: str, path: tuple[str, ...], file: str) -> str:
    """Give the text without what stands at `path`; the text as it is when nothing does.

    Raises:
        ConfigError: `text` does not parse.
    """
    wanted = document_without(_parse(text, file), path)
    while True:  # a key may stand twice: taking the last away would bring the first back
        bare = blank_comments(text, file)
        held = root_object(bare)
        for key in path[:-1]:
            member = held.find(key)
            if member is None or bare[member.value] != "{":
                return text
            held = object_at(bare, member.value)
        member = held.find(path[-1])
        if member is None:
            return _checked(text, wanted, file)
        text = _cut(text, bare, held, held.members.index(member))


def document_with(document: Json, path: tuple[str, ...], value: Json, file: str) -> Json:
    """The values of a document with one more: what `set_value` does to its text.

    Raises:
        ConfigError: what is no object stands on the way.
    """
    if not path:
        return value
    if not isinstance(document, Mapping) and document is not None:
        raise ConfigError(file=file, reason="something that is no object stands where servers would be written")
    held = document or {}
    try:
        return {**held, path[0]: document_with(held.get(path[0]), path[1:], value, file)}
    except ConfigError as error:
        if error.key is None:
            error.key = dotted(path[:1])
        raise


def document_without(document: Json, path: tuple[str, ...]) -> Json:
    """The values of a document without one: what `remove_value` does to its text."""
    if not isinstance(document, Mapping) or path[0] not in document:
        return document
    if len(path) == 1:
        return {key: value for key, value in document.items() if key != path[0]}
    return {**document, path[0]: document_without(document[path[0]], path[1:])}


def mask_texts(text: str, mask: Callable[[Json], Json], file: str) -> str:
    """Give the text with every string as `mask`, asked for the whole document, would have it.

    Args:
        text: a JSON text, with comments or without.
        mask: takes a document and gives one of the same shape, where some strings are others.
        file: for messages.
    """
    document = _parse(text, file)
    masked = mask(document)
    changes = [
        (start, end, json.dumps(shown, ensure_ascii=False))
        for start, end, path in strings_in(blank_comments(text, file))
        if isinstance(shown := _at(masked, path), str) and shown != _at(document, path)
    ]
    for start, end, shown in reversed(changes):
        text = text[:start] + shown + text[end:]
    return text


# ── checking ─────────────────────────────────────────────────────────────────────────────────────────────────────────
def _parse(text: str, file: str) -> Json:
    value = parse_json(text, file).value
    if not isinstance(value, Mapping):
        raise ConfigError(file=file, line=1, column=1, reason="must be an object", remedy='write {"mcpServers": {}}')
    return value


def _checked(text: str, wanted: Json, file: str) -> str:
    if parse_json(text, file).value != wanted:
        raise ConfigError(
            file=file, reason="cannot be edited without changing something else", remedy="edit it by hand"
        )
    return text


def _at(document: Json, path: tuple[str | int, ...]) -> Json:
    for step in path:
        if isinstance(step, str) and isinstance(document, Mapping):
            document = document.get(step)
        elif isinstance(step, int) and isinstance(document, list | tuple):
            document = document[step]
        else:
            return None
    return document


# ── changing ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def _replace(text: str, bare: str, member: Member, value: Json) -> str:
    is_one_line = "\n" not in text[member.start : member.end] and bare[member.value] in "{["
    margin = None if is_one_line else margin_before(text, member.start)
    return text[: member.value] + draw(value, text, margin) + text[member.end :]


def _insert(text: str, bare: str, held: ObjectSpan, items: Sequence[tuple[str, Json]]) -> str:
    """Write new members behind the last one."""

    def drawn(margin: str | None) -> list[str]:
        return [f"{json.dumps(key, ensure_ascii=False)}: {draw(value, text, margin)}" for key, value in items]

    newline = newline_of(text)
    if held.members:
        last = held.members[-1]
        margin = margin_before(text, last.start)
        has_comma = last.comma >= 0
        at = last.comma + 1 if has_comma else last.end
        if margin is None:
            return text[:at] + (" " if has_comma else ", ") + ", ".join(drawn(None)) + text[at:]
        lines = newline + margin + f",{newline}{margin}".join(drawn(margin)) + ("," if has_comma else "")
        # A remark behind the last member stays beside it.
        below = line_end(text, bare, at)
        return text[:at] + ("" if has_comma else ",") + text[at:below] + lines + text[below:]
    inner = text[held.open + 1 : held.close]
    at = held.open + 1 + len(inner.rstrip())
    if "\n" not in text.strip() and bare.strip() != "{}" and not inner.strip():
        return text[:at] + ", ".join(drawn(None)) + text[held.close :]
    outer = line_margin(text, held.open)
    margin = outer + indent_of(text)
    lines = newline + margin + f",{newline}{margin}".join(drawn(margin))
    return text[:at] + lines + newline + outer + text[held.close :]


def _cut(text: str, bare: str, held: ObjectSpan, index: int) -> str:
    member = held.members[index]
    end = member.comma + 1 if member.comma >= 0 else member.end
    stop = line_end(text, bare, end)
    if margin_before(text, member.start) is not None and (stop > end or text[end : end + 2].startswith(("\n", "\r\n"))):
        # The member has its lines for itself: they go, with the line end before them.
        start = text.rfind("\n", 0, member.start)
        start -= text[start - 1 : start] == "\r"
        start, end = max(start, held.open + 1), stop
    else:
        start = member.start
        end += len(text[end:]) - len(text[end:].lstrip(" \t"))
    before = text[:start]
    if member.comma < 0 and index > 0:
        # The last one goes: so does the comma that led to it, and the blanks between when they share a line.
        comma = held.members[index - 1].comma
        is_beside = start == member.start and not text[comma + 1 : start].strip(" \t")
        before = text[:comma] + ("" if is_beside else text[comma + 1 : start])
    cut = before + text[end:]
    close = cut.index("}", held.open)
    if len(held.members) == 1 and not cut[held.open + 1 : close].strip():
        return cut[: held.open + 1] + cut[close:]
    return cut
