"""Owns the verb ``call``: one tool of one server, which alone is started.

What this is not: the grammar of its arguments (`arguments`).
"""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from mcp_actors.cli import arguments, exits, output
from mcp_actors.cli.exits import UsageError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from mcp_actors.cli.fleet import Plan
    from mcp_actors.cli.options import GlobalOptions
    from mcp_actors.jsontypes import JsonObject
    from mcp_actors.tools.catalog import Catalog, Tool
    from mcp_actors.tools.results import ToolResult

__all__ = ["configure_call", "read_text", "run_call"]


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
        metavar="key=value",
        help="key=text (a string, or what the tool's schema plainly says), key:=json, key=@file, key:=@file",
    )
    parser.add_argument("--args", metavar="JSON", help="an object of arguments, or @file; key=value words win")
    parser.add_argument(
        "--output", choices=("text", "json"), default="text", help="json: the result as the server sent it"
    )
    parser.add_argument(
        "--timeout", type=_positive, metavar="SECONDS", help="give the call up after so long (exit code 5)"
    )


def run_call(shared: GlobalOptions, own: argparse.Namespace) -> int:
    """Call a tool; 0 when it succeeded, 1 when it reports an error."""
    words = arguments.parse_words(own.words, read_text)
    base: JsonObject = {} if own.args is None else arguments.parse_object(own.args, read_text)

    from mcp_actors.cli.fleet import load_plan
    from mcp_actors.cli.signals import run_interruptibly

    plan = load_plan(shared)
    server, rest = _which_server(own.tool, plan)
    call = _Call(server, rest, own.tool, base, words, own.timeout, own.output)
    return run_interruptibly(partial(_call, plan.only(server), call))


class _Call:
    """What was asked for."""

    def __init__(
        self,
        server: str,
        rest: str,
        asked: str,
        base: JsonObject,
        words: Sequence[arguments.Word],
        timeout: float | None,
        form: str,
    ) -> None:
        self.server = server
        # The tool's part of what was asked, raw or in normal form.
        self.rest = rest
        self.asked = asked
        self.base = base
        self.words = words
        self.timeout = timeout
        self.form = form


def read_text(name: str) -> str:
    """Read what ``@FILE`` names; ``-`` is standard input.

    Raises:
        UsageError: it cannot be read.
    """
    try:
        return sys.stdin.read() if name == "-" else Path(name).expanduser().read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"cannot read {name!r}: {error}") from error


def _which_server(asked: str, plan: Plan) -> tuple[str, str]:
    from mcp_actors.cli.configured import unknown_server
    from mcp_actors.tools.naming import server_prefix

    names = [*plan.names, *plan.invalid]
    candidates = arguments.server_candidates(asked, names, {name: server_prefix(name) for name in names})
    if candidates:
        return candidates[0]
    if asked in names:
        raise UsageError(f"name a tool of {asked}: mcp-actors call {asked}.TOOL (mcp-actors tools {asked} lists them)")
    raise unknown_server(asked.rpartition(".")[0] or asked, plan.names)


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


async def _call(plan: Plan, call: _Call) -> int:
    from mcp_actors.cli.fleet import open_fleet, refuse, settle
    from mcp_actors.cli.progress import open_progress

    async with open_fleet(plan.once()) as runtime:
        await settle(runtime)
        status = runtime.status()[call.server]
        if not status.is_connected:
            return refuse(status)
        tool = _which_tool(runtime.catalog, call)
        filled = arguments.build_arguments(call.base, call.words, tool.input_schema)
        with open_progress(f"calling {call.asked}"):
            result = await runtime.call_tool(tool.callable_name, filled, timeout=call.timeout)
    _print(result, call)
    return exits.FAILED if result.is_error else exits.OK


def _print(result: ToolResult, call: _Call) -> None:
    from mcp_actors.cli import render

    if call.form == "json":
        output.emit_bytes(result.raw)
        return
    text = render.result_text(result)
    output.emit(render.clean(text) if output.is_terminal() else text)
    if result.is_error:
        output.note(f"{call.asked}: the tool reports an error")
