"""Owns what becomes of a tool's result: a plan of texts, pictures and files for a model.

What this is not: writing files, which a door does. The plan says which bytes to save; `ResultPlan.finish` puts their
paths into the texts.

Rule 1: order is kept, and nothing vanishes in silence: what a model does not get is named where it stood.
Rule 2: no base64 reaches a model's text: binary becomes a picture or a file (S218, S219). The data of a block that is
repeated elsewhere is recognised.
Rule 3: structured content stands for the text blocks, which repeat it (S220); when the tool failed, or the content does
not fit its schema, all blocks stay (S225, fault 84).
Rule 4: a result beyond the limit is saved as a whole and replaced by a message that says where it is (S223).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from mcp_actors.errors import RemoteProtocolError
from mcp_actors.protocol import jsonrpc
from mcp_actors.tools.base64text import decode_base64, find_base64, normal_base64
from mcp_actors.tools.images import extension_of, sniff_mime
from mcp_actors.tools.pictures import CorruptPicture, FiledPicture, ShownPicture, judge_picture
from mcp_actors.tools.plans import FileRef, Limits, ModelImage, ResultPlan, SaveFile
from mcp_actors.tools.sanitise import clean_json, clean_text
from mcp_actors.tools.validation import Fit

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mcp_actors.jsontypes import Json, JsonObject
    from mcp_actors.tools.plans import Pieces, Shrink
    from mcp_actors.tools.results import ToolResult
    from mcp_actors.tools.validation import Check

__all__ = ["EMPTY", "estimate_tokens", "plan_result"]

EMPTY: Final = "(the tool returned nothing)"
MAX_FILES: Final = 100


def estimate_tokens(text: str) -> int:
    """Estimate the tokens of a text: four characters each (S222)."""
    return math.ceil(len(text) / 4)


def plan_result(
    result: ToolResult,
    *,
    limits: Limits | None = None,
    check: Check | None = None,
    shrink: Shrink | None = None,
    count_tokens: Callable[[str], int] = estimate_tokens,
) -> ResultPlan:
    """Plan what a model gets of a result.

    Args:
        result: as the server sent it; it is not changed.
        limits: sizes; None: the defaults.
        check: outcome of `validation.check_output`.
        shrink: makes large pictures smaller; None: those that a model cannot take are saved instead (S214).
        count_tokens: estimates the tokens of a text.

    Raises:
        RemoteProtocolError: the result does not have the shape of one (S226).

    Source:
        S212-S227.
    """
    plan = _Planner(limits or Limits(), shrink, count_tokens)
    content = result.content
    structured = _structured(result)
    if check is not None and check.fit is not Fit.VALID:
        plan.notes.append(f"structured content is {check.fit}: {check.reason}")
    keeps_text = result.is_error or structured is None or (check is not None and check.fit is Fit.INVALID)
    for number, block in enumerate(content[: plan.limits.max_blocks], 1):
        plan.remember(number, block)
    if structured is not None and not keeps_text:
        plan.add_structured(structured)
    for number, block in enumerate(content, 1):
        if number > plan.limits.max_blocks:
            plan.add_text(f"[{len(content) - plan.limits.max_blocks} more blocks were left out]")
            break
        if block.get("type") != "text" or keeps_text:
            plan.add_block(number, block)
    if structured is not None and keeps_text:
        plan.add_structured(structured)
    return plan.made(result, check)


def _structured(result: ToolResult) -> Json:
    """Structured content, or the field that servers before 2024-11-05 used (S220, S221); None when there is none."""
    if result.structured_content is not None:
        return result.structured_content
    return result.json.get("toolResult")


class _Planner:
    def __init__(self, limits: Limits, shrink: Shrink | None, count_tokens: Callable[[str], int]) -> None:
        self.limits = limits
        self.notes: list[str] = []
        self._shrink = shrink
        self._count_tokens = count_tokens
        self._items: list[Pieces | ModelImage] = []
        self._files: list[SaveFile] = []
        self._image_tokens = 0
        self._removed = 0
        # Maps the base64 of a block -> what it is called in texts.
        self._known: dict[str, str] = {}

    # ── blocks ───────────────────────────────────────────────────────────────────────────────────────────────────────

    def remember(self, number: int, block: JsonObject) -> None:
        """Note the data of a block, so that its repetition in a text is recognised."""
        inner = block.get("resource")
        for data in (block.get("data"), inner.get("blob") if isinstance(inner, Mapping) else None):
            if isinstance(data, str) and data:
                self._known.setdefault(normal_base64(data), f"the data of block {number}")

    def add_block(self, number: int, block: JsonObject) -> None:
        kind = block.get("type")
        add = {
            "text": self._add_text_block,
            "image": self._add_image,
            "audio": self._add_audio,
            "resource": self._add_resource,
            "resource_link": self._add_link,
        }.get(kind if isinstance(kind, str) else "")
        if add is None:
            self.add_text(f"[block {number} is of the unknown type {_word(kind)}]")
        else:
            add(block)

    def _add_text_block(self, block: JsonObject) -> None:
        text = block.get("text")
        self.add_text(text if isinstance(text, str) else "[a text block without text]")

    def _add_image(self, block: JsonObject) -> None:
        self._add_picture(block.get("data"), _word(block.get("mimeType")))

    def _add_audio(self, block: JsonObject) -> None:
        self._add_binary(block.get("data"), _word(block.get("mimeType")), "audio")

    def _add_resource(self, block: JsonObject) -> None:
        """Text under a line with its URI; a picture as one; anything else as a file (S216)."""
        resource = block.get("resource")
        if not isinstance(resource, Mapping):
            self.add_text("[a resource block without a resource]")
            return
        uri, mime = _word(resource.get("uri")), _word(resource.get("mimeType"))
        text = resource.get("text")
        if isinstance(text, str):
            self.add_text(f"[Resource {uri}]\n{text}")
            return
        self.add_text(f"[Resource {uri}]")
        if mime.startswith("image/"):
            self._add_picture(resource.get("blob"), mime)
        else:
            self._add_binary(resource.get("blob"), mime, "resource")

    def _add_link(self, block: JsonObject) -> None:
        """Name, URI and description; what it leads to is not fetched (S217)."""
        name, uri = _word(block.get("title") or block.get("name")), _word(block.get("uri"))
        description = block.get("description")
        tail = f"\n{description}" if isinstance(description, str) and description else ""
        self.add_text(f"[Resource link: {name} ({uri})]{tail}")

    # ── texts ────────────────────────────────────────────────────────────────────────────────────────────────────────

    def add_text(self, text: str) -> None:
        cleaned = clean_text(text, keep_emoji=True)
        self._removed += len(text) - len(cleaned)
        self._items.append(self._without_base64(cleaned))

    def add_structured(self, value: Json) -> None:
        try:
            cleaned = clean_json(value, keep_emoji=True)
        except RemoteProtocolError as exc:
            self.add_text(f"[structured content is left out: {exc.reason}]")
            return
        self._removed += cleaned.total_removed
        self._items.append(self._without_base64(jsonrpc.encode(cleaned.value).decode()))

    def _without_base64(self, text: str) -> Pieces:
        """Take base64 out of a text: name what is known, save what is not."""
        pieces: Pieces = []
        at = 0
        for run in find_base64(text):
            known = self._known.get(normal_base64(run.encoded))
            data = decode_base64(run.encoded) if known is None and run.is_likely else None
            if known is None and data is None:
                continue
            pieces.append(text[at : run.start])
            at = run.end
            if known is not None:
                pieces.append(f"[{known}]")
            else:
                mime = run.mime or sniff_mime(data or b"") or "application/octet-stream"
                pieces += self._saved(data or b"", mime, f"base64 data ({mime})")
                self._known[normal_base64(run.encoded)] = "the same data as above"
        pieces.append(text[at:])
        return pieces

    # ── binaries ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def _saved(self, data: bytes, mime: str, label: str) -> Pieces:
        """Plan a file; the pieces of text that stand for it."""
        if len(self._files) >= MAX_FILES:
            return [f"[{label}, {len(data)} bytes, was not saved: there are more than {MAX_FILES} files]"]
        self._files.append(SaveFile(data, extension_of(mime), mime, label))
        return [f"[{label}, {len(data)} bytes, saved to ", FileRef(len(self._files) - 1), "]"]

    def _add_binary(self, encoded: Json, mime: str, label: str) -> None:
        data = decode_base64(encoded) if isinstance(encoded, str) else None
        if not data:
            self.add_text(f"[{label} ({mime}) {'is empty' if data is not None else 'could not be decoded'}]")
            return
        self._items.append(self._saved(data, mime, f"{label} ({mime})"))

    def _add_picture(self, encoded: Json, mime: str) -> None:
        data = decode_base64(encoded) if isinstance(encoded, str) else None
        if not data:
            self.add_text(f"[image ({mime}) {'is empty' if data is not None else 'could not be decoded'}]")
            return
        match judge_picture(data, mime, self._shrink):
            case ShownPicture(image, tokens):
                self._image_tokens += tokens
                self._items.append(image)
            case FiledPicture(content, kind, label):
                self._items.append(self._saved(content, kind, label))
            case CorruptPicture():
                self.add_text(f"[image ({mime}), {len(data)} bytes, is corrupt]")

    # ── the whole ────────────────────────────────────────────────────────────────────────────────────────────────────

    def made(self, result: ToolResult, check: Check | None) -> ResultPlan:
        if not any(isinstance(item, ModelImage) or any(item) for item in self._items):
            self._items = [[EMPTY]]
        texts = [
            "".join(part for part in item if isinstance(part, str)) for item in self._items if isinstance(item, list)
        ]
        text_tokens = sum(map(self._count_tokens, texts))
        tokens = text_tokens + self._image_tokens
        if self._removed > 0:
            self.notes.append(f"{self._removed} hidden code points were removed")
        try:
            meta = clean_json(result.meta).value
        except RemoteProtocolError:
            meta = {}
        is_spilled = self._is_over(texts, text_tokens)
        if is_spilled:
            self._spill(texts, tokens)
        elif tokens > self.limits.warning_tokens:
            self.notes.append(f"the result is large: about {tokens} tokens")
        items = tuple(item if isinstance(item, ModelImage) else tuple(item) for item in self._items)
        return ResultPlan(
            result.is_error or is_spilled,
            tuple(self._files),
            tuple(self.notes),
            tokens,
            is_spilled,
            meta if isinstance(meta, Mapping) else {},
            check,
            items,
        )

    def _is_over(self, texts: Sequence[str], text_tokens: int) -> bool:
        if self.limits.max_result_chars is None:
            return text_tokens + self._image_tokens > self.limits.max_tokens
        return sum(map(len, texts)) > self.limits.max_result_chars or self._image_tokens > self.limits.max_tokens

    def _spill(self, texts: Sequence[str], tokens: int) -> None:
        """Save everything and leave a message; pictures become files too, since they are part of what is too much."""
        pieces: Pieces = []
        for item in self._items:
            if isinstance(item, ModelImage):
                pieces += [*self._saved(item.data, item.mime, f"image ({item.mime})"), "\n"]
            elif any(isinstance(part, FileRef) for part in item):
                pieces += [*item, "\n"]
        whole = "\n".join(texts)
        is_json = len(texts) == 1 and whole[:1] in {"{", "["}
        mime = "application/json" if is_json else "text/plain"
        self._files.append(SaveFile(whole.encode("utf-8", "replace"), extension_of(mime), mime, "full result"))
        head = (
            f"Error: the result ({len(whole)} characters, about {tokens} tokens) is larger than what fits here. "
            "The full output was saved to "
        )
        tail = ". Read it in parts, or search in it, instead of reading it whole; or call the tool for less."
        message: Pieces = [head, FileRef(len(self._files) - 1), tail]
        if pieces:
            message += ["\n", *pieces[:-1][: 4 * MAX_FILES]]
        self.notes.append(f"the result is too large: about {tokens} tokens")
        self._items = [message]


def _word(value: Json) -> str:
    """One short cleaned line of a server's text, for a note in brackets."""
    if not isinstance(value, str):
        return "unknown"
    line = " ".join(clean_text(value[:2_000]).split())
    # A bracket or line end of a server's must not end the note.
    return line.replace("[", "(").replace("]", ")") or "unknown"
