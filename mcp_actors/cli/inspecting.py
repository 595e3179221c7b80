"""Owns the verbs that look and leave: ``list``, ``tools``, ``get``.

What this is not: a view of a running service; each of these starts what it shows, and stops it.

Rule 1: heavy imports stand inside functions (``--help`` stays fast).
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from mcp_actors.cli import exits, output

if TYPE_CHECKING:
    import argparse

    from mcp_actors.cli.fleet import Plan
    from mcp_actors.cli.options import GlobalOptions
    from mcp_actors.jsontypes import Json

__all__ = ["configure_get", "configure_list", "configure_tools", "run_get", "run_list", "run_tools"]


# ── list ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def configure_list(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``list``."""
    parser.add_argument("name", metavar="NAME", nargs="?", help="only this server")
    parser.add_argument("--json", action="store_true", help='print {"servers": [...]}')


def run_list(shared: GlobalOptions, own: argparse.Namespace) -> int:
    """Connect all, report, stop all; 0 when every enabled server is connected."""
    from mcp_actors.cli.fleet import load_plan
    from mcp_actors.cli.signals import run_interruptibly

    plan = load_plan(shared).shown()
    if own.name is not None:
        plan = plan.only(own.name)
    return run_interruptibly(partial(_list, plan, as_json=own.json))


async def _list(plan: Plan, *, as_json: bool) -> int:
    from mcp_actors.cli import render
    from mcp_actors.cli.fleet import tell_warnings
    from mcp_actors.cli.listing import settled_fleet

    async with settled_fleet(plan) as runtime:
        statuses = runtime.status()
    rows = [render.server_row(statuses[name]) for name in plan.names]
    rows += [render.invalid_row(name, problem.describe()) for name, problem in plan.invalid.items()]
    if as_json:
        output.emit(render.json_text({"servers": rows}))
    else:
        if rows:
            output.emit(render.server_table(rows, has_colour=output.has_colour()))
        tell_warnings(statuses.values())
        output.note(render.summary_line(rows), prefix="")
    if plan.has_unusable_file:
        return exits.CONFIG
    return exits.OK if all(row["state"] in ("connected", "disabled") for row in rows) else exits.FAILED


# ── tools ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def configure_tools(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``tools``."""
    from mcp_actors.cli.listing import add_server

    add_server(parser, "tools")
    parser.add_argument("--search", metavar="QUERY", help="only those that fit these words, best first")
    parser.add_argument("--limit", type=int, default=10, metavar="N", help="with --search: at most so many (10)")
    parser.add_argument(
        "--format",
        choices=("anthropic", "openai", "openai-responses", "gemini"),
        help="print them as a model's interface takes them, cleaned",
    )


def run_tools(shared: GlobalOptions, own: argparse.Namespace) -> int:
    """List tools; 0 when every enabled server that was asked is connected."""
    from mcp_actors.cli.listing import run_listing

    return run_listing(shared, own, _tools)


async def _tools(plan: Plan, own: argparse.Namespace) -> int:
    from mcp_actors.cli import render
    from mcp_actors.cli.listing import is_over, miss, settled_fleet
    from mcp_actors.model.face import ModelFace
    from mcp_actors.tools.formats import FORMATS
    from mcp_actors.tools.listing import Listing
    from mcp_actors.tools.permission_rules import read_rules

    async with settled_fleet(plan) as runtime:
        code, catalog = miss(runtime, plan, own.server), runtime.catalog
        if is_over(own, code):
            return code
        face = ModelFace(runtime, rules=read_rules(plan.choices.permissions))  # those of --settings too
        listing = await face.listing() if own.format is not None or own.search is not None else Listing()
        found = () if own.search is None else await face.search(own.search, own.limit)
    tools = [tool for name in plan.names for tool in catalog.tools_of(name)]
    views = list(listing)
    if own.search is not None:
        views = [match.view for match in found]
        tools = [view.tool for view in views]
    if own.format is not None:
        for warning in (*face.rules.warnings, *listing.warnings):
            output.note(render.clean_line(warning, 400))
        output.emit(render.json_text(FORMATS[own.format](views)))
    elif own.json:
        output.emit(render.json_text({"tools": [render.tool_row(tool) for tool in tools]}))
    else:
        output.emit(render.tool_table(tools, has_words=own.server is not None))
    return code


# ── get ──────────────────────────────────────────────────────────────────────────────────────────────────────────────


def configure_get(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``get``."""
    parser.add_argument("name", metavar="NAME", help="a configured server")
    parser.add_argument("--json", action="store_true", help="print one object")


def run_get(shared: GlobalOptions, own: argparse.Namespace) -> int:
    """Show one server, started alone; 0 when it is connected or disabled."""
    from mcp_actors.cli.fleet import load_plan
    from mcp_actors.cli.signals import run_interruptibly

    plan = load_plan(shared).only(own.name)
    return run_interruptibly(partial(_get, plan, own.name, as_json=own.json))


async def _get(plan: Plan, name: str, *, as_json: bool) -> int:
    from mcp_actors.cli import render
    from mcp_actors.cli.listing import settled_fleet
    from mcp_actors.cli.redact import redact_entry
    from mcp_actors.tools.listing import clean_instructions

    async with settled_fleet(plan) as runtime:
        status, tools = runtime.status()[name], runtime.catalog.tools_of(name)
        instructions = runtime.server(name).instructions
    spec = plan.spec(name)
    shown: dict[str, Json] = {
        "name": name,
        "scope": str(spec.scope),
        "source": spec.source,
        "entry": redact_entry(spec.raw),
        "status": render.server_row(status),
        "remedy": status.remedy,
        "tools": [tool.name for tool in tools],
        "instructions": clean_instructions(instructions) or None,
    }
    output.emit(render.json_text(shown) if as_json else render.server_text(shown))
    if status.is_connected or not spec.is_enabled:
        return exits.OK
    return exits.code_of_state(str(status.state), status.reason)
