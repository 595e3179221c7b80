"""Builds the catalog of a large fleet: decoded, cleaned and named, against the bare decode of the same bytes.

Run it from a checkout: ``python -m benchmarks.catalog_build [--servers N] [--tools N] [--repeat R]``.
"""

from __future__ import annotations

import argparse
import gc
import statistics
import sys
import time
from typing import TYPE_CHECKING

from mcp_actors.protocol import jsonrpc
from mcp_actors.tools.catalog import Catalog, tools_from_items
from mcp_actors.tools.listing import list_for_model
from mcp_actors.tools.search import SearchIndex
from mcp_actors.tools.view import view_of

if TYPE_CHECKING:
    from collections.abc import Callable

MAX_RATIO = 3.0

TEXT = (
    "Search the repository for issues that match the query. Returns at most a hundred of them, newest first, "
    "each with number, title, state, labels and author. Use the page parameter to see more of them."
)


def definition(server: int, tool: int) -> dict:
    """One tool as real servers define them: about 1 kB."""
    names = ("owner", "repo", "query", "state", "labels", "page")
    properties: dict[str, object] = {
        name: {"type": "string", "description": f"The {name} to use. {TEXT[:80]}"} for name in names
    }
    properties["per_page"] = {"type": "integer", "minimum": 1, "maximum": 100, "default": 30}
    properties["tags"] = {"type": "array", "items": {"type": "string"}, "description": "Tags."}
    return {
        "name": f"search_things_{server}_{tool}",
        "title": "Search things",
        "description": TEXT,
        "inputSchema": {"type": "object", "properties": properties, "required": ["owner", "repo"]},
        "annotations": {"readOnlyHint": True, "openWorldHint": True},
    }


def pages(servers: int, tools: int) -> dict[str, bytes]:
    """Maps server -> its whole ``tools/list`` result."""
    return {
        f"server-{server}": jsonrpc.encode({"tools": [definition(server, tool) for tool in range(tools)]})
        for server in range(servers)
    }


def items_of(raw: bytes) -> list[bytes]:
    """The undecoded tools of a ``tools/list`` result."""
    return jsonrpc.decode_page(raw, "tools")[0]


def build(results: dict[str, bytes]) -> Catalog:
    offers = {name: tools_from_items(name, items_of(raw)).tools for name, raw in results.items()}
    return Catalog(tuple(results)).replace_servers(offers)


def best_of(work: Callable[[], object], repeat: int) -> float:
    """Milliseconds: the median of `repeat` runs, the collector at rest as in a long-lived process between bursts."""
    times = []
    for _ in range(repeat):
        gc.collect()
        began = time.perf_counter()
        kept = work()
        times.append((time.perf_counter() - began) * 1000)
        del kept
    return statistics.median(times)


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.catalog_build", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument("--servers", type=int, default=100, metavar="N")
    parser.add_argument("--tools", type=int, default=100, metavar="N", help="of each server")
    parser.add_argument("--repeat", type=int, default=7, metavar="R")
    options = parser.parse_args()

    results = pages(options.servers, options.tools)
    size = sum(map(len, results.values()))
    print(f"{options.servers} servers x {options.tools} tools, {size / 1e6:.1f} MB of lists")

    def decode() -> object:
        return [jsonrpc.decode(raw) for raw in results.values()]

    def everything() -> object:
        fleet = build(results)
        views = {name: view_of(tool) for name, tool in fleet.tools.items()}
        return fleet, views, [view.description for view in views.values()]

    def listed() -> object:
        fleet = build(results)
        return fleet, [(view.name, view.description, view.input_schema) for view in list_for_model(fleet)]

    bare = best_of(decode, options.repeat)
    whole = best_of(everything, options.repeat)
    ratio = whole / bare
    print(f"bare decode                 {bare:9.1f} ms")
    print(f"decoded, cleaned, named     {whole:9.1f} ms   {ratio:.2f} x   (target: at most {MAX_RATIO:g} x)")

    judged = best_of(listed, options.repeat)
    print(f"and schemas judged, listed  {judged:9.1f} ms   {judged / bare:.2f} x")

    fleet = build(results)
    listing = list_for_model(fleet)
    index = SearchIndex().replace(listing)
    index.search("issues")
    changed = next(iter(results))

    def change() -> object:
        tools = tools_from_items(changed, items_of(results[changed])).tools
        after = fleet.replace_servers({changed: tools})
        return after.tools, list_for_model(after, previous=listing).views

    one = best_of(change, options.repeat * 3)
    print(f"one server's list changed   {one:9.1f} ms   {judged / one:.0f} times less than all of them")
    first = best_of(lambda: SearchIndex().replace(listing).search("find open issues", 5), 3)
    print(f"first search, with indexing {first:9.1f} ms")
    print(f"one search                  {best_of(lambda: index.search('find open issues', 5), 21):9.1f} ms")
    return 0 if ratio <= MAX_RATIO else 1


if __name__ == "__main__":
    sys.exit(main())
