"""Owns the two tools through which a model finds and reads resources, as definitions and as pure answers.

What this is not: asking servers; a door does that and hands in what they said, or why they did not.

Rule 1: there is one pair for the whole fleet, offered when some server has resources (S326).
Rule 2: one server that fails costs the others nothing (S331).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, NamedTuple

from mcp_actors.errors import RemoteProtocolError
from mcp_actors.protocol import jsonrpc
from mcp_actors.tools.base64text import decode_base64
from mcp_actors.tools.images import extension_of
from mcp_actors.tools.naming import ToolNames
from mcp_actors.tools.plans import SaveFile
from mcp_actors.tools.sanitise import clean_text, is_list
from mcp_actors.values import frozen

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from mcp_actors.jsontypes import Json, JsonObject
    from mcp_actors.tools.items import Resource

__all__ = [
    "LIST_RESOURCES",
    "NOT_FOUND_CODES",
    "READ_RESOURCE",
    "ContentsPlan",
    "HostTool",
    "contents_as_blocks",
    "list_answer",
    "plan_contents",
    "resource_tools",
]

# What servers answer to a read of what is not there: up to 2025-11-25, and since 2026-07-28 (S328).
NOT_FOUND_CODES: Final = frozenset({-32002, jsonrpc.INVALID_PARAMS})


class HostTool(NamedTuple):
    """A tool of the host's own, listed beside those of servers (S166)."""

    name: str
    description: str
    input_schema: JsonObject
    is_read_only: bool = True

    @property
    def names(self) -> ToolNames:
        """What rules may call it by."""
        return ToolNames(self.name, self.name)


_SERVER: Final[JsonObject] = {"type": "string", "description": "Name of the server."}

LIST_RESOURCES: Final = HostTool(
    "ListMcpResourcesTool",
    "Lists the resources of connected MCP servers: uri, name, server, and where known mimeType and description.",
    {
        "type": "object",
        "properties": {"server": {**_SERVER, "description": "Name of one server; left out: all of them."}},
    },
)
READ_RESOURCE: Final = HostTool(
    "ReadMcpResourceTool",
    "Reads one resource of an MCP server by its URI. Binary contents are saved to a file whose path is given.",
    {
        "type": "object",
        "properties": {"server": _SERVER, "uri": {"type": "string", "description": "URI as listed."}},
        "required": ["server", "uri"],
    },
)


def resource_tools(capabilities: Iterable[JsonObject]) -> tuple[HostTool, ...]:
    """Give the pair when one of the connected servers' capabilities has resources, else nothing (S326)."""
    has_resources = any("resources" in declared for declared in capabilities)
    return (LIST_RESOURCES, READ_RESOURCE) if has_resources else ()


def list_answer(offered: Iterable[Sequence[Resource]], failures: Mapping[str, str]) -> JsonObject:
    """Make the answer of the list tool.

    Args:
        offered: resources of each server that answered.
        failures: maps server -> why its list is missing.
    """
    rows: list[Json] = [dict(resource.row()) for resources in offered for resource in resources]
    errors: dict[str, Json] = {server: clean_text(reason) for server, reason in failures.items()}
    return {"resources": rows, "errors": errors} if errors else {"resources": rows}


@frozen
class ContentsPlan:
    """The answer of the read tool; `files` are to be written first."""

    files: tuple[SaveFile, ...]
    _rows: tuple[tuple[dict[str, Json], int | None], ...]

    def finish(self, paths: Sequence[str | None]) -> JsonObject:
        """Put the paths of the files in, one for each; None where it could not be saved."""
        if len(paths) != len(self.files):
            raise ValueError(f"{len(self.files)} files were to be saved, not {len(paths)}")
        contents: list[Json] = []
        for row, file in self._rows:
            if file is None:
                contents.append(row)
            elif (path := paths[file]) is None:
                contents.append({**row, "error": "its contents could not be saved"})
            else:
                contents.append({**row, "blobSavedTo": path})
        return {"contents": contents}


def plan_contents(raw: bytes) -> ContentsPlan:
    """Plan the answer of the read tool from a ``resources/read`` result.

    Raises:
        RemoteProtocolError: it does not have the shape of one.

    Source:
        S321: ``contents[{uri, mimeType?, text?, blobSavedTo?}]``.
    """
    contents = jsonrpc.decode_object(raw).get("contents")
    if not is_list(contents):
        raise RemoteProtocolError(reason="the resource has no array of contents")
    files: list[SaveFile] = []
    rows: list[tuple[dict[str, Json], int | None]] = []
    for item in contents:
        if not isinstance(item, Mapping):
            raise RemoteProtocolError(reason="the resource's contents hold what is not an object")
        uri, mime, text, blob = (item.get(key) for key in ("uri", "mimeType", "text", "blob"))
        row: dict[str, Json] = {"uri": clean_text(uri) if isinstance(uri, str) else ""}
        if isinstance(mime, str):
            row["mimeType"] = clean_text(mime)
        file = None
        if isinstance(text, str):
            row["text"] = clean_text(text, keep_emoji=True)
        elif isinstance(blob, str):
            data = decode_base64(blob)
            if data is None:
                row["error"] = "its contents could not be decoded"
            else:
                kind = mime if isinstance(mime, str) else "application/octet-stream"
                file = len(files)
                files.append(SaveFile(data, extension_of(kind), kind, "resource"))
        rows.append((row, file))
    return ContentsPlan(tuple(files), tuple(rows))


def contents_as_blocks(result: JsonObject) -> list[JsonObject]:
    """The contents of a ``resources/read`` result as blocks of a result; what is no object is left out."""
    contents = result.get("contents")
    items = contents if isinstance(contents, list) else []
    return [{"type": "resource", "resource": item} for item in items if isinstance(item, dict)]
