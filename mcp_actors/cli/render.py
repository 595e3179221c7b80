"""Owns how data looks: the documented JSON shapes, tables and blocks of text. Pure: values in, text out.

What this is not: writing it (`output`), or progress (`progress`).

Rule 1: names and schemas reach JSON as the server wrote them; what a person sees in a table is cleaned (invariant 9): a
server must not be able to move the cursor, recolour the terminal or fake a line.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Final

from mcp_actors.cli.arguments import call_words
from mcp_actors.shown import cut

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from mcp_actors.actors.lifecycle import ServerStatus
    from mcp_actors.jsontypes import Json, JsonObject
    from mcp_actors.tools.catalog import Tool
    from mcp_actors.tools.results import ToolResult

__all__ = [
    "clean",
    "clean_line",
    "columns",
    "invalid_row",
    "json_text",
    "result_text",
    "seconds_text",
    "server_row",
    "server_table",
    "server_text",
    "summary_line",
    "tool_row",
    "tool_table",
    "warning_lines",
]

# C0 and C1 controls but tab and line feed, and the marks that reorder text.
_CONTROLS: Final = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")
_STATE_COLOURS: Final[Mapping[str, str]] = {
    "connected": "32",
    "failed": "31",
    "needs-auth": "33",
    "pending": "33",
    "disabled": "2",
}
MAX_DESCRIPTION_CHARS: Final = 100
# The documented keys of a row of ``list --json``, in order.
ROW_KEYS: Final = (
    "name", "state", "reason", "phase", "transport", "scope", "era", "revision",
    "tools", "resources", "prompts", "pid", "error", "elapsed_ms", "warnings", "remedy",
)  # fmt: skip
# Warnings of one server that are told to a person; the rest is counted.
MAX_WARNINGS: Final = 5


def clean(text: str) -> str:
    """Replace what a terminal would obey; tabs and line ends stay, and a mark where it stood (unlike `shown`)."""
    return _CONTROLS.sub("\N{REPLACEMENT CHARACTER}", text.replace("\r\n", "\n"))


def clean_line(text: str, max_chars: int = 200) -> str:
    """Make one cleaned line of `text`, cut at `max_chars`."""
    return cut(clean(" ".join(text.split())), max_chars)


def json_text(value: Json) -> str:
    """Write JSON for people and machines: indented, keys in the order given."""
    return json.dumps(value, ensure_ascii=False, indent=2)


def seconds_text(seconds: float | None) -> str:
    """Write a length of time briefly."""
    if seconds is None:
        return "-"
    return f"{seconds * 1000:.0f} ms" if seconds < 1 else f"{seconds:.1f} s"


# ── servers ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def server_row(status: ServerStatus) -> dict[str, Json]:
    """One server of ``list --json`` (S337); `elapsed_ms`: permit to last list, null if it never connected."""
    parts = (status.connect_seconds, status.list_seconds)
    known = [part for part in parts if part is not None]
    return {
        "name": status.name,
        "state": str(status.state),
        "reason": status.reason,
        "phase": str(status.phase),
        "transport": str(status.transport),
        "scope": str(status.scope),
        "era": None if status.era is None else str(status.era),
        "revision": status.revision,
        "tools": status.tools,
        "resources": status.resources,
        "prompts": status.prompts,
        "pid": status.pid,
        "error": status.error,
        "elapsed_ms": round(sum(known) * 1000, 1) if known else None,
        "warnings": list(status.warnings),
        "remedy": status.remedy,
    }


def invalid_row(name: str, error: str) -> dict[str, Json]:
    """The row of an entry that exists by name but cannot be used as written."""
    known: dict[str, Json] = {
        "name": name,
        "state": "failed",
        "reason": "invalid-config",
        "phase": "stopped",
        "error": error,
        "warnings": [],
    }
    return {key: known.get(key) for key in ROW_KEYS}


def columns(rows: Iterable[Sequence[str]]) -> list[str]:
    """Align rows of cells into lines; the last column is not padded."""
    table = [list(row) for row in rows]
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in table]


def _cell(value: Json) -> str:
    return "-" if value is None else clean_line(str(value))


def server_table(rows: Sequence[JsonObject], *, has_colour: bool) -> str:
    """Draw the table of ``list``.

    Args:
        rows: rows as in `server_row`.
        has_colour: colour the states.

    Returns:
        A line for each server, and beneath those that are not connected their error and what to do.

    Source:
        S041.
    """
    head = ["NAME", "STATE", "REASON", "TRANSPORT", "SCOPE", "REVISION", "TOOLS", "RESOURCES", "PROMPTS", "TIME"]
    keys = ["name", "state", "reason", "transport", "scope", "revision", "tools", "resources", "prompts"]
    cells = [head]
    for row in rows:
        elapsed = row.get("elapsed_ms")
        time = seconds_text(elapsed / 1000) if isinstance(elapsed, int | float) else "-"
        cells.append([*(_cell(row.get(key)) for key in keys), time])
    lines = columns(cells)
    drawn = [lines[0]]
    for row, line in zip(rows, lines[1:], strict=True):
        state = str(row["state"])
        colour = _STATE_COLOURS.get(state) if has_colour else None
        at = lines[0].index("STATE")
        painted = f"{line[:at]}\x1b[{colour}m{state}\x1b[0m{line[at + len(state) :]}"
        drawn.append(line if colour is None else painted)
        if state != "connected":
            error = row.get("error")
            drawn.extend(f"    {clean_line(part)}" for part in str(error or "").splitlines() if part.strip())
            if row.get("remedy"):
                drawn.append(f"    -> {clean_line(str(row['remedy']))}")
    return "\n".join(drawn)


def warning_lines(status: ServerStatus) -> list[str]:
    """What was wrong with a server's lists, for a person: the first few lines, and how many more there are (S155)."""
    lines = [f"{clean_line(status.name)}: {clean_line(warning, 400)}" for warning in status.warnings[:MAX_WARNINGS]]
    more = len(status.warnings) - len(lines)
    return [*lines, f"{clean_line(status.name)}: {more} more warnings"] if more > 0 else lines


def summary_line(rows: Sequence[JsonObject]) -> str:
    """Count servers by state, the way a person would say it."""
    counts: dict[str, int] = {}
    for row in rows:
        counts[str(row["state"])] = counts.get(str(row["state"]), 0) + 1
    parts = ", ".join(f"{count} {state}" for state, count in counts.items())
    if not rows:
        return "no servers: write one down with mcp-actors add, or take another program's with mcp-actors import"
    return f"{len(rows)} server{'' if len(rows) == 1 else 's'}: {parts}"


def server_text(shown: JsonObject) -> str:
    """Write what ``get`` shows, for a person: a line for each fact, then the tools' names if it listed any."""
    status = shown["status"]
    assert isinstance(status, dict)
    lines = [f"{shown['name']}: {status['state']} ({status['reason']})", f"  from {shown['source']} ({shown['scope']})"]
    lines.append("  entry " + json.dumps(shown["entry"], ensure_ascii=False))
    facts = ("transport", "era", "revision", "pid", "resources", "prompts")
    lines += [f"  {fact} {status[fact]}" for fact in facts if status[fact] is not None]
    if isinstance(elapsed := status["elapsed_ms"], int | float):
        lines.append(f"  up after {seconds_text(elapsed / 1000)}")
    lines += [f"  {part}" for part in str(status["error"] or "").splitlines()]
    if shown["remedy"]:
        lines.append(f"  -> {shown['remedy']}")
    warnings, tools = status["warnings"], shown["tools"]
    assert isinstance(warnings, list)
    assert isinstance(tools, list)
    lines += [f"  warning: {warning}" for warning in warnings]
    if tools or status["tools"] is not None:
        lines.append(f"  tools {len(tools)}" + (": " + ", ".join(map(str, tools)) if tools else ""))
    if shown["instructions"]:
        lines += ["  instructions for models:", *(f"    {line}" for line in str(shown["instructions"]).splitlines())]
    indents = (line[: len(line) - len(line.lstrip())] for line in lines)
    return "\n".join((indent + clean_line(line, 2000)).rstrip() for indent, line in zip(indents, lines, strict=True))


# ── tools ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def tool_row(tool: Tool) -> dict[str, Json]:
    """One tool of ``tools --json``; description, schema and annotations are the server's own, unchanged."""
    return {
        "name": tool.callable_name,
        "server": tool.server,
        "tool": tool.name,
        "description": tool.description,
        "inputSchema": tool.input_schema,
        "annotations": tool.annotations,
    }


def tool_table(tools: Sequence[Tool], *, has_words: bool = False) -> str:
    """Draw the table of ``tools``: what to write after ``call``, and what it does.

    Args:
        tools: in the order to draw.
        has_words: whether a line below each tells of its arguments.
    """
    if not tools:
        return "no tools"
    rows = columns([_tool_route(tool), clean_line(tool.description, MAX_DESCRIPTION_CHARS)] for tool in tools)
    words = [clean_line(call_words(tool.input_schema)) if has_words else "" for tool in tools]
    return "\n".join(row + (f"\n    {word}" if word else "") for row, word in zip(rows, words, strict=True))


def _tool_route(tool: Tool) -> str:
    return clean_line(f"{tool.server}.{tool.name}")


def _block_text(block: JsonObject) -> str:
    kind = block.get("type")
    if kind == "text":
        return str(block.get("text") or "")
    if kind == "resource":
        resource = block.get("resource")
        if isinstance(resource, dict):
            text = resource.get("text")
            return str(text) if isinstance(text, str) else f"[resource {resource.get('uri')}]"
    data = block.get("data")
    size = f", {len(data) * 3 // 4} bytes" if isinstance(data, str) else ""
    place = f" {block['uri']}" if "uri" in block else ""
    media = f" {block['mimeType']}" if "mimeType" in block else ""
    return f"[{kind}{place}{media}{size}]"


def result_text(result: ToolResult) -> str:
    """Write a result for a person: texts as they are, other blocks named, structured content where nothing else is."""
    blocks = [_block_text(block) for block in result.content]
    if not blocks and result.has_structured_content:
        return json_text(result.structured_content)
    return "\n".join(blocks)
