"""Owns `ToolResult`: what a tool answered, as sent and decoded when read.

What this is not: a rendering for a model or a terminal, which cleans, cuts and describes it.

A tool that reports failure is a value (`is_error`), not an exception: the call succeeded (S211).
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from attrs import field

from mcp_actors.errors import RemoteProtocolError
from mcp_actors.protocol import jsonrpc
from mcp_actors.values import frozen

if TYPE_CHECKING:
    from mcp_actors.jsontypes import Json, JsonObject

__all__ = ["ToolResult"]


@frozen(eq=False, slots=False)  # what was decoded is kept in its dict
class ToolResult:
    """The answer to one ``tools/call``. Untrusted. `raw` is decoded once, when the first property is read."""

    # One JSON object as sent: all keys, known or not.
    raw: bytes = field(repr=lambda raw: f"<{len(raw)} bytes>")
    # Names of the server and of the tool (raw) that answered, for messages.
    server: str | None = None
    tool: str | None = None

    @cached_property
    def json(self) -> JsonObject:
        """The result as sent, every key kept.

        Raises:
            RemoteProtocolError: it is not a JSON object.
        """
        try:
            return jsonrpc.decode_object(self.raw)
        except RemoteProtocolError as exc:
            raise RemoteProtocolError(server=self.server, reason=exc.reason) from exc

    @cached_property
    def content(self) -> tuple[JsonObject, ...]:
        """The content blocks in the server's order; empty when there are none.

        Raises:
            RemoteProtocolError: ``content`` is not an array of objects.
        """
        content = self.json.get("content")
        if content is None:
            return ()
        if not isinstance(content, list):
            raise self._broken("content is not an array")
        blocks = tuple([block for block in content if isinstance(block, dict)])
        if len(blocks) != len(content):
            raise self._broken("content holds a block that is not an object")
        return blocks

    @property
    def is_error(self) -> bool:
        """Whether the tool itself reported failure. Absent means no."""
        return self.json.get("isError") is True

    @property
    def has_structured_content(self) -> bool:
        """Whether the server sent structured content at all: null is a value, absence is none."""
        return "structuredContent" in self.json

    @property
    def structured_content(self) -> Json:
        """The structured content as sent: None when it is null or absent, see `has_structured_content`."""
        return self.json.get("structuredContent")

    @property
    def meta(self) -> JsonObject:
        """The ``_meta`` object; empty when there is none."""
        meta = self.json.get("_meta")
        return meta if isinstance(meta, dict) else {}

    @cached_property
    def text(self) -> str:
        """All text blocks in order, joined by line ends; blocks of other types are left out.

        Raises:
            RemoteProtocolError: ``content`` is not an array of objects.

        Source:
            S213.
        """
        texts = [block.get("text") for block in self.content if block.get("type") == "text"]
        return "\n".join([text for text in texts if isinstance(text, str)])

    def _broken(self, reason: str) -> RemoteProtocolError:
        subject = f"the result of {self.tool}" if self.tool else "the tool result"
        return RemoteProtocolError(server=self.server, reason=f"{subject} is malformed: {reason}")
