"""Owns the words of a plan: what becomes of a tool's result, which files a door writes for it, and what a model gets.

What this is not: how a plan is made; that is `blocks`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, TypeAlias

from attrs import field

from mcp_actors.values import frozen

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mcp_actors.jsontypes import JsonObject
    from mcp_actors.tools.validation import Check

__all__ = [
    "FileRef",
    "Limits",
    "ModelBlock",
    "ModelImage",
    "ModelResult",
    "ModelText",
    "Pieces",
    "ResultPlan",
    "SaveFile",
    "Shrink",
]


class Shrink(Protocol):
    """Makes a picture smaller, in a door that has the means; gives None when it cannot."""

    def __call__(self, data: bytes, mime: str, max_edge: int, max_bytes: int, /) -> tuple[bytes, str] | None: ...


@frozen
class Limits:
    """How much of a result a model gets."""

    # S222; `MAX_MCP_OUTPUT_TOKENS`.
    max_tokens: int = 25_000
    warning_tokens: int = 10_000
    # Characters of text that this tool may have instead of the token limit (S224); pictures keep to the tokens.
    max_result_chars: int | None = None
    max_blocks: int = 1_000


@frozen
class SaveFile:
    """Bytes that a door writes to a file of mode 0600 with a random name and this extension (S218)."""

    data: bytes = field(repr=lambda data: f"<{len(data)} bytes>")
    extension: str
    mime: str
    # What it is, in words for a model and a person: "audio", "image (image/svg+xml)".
    label: str


@frozen
class FileRef:
    """Stands in a text for the path of the n-th file of the plan."""

    index: int


@frozen
class ModelText:
    """Text for a model."""

    text: str = field(repr=lambda text: f"<{len(text)} chars>")


@frozen
class ModelImage:
    """A picture for a model."""

    data: bytes = field(repr=lambda data: f"<{len(data)} bytes>")
    mime: str


ModelBlock: TypeAlias = ModelText | ModelImage


@frozen
class ModelResult:
    """What a model gets."""

    blocks: tuple[ModelBlock, ...]
    is_error: bool
    # For the host and the person, not for the model: sizes, what was removed, what did not fit.
    notes: tuple[str, ...] = ()
    # The person wants the model to stop, not to try another way; the host's loop sees to that (S241).
    is_interrupt: bool = False
    # `_meta` of the result, cleaned, for the host; not for the model (S227).
    meta: JsonObject = field(factory=dict, repr=False)


# A text is pieces; where a piece is a FileRef, a path goes.
Pieces: TypeAlias = "list[str | FileRef]"


@frozen
class ResultPlan:
    """A result taken apart. `files` are to be written, in this order; then `finish` gives what a model gets."""

    is_error: bool
    files: tuple[SaveFile, ...] = ()
    notes: tuple[str, ...] = ()
    # Estimated tokens of all there is, before a limit was applied.
    tokens: int = 0
    # Whether the limit was exceeded, so that the model gets a message instead (S223).
    is_spilled: bool = False
    # `_meta` of the result, cleaned, for the caller; a model never sees it (S227).
    meta: JsonObject = field(factory=dict, repr=False)
    check: Check | None = None
    _items: tuple[tuple[str | FileRef, ...] | ModelImage, ...] = field(default=(), repr=False, alias="items")

    def finish(self, paths: Sequence[str | None]) -> ModelResult:
        """Put the paths of the files in.

        Args:
            paths: one for each of `files`; None where it could not be saved, which the text then says.
        """
        if len(paths) != len(self.files):
            raise ValueError(f"{len(self.files)} files were to be saved, not {len(paths)}")
        names = ["(it could not be saved)" if path is None else path for path in paths]
        blocks: list[ModelBlock] = []
        for item in self._items:
            if isinstance(item, ModelImage):
                blocks.append(item)
            else:
                blocks.append(
                    ModelText("".join(names[part.index] if isinstance(part, FileRef) else part for part in item))
                )
        return ModelResult(tuple(blocks), self.is_error, self.notes, meta=self.meta)
