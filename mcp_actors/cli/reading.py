"""Owns the verbs about resources: ``resources`` lists them, ``read`` reads one, again whenever it changes.

What this is not: how contents are shown (`showing`).

Rule 1: what is listed is cleaned; URIs go to the server as they were typed (S194).
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from mcp_actors.cli import exits, output
from mcp_actors.cli.exits import UsageError
from mcp_actors.cli.listing import ListVerb, Part, add_server, row_of

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from mcp_actors.cli.fleet import Plan
    from mcp_actors.cli.options import GlobalOptions
    from mcp_actors.fleet.running import Runtime
    from mcp_actors.fleet.server import Server
    from mcp_actors.jsontypes import JsonObject
    from mcp_actors.tools.items import Resource, ResourceTemplate

__all__ = ["configure_read", "configure_resources", "run_read", "run_resources"]


# ── resources ────────────────────────────────────────────────────────────────────────────────────────────────────────


def configure_resources(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``resources``."""
    add_server(parser, "resources")
    parser.add_argument(
        "--templates", dest="resourceTemplates", action="store_true", help="list the patterns of URIs as well"
    )


async def _resources(server: Server) -> Sequence[Resource | ResourceTemplate]:
    return server.resources


async def _templates(server: Server) -> Sequence[Resource | ResourceTemplate]:
    return await server.templates()


def _cells(item: Resource | ResourceTemplate) -> Sequence[str]:
    from mcp_actors.tools.items import Resource

    kind = (item.mime_type or "-") if isinstance(item, Resource) else "(template)"
    return item.server, item.shown_key, kind, item.shown_name


def _row(item: Resource | ResourceTemplate) -> JsonObject:
    return row_of(item.definition, server=item.server)


run_resources = ListVerb(
    "resources",
    [Part("resources", _resources, _cells, _row), Part("resourceTemplates", _templates, _cells, _row)],
).run


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
