"""Owns the verb ``call``: one tool of one server, which alone is started.

What this is not: the grammar of its arguments (`arguments`).
"""

from __future__ import annotations

import sys
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from mcp_actors.cli import arguments, exits, output
from mcp_actors.cli.asked import Asked, add_asked
from mcp_actors.cli.exits import UsageError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from mcp_actors.actors.slots import Progress as Reported
    from mcp_actors.actors.slots import ProgressCallback
    from mcp_actors.cli.fleet import Plan
    from mcp_actors.cli.options import GlobalOptions
    from mcp_actors.cli.progress import Progress
    from mcp_actors.fleet.running import Runtime
    from mcp_actors.jsontypes import JsonObject
    from mcp_actors.tools.catalog import Catalog, Tool
    from mcp_actors.tools.results import ToolResult

__all__ = ["configure_call", "read_text", "run_call", "show_result"]

# What is larger is refused by the wire anyhow; a device may have no end.
MAX_TEXT_CHARS: Final = 32 * 1024 * 1024

# Seconds that a server may take to change its list after it was connected.
LIST_PATIENCE: Final = 2.0


def _positive(text: str) -> float:
    value = float(text)
    if not 0 < value < float("inf"):
        raise ValueError(text)
    return value


_positive.__name__ = "number of seconds"  # argparse names the type in its message


def configure_call(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``call``."""
    parser.add_argument("tool", metavar="SERVER.TOOL", help="or its callable name, mcp__server__tool")
    parser.add_argument(
        "words",
        nargs="*",
        default=[],  # without it argparse says that a missing tool lacks key=value as well
        metavar="key=value",
        help="key=text (a string, or what the tool's schema plainly says), key:=json, key=@file, key:=@file",
    )
    parser.add_argument("--args", metavar="JSON", help="an object of arguments, or @file; key=value words win")
    parser.add_argument(
        "--output",
        choices=("text", "markdown", "json", "raw"),
        default="text",
        help="json: the result as the server sent it; raw: its texts alone, byte for byte",
    )
    parser.add_argument("--save-images", metavar="DIR", help="write pictures to files in this directory")
    parser.add_argument(
        "--progress", action="store_true", help="tell progress on standard error, also where that is no terminal"
    )
    parser.add_argument(
        "--timeout",
        type=_positive,
        metavar="SECONDS",
        help="give the call up after so long (exit code 5); the start of its server has MCP_TIMEOUT",
    )
    add_asked(parser)


def run_call(shared: GlobalOptions, own: argparse.Namespace) -> int:
    """Call a tool; 0 when it succeeded, 1 when it reports an error."""
    words = arguments.parse_words(own.words, read_text)
    base: JsonObject = {} if own.args is None else arguments.parse_object(own.args, read_text)

    from mcp_actors.cli.fleet import load_plan
    from mcp_actors.cli.signals import run_interruptibly

    plan = load_plan(shared)
    server, rest = plan.server_of(own.tool, "call", "tools")
    call = _Call(server, rest, own.tool, base, words, own)
    return run_interruptibly(partial(_call, plan.only(server), call, Asked(own, plan.choices, read_text)))


class _Call(NamedTuple):
    """What was asked for."""

    server: str
    # The tool's part of what was asked, raw or in normal form.
    rest: str
    asked: str
    base: JsonObject
    words: Sequence[arguments.Word]
    own: argparse.Namespace


def read_text(name: str) -> str:
    """Read what ``@FILE`` names; ``-`` is standard input.

    Raises:
        UsageError: it cannot be read, or is larger than any request may be.
    """
    try:
        with nullcontext(sys.stdin) if name == "-" else Path(name).expanduser().open(encoding="utf-8") as file:
            text = file.read(MAX_TEXT_CHARS + 1)
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"cannot read {name!r}: {error}") from error
    if len(text) > MAX_TEXT_CHARS:
        raise UsageError(f"cannot read {name!r}: it is larger than a request may be")
    return text


def _which_tool(catalog: Catalog, call: _Call) -> Tool:
    """Find the tool among its server's: by raw name, by the callable name, by the raw name in normal form.

    Raises:
        UnknownTool: there is none; it lists what exists.
    """
    from mcp_actors.errors import UnknownTool
    from mcp_actors.tools.naming import normalise

    tools = catalog.tools_of(call.server)
    for matches in (
        lambda tool: tool.name == call.rest,
        lambda tool: tool.callable_name == call.asked,
        lambda tool: normalise(tool.name) == call.rest,
    ):
        for tool in tools:
            if matches(tool):
                return tool
    from difflib import get_close_matches

    names = [tool.name for tool in tools]
    nearest = [f"{call.server}.{name}" for name in get_close_matches(call.rest, names, n=3, cutoff=0.5)]
    error = UnknownTool(server=call.server, name=call.rest, nearest=nearest)
    error.add_note(f"{call.server} offers: {', '.join(names)}" if names else f"{call.server} offers no tools")
    raise error


async def _find_tool(runtime: Runtime, call: _Call) -> Tool:
    """`_which_tool`; a server that may still change its list, as one does that asked for our roots, gets a moment."""
    import trio

    from mcp_actors.errors import UnknownTool

    offers = runtime.snapshot.connections[call.server].info
    changes = offers.capabilities.get("tools") if offers is not None else None
    patience = LIST_PATIENCE if isinstance(changes, dict) and changes.get("listChanged") is True else 0
    with trio.move_on_after(patience):
        while True:
            try:
                return _which_tool(runtime.catalog, call)
            except UnknownTool:
                await runtime.wait_published()
    return _which_tool(runtime.catalog, call)


async def _call(plan: Plan, call: _Call, asked: Asked) -> int:
    from mcp_actors.cli.fleet import open_fleet, refuse, settle, tell_warnings
    from mcp_actors.cli.progress import open_progress
    from mcp_actors.errors import RpcError, UnknownTool

    async with open_fleet(plan.once(), host=asked.questions.host) as runtime:
        await settle(runtime)
        status = runtime.status()[call.server]
        if not status.is_connected:
            return refuse(status)
        try:
            tool = await _find_tool(runtime, call)
        except UnknownTool:
            tell_warnings([runtime.status()[call.server]])  # it may be what could not be listed
            raise
        filled = arguments.build_arguments(call.base, call.words, tool.input_schema)
        with open_progress(f"calling {call.asked}") as progress:
            asked.draws(progress)
            tell = _teller(progress, call) if call.own.progress or sys.stderr.isatty() else None
            try:
                result = await runtime.call_tool(tool.callable_name, filled, timeout=call.own.timeout, progress=tell)
            except RpcError as error:
                for line in _misfits(tool, filled):
                    error.add_note(line)
                raise
    await show_result(result, call.own, name=call.asked, tool=tool)
    if not result.is_error:
        return exits.OK
    for line in _misfits(tool, filled):
        output.note(line, prefix="")
    return exits.FAILED


def _misfits(tool: Tool, filled: JsonObject) -> list[str]:
    from mcp_actors.cli.render import clean_line

    return [clean_line(line) for line in arguments.misfits(filled, tool.input_schema)]


def _teller(progress: Progress, call: _Call) -> ProgressCallback:
    from mcp_actors.cli.render import clean_line

    def tell(news: Reported) -> None:
        whole = "" if news.total is None else f"/{news.total:g}"
        message = f" {clean_line(news.message)}" if news.message else ""
        text = f"{call.asked}: {news.progress:g}{whole}{message}"
        progress.show(text)
        if call.own.progress and not sys.stderr.isatty():
            output.note(text)

    return tell


async def show_result(result: ToolResult, own: argparse.Namespace, *, name: str, tool: Tool | None = None) -> None:
    """Write a result the way ``--output`` and ``--save-images`` say.

    Args:
        result: as the server sent it.
        own: with the options `output` and `save_images`.
        name: what was called, for notes.
        tool: what was called; its output schema is looked at.
    """
    from mcp_actors.cli import showing

    saved = await _save(result, own.save_images, name)
    if own.output == "json":
        output.emit_bytes(result.raw)
    elif own.output == "raw":
        output.emit_exactly(showing.raw_of(result))
    elif own.output == "markdown":
        output.emit(showing.markdown_of(result, saved))
    else:
        output.emit(showing.text_of(result, showing.Style(output.width()), saved))
    if result.is_error:
        output.note(f"{name}: the tool reports an error")
    elif tool is not None and tool.output_schema is not None:
        _note_misfit(result, tool, name)


def _note_misfit(result: ToolResult, tool: Tool, name: str) -> None:
    from mcp_actors.cli.render import clean_line
    from mcp_actors.tools.validation import Fit, check_output

    check = check_output(
        tool.output_schema, result.structured_content, is_error=False, has_value=result.has_structured_content
    )
    if check is not None and check.fit is Fit.INVALID:
        output.note(f"{name}: its structured content does not fit the schema it promised: {clean_line(check.reason)}")


async def _save(result: ToolResult, directory: str | None, name: str) -> dict[int, str | None]:
    """Write the pictures; number of the block -> path, None where it could not be written."""
    if directory is None:
        return {}
    import trio

    from mcp_actors.cli.showing import pictures_of
    from mcp_actors.model.outputs import save_files
    from mcp_actors.tools.naming import normalise

    pictures = pictures_of(result.content)
    prefix = f"{normalise(name)[:60]}-"
    paths = await trio.to_thread.run_sync(partial(save_files, Path(directory), list(pictures.values()), prefix=prefix))
    saved = dict(zip(pictures, paths, strict=True))
    for path in saved.values():
        output.note(f"saved {path}" if path is not None else f"a picture could not be saved in {directory}")
    return saved
