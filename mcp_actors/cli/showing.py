"""Owns how a result or a resource is shown: as text for a person, as Markdown, as the bytes themselves. Pure.

What this is not: what a model gets (`model.face`), or writing (`output`).

Rule 1: text and Markdown hold nothing that a terminal obeys (S347). Rule 2: ``raw`` changes not one byte.
Rule 3: on a terminal a text is drawn in tiers (S340); in a pipe it stays as it is, so that programs can read it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from mcp_actors.tools.base64text import decode_base64
from mcp_actors.tools.images import extension_of, sniff_mime
from mcp_actors.tools.plans import SaveFile
from mcp_actors.tools.render import render_result, strip_controls

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mcp_actors.jsontypes import Json, JsonObject
    from mcp_actors.tools.results import ToolResult

__all__ = ["Style", "markdown_of", "messages_text", "pictures_of", "raw_of", "text_of"]


class Style(NamedTuple):
    """How texts are drawn."""

    # Columns of the terminal; None: a pipe, where texts are cleaned and stay as they are.
    width: int | None = None


def _line(value: Json) -> str:
    return " ".join(strip_controls(str(value)).split())


def _draw(text: str, style: Style) -> str:
    return strip_controls(text) if style.width is None else "\n".join(render_result(text, style.width).lines)


# ── text ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def text_of(result: ToolResult, style: Style, saved: Mapping[int, str | None]) -> str:
    """Write a result for a person.

    Args:
        result: as the server sent it.
        style: how to draw.
        saved: number of a block -> the file that holds it, None where it could not be saved.
    """
    parts = [_block_text(block, style, saved, number) for number, block in enumerate(result.content)]
    if not parts and result.has_structured_content:
        return _json(result.structured_content)
    return "\n".join(parts)


def _block_text(block: JsonObject, style: Style, saved: Mapping[int, str | None], number: int) -> str:
    kind = block.get("type")
    if kind == "text":
        return _draw(str(block.get("text") or ""), style)
    if kind == "resource":
        resource = block.get("resource")
        if isinstance(resource, dict) and isinstance(resource.get("text"), str):
            return _draw(str(resource["text"]), style)
    return f"[{_described(block, saved, number)}]"


def _described(block: JsonObject, saved: Mapping[int, str | None], number: int) -> str:
    """What a block is, in one line: its kind, name, place, media type, size, and where it was saved."""
    inner = block.get("resource")
    known = inner if isinstance(inner, dict) else block
    words = [_line(block.get("type"))]
    words += [_line(known[key]) for key in ("title", "name") if isinstance(known.get(key), str)][:1]
    words += [_line(known[key]) for key in ("uri", "mimeType") if key in known]
    data = known.get("blob") if "blob" in known else known.get("data")
    text = " ".join(words)
    if isinstance(data, str):
        text += f", {len(data.rstrip('=')) * 3 // 4} bytes"
    if number in saved:
        text += f", saved to {saved[number]}" if saved[number] is not None else ", could not be saved"
    description = block.get("description")
    return f"{text}: {_line(description)}" if isinstance(description, str) and description else text


def _json(value: Json) -> str:
    import json

    return strip_controls(json.dumps(value, ensure_ascii=False, indent=2))


# ── markdown ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def markdown_of(result: ToolResult, saved: Mapping[int, str | None]) -> str:
    """Write a result as Markdown: texts as they are, links and pictures as such, structured content in a fence."""
    parts: list[str] = []
    for number, block in enumerate(result.content):
        parts.append(_block_markdown(block, saved, number))
        note = _annotations(block.get("annotations"))
        if note:
            parts.append(f"*({note})*")
    if result.has_structured_content:
        parts.append(_fence(_json(result.structured_content), "json"))
    return "\n\n".join(parts)


def _block_markdown(block: JsonObject, saved: Mapping[int, str | None], number: int) -> str:
    kind, path = block.get("type"), saved.get(number)
    if kind == "text":
        return strip_controls(str(block.get("text") or ""))
    if path is not None:
        return f"![{_line(block.get('type'))}]({path})"
    resource = block.get("resource")
    if kind == "resource" and isinstance(resource, dict) and isinstance(resource.get("text"), str):
        return f"**{_line(resource.get('uri'))}**\n\n{_fence(strip_controls(str(resource['text'])), '')}"
    if kind == "resource_link":
        name = _line(block.get("title") or block.get("name")).replace("[", "(").replace("]", ")")
        description = block.get("description")
        tail = f": {_line(description)}" if isinstance(description, str) and description else ""
        return f"[{name}](<{_line(block.get('uri')).replace('<', '%3C').replace('>', '%3E')}>){tail}"
    return f"*[{_described(block, saved, number)}]*"


def _fence(text: str, language: str) -> str:
    """Put a text into a fence that it does not close."""
    marks = "```"
    while marks in text:
        marks += "`"
    return f"{marks}{language}\n{text}\n{marks}"


def _annotations(value: Json) -> str:
    """Whom a block is meant for and how much it matters, as the server says; empty when it says nothing."""
    if not isinstance(value, dict):
        return ""
    audience, priority = value.get("audience"), value.get("priority")
    words = [f"for {', '.join(map(_line, audience))}"] if isinstance(audience, list) and audience else []
    if isinstance(priority, int | float) and not isinstance(priority, bool):
        words.append(f"priority {priority:g}")
    return ", ".join(words)


# ── bytes ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def raw_of(result: ToolResult) -> bytes:
    """The texts alone, not one byte changed, joined by line ends; one binary block alone: its data, decoded."""
    if len(result.content) == 1 and result.content[0].get("type") != "text":
        data = _data_of(result.content[0])
        if data is not None:
            return data
    texts: list[str] = []
    for block in result.content:
        inner = block.get("resource")
        text = inner.get("text") if isinstance(inner, dict) else block.get("text")
        if isinstance(text, str):
            texts.append(text)
    if not texts and result.has_structured_content:
        from mcp_actors.protocol.jsonrpc import encode

        return encode(result.structured_content)
    return "\n".join(texts).encode("utf-8", "replace")


def _data_of(block: JsonObject) -> bytes | None:
    inner = block.get("resource")
    data = inner.get("blob") if isinstance(inner, dict) else block.get("data")
    return decode_base64(data) if isinstance(data, str) else None


def pictures_of(blocks: Sequence[JsonObject]) -> dict[int, SaveFile]:
    """The pictures among the blocks: number of the block -> what to write. What is no base64 is left out."""
    found: dict[int, SaveFile] = {}
    for number, block in enumerate(blocks):
        inner = block.get("resource")
        mime = inner.get("mimeType") if isinstance(inner, dict) else block.get("mimeType")
        if block.get("type") == "image" or (isinstance(mime, str) and mime.startswith("image/")):
            data = _data_of(block)
            if data is not None:
                kind = sniff_mime(data) or str(mime)
                found[number] = SaveFile(data, extension_of(kind), kind, "image")
    return found


# ── resources and prompts ────────────────────────────────────────────────────────────────────────────────────────────


def messages_text(result: JsonObject, style: Style) -> str:
    """Write the messages of a prompt: who speaks, and what is said."""
    messages = result.get("messages")
    parts: list[str] = []
    for message in messages if isinstance(messages, list) else []:
        if not isinstance(message, dict):
            continue
        content = message.get("content")
        blocks = content if isinstance(content, list) else [content]
        said = [_block_text(block, style, {}, number) for number, block in enumerate(blocks) if isinstance(block, dict)]
        parts.append(f"{_line(message.get('role'))}:\n" + "\n".join(said))
    return "\n\n".join(parts)
