"""Owns the verbs about resources: ``resources`` lists them, ``read`` reads one, again whenever it changes.

What this is not: how contents are shown (`showing`).

Rule 1: what is listed is cleaned; URIs go to the server as they were typed (S194).
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from mcp_actors.cli import exits, output
from mcp_actors.cli.exits import UsageError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from mcp_actors.cli.fleet import Plan
    from mcp_actors.cli.options import GlobalOptions
    from mcp_actors.fleet.running import Runtime
    from mcp_actors.jsontypes import Json
    from mcp_actors.tools.items import Resource, ResourceTemplate

__all__ = ["configure_read", "configure_resources", "run_read", "run_resources"]


# ── resources ────────────────────────────────────────────────────────────────────────────────────────────────────────


def configure_resources(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``resources``."""
    from mcp_actors.cli.listing import add_server

    add_server(parser, "resources")
    parser.add_argument("--templates", action="store_true", help="list the patterns of URIs as well")


def run_resources(shared: GlobalOptions, own: argparse.Namespace) -> int:
    """List resources; 0 when every enabled server that was asked is connected."""
    from mcp_actors.cli.listing import run_listing

    return run_listing(shared, own, _resources)


async def _resources(plan: Plan, own: argparse.Namespace) -> int:
    from mcp_actors.cli import render
    from mcp_actors.cli.listing import each_of, is_over, miss, row_of, settled_fleet

    async with settled_fleet(plan) as runtime:
        servers = [runtime.server(name) for name in plan.names]
        resources = [resource for server in servers for resource in server.resources]
        code = miss(runtime, plan, own.server)
        if is_over(own, code):
            return code
        templates, failed = await each_of(servers if own.templates else (), lambda server: server.templates())
    if own.json:
        shown: dict[str, Json] = {"resources": [row_of(each.definition, server=each.server) for each in resources]}
        if own.templates:
            shown["resourceTemplates"] = [row_of(each.definition, server=each.server) for each in templates]
        output.emit(render.json_text(shown))
    else:
        output.emit(_table(resources, templates))
    return failed or code


def _table(resources: Sequence[Resource], templates: Sequence[ResourceTemplate]) -> str:
    from mcp_actors.cli.render import clean_line, columns

    rows = [
        (resource.server, resource.shown_key, resource.mime_type or "-", resource.shown_name) for resource in resources
    ]
    rows += [(template.server, template.shown_key, "(template)", template.shown_name) for template in templates]
    if not rows:
        return "no resources"
    return "\n".join(columns([[clean_line(cell) for cell in row] for row in rows]))


# ── read ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def configure_read(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``read``."""
    parser.add_argument("server", metavar="SERVER", help="a configured server; or @SERVER:URI alone")
    parser.add_argument("uri", metavar="URI", nargs="?", help="as listed; sent as it stands here")
    parser.add_argument(
        "--output",
        choices=("text", "markdown", "json", "raw"),
        default="text",
        help="json: the result as the server sent it; raw: the contents alone, byte for byte",
    )
    parser.add_argument("--save-images", metavar="DIR", help="write pictures to files in this directory")
    parser.add_argument("--watch", action="store_true", help="read it again whenever it changes, until interrupted")
    parser.add_argument("--times", type=int, metavar="N", help="with --watch: leave after so many readings")


def run_read(shared: GlobalOptions, own: argparse.Namespace) -> int:
    """Read a resource; 0 when it could be read."""
    from mcp_actors.cli.fleet import load_plan
    from mcp_actors.cli.signals import run_interruptibly
    from mcp_actors.tools.mentions import parse_mentions

    server, uri = own.server, own.uri
    if uri is None:
        mentions = parse_mentions(server)
        if len(mentions) != 1 or mentions[0].end != len(server):
            raise UsageError("name a server and a URI: mcp-actors read SERVER URI, or @SERVER:URI")
        server, uri = mentions[0].server, mentions[0].uri
    plan = load_plan(shared).only(server)
    return run_interruptibly(partial(_read, plan, server, uri, own))


async def _read(plan: Plan, server: str, uri: str, own: argparse.Namespace) -> int:
    from mcp_actors.cli.fleet import open_fleet, refuse, settle

    async with open_fleet(plan.once()) as runtime:
        await settle(runtime)
        status = runtime.status()[server]
        if not status.is_connected:
            return refuse(status)
        if not own.watch:
            await _read_once(runtime, server, uri, own)
            return exits.OK
        async with runtime.server(server).watch_resource(uri) as changes:
            readings = 1
            await _read_once(runtime, server, uri, own)
            while readings != own.times:
                changed = await anext(changes)
                await _read_once(runtime, server, changed, own)
                readings += 1
    return exits.OK


async def _read_once(runtime: Runtime, server: str, uri: str, own: argparse.Namespace) -> None:
    from mcp_actors.cli.calling import show_result
    from mcp_actors.cli.render import clean_line
    from mcp_actors.errors import LocalProtocolError, RpcError
    from mcp_actors.protocol.jsonrpc import decode_object, encode
    from mcp_actors.tools.mentions import complete_mention
    from mcp_actors.tools.resource_tools import NOT_FOUND_CODES, contents_as_blocks
    from mcp_actors.tools.results import ToolResult

    info = runtime.snapshot.connections[server].info
    if info is not None and not info.has("resources"):
        raise LocalProtocolError(server=server, reason="the server does not offer resources")
    try:
        raw = await runtime.request(server, "resources/read", {"uri": uri})
    except RpcError as error:
        if error.code in NOT_FOUND_CODES:
            known = ((server, resource.uri) for resource in runtime.server(server).resources)
            nearest = [found.removeprefix(f"{server}:") for found in complete_mention(f"{server}:{uri}", known, 3)]
            if nearest:
                error.add_note(f"did you mean {' or '.join(map(clean_line, nearest))}?")
            error.add_note(f"mcp-actors resources {server} lists what there is")
        raise
    if own.output == "json":
        output.emit_bytes(raw)
        return
    result = ToolResult(encode({"content": contents_as_blocks(decode_object(raw))}), server)
    await show_result(result, own, name=f"{server}-resource")
