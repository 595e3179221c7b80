"""Owns what the verbs that list have in common: whom they ask, how they wait, what they say of the missing.

What this is not: what is listed, and what is said of each; a `ListVerb` is told that.

Rule 1: heavy imports stand inside functions (``--help`` stays fast); attrs is one.
"""

from __future__ import annotations

from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar

from mcp_actors.cli import exits, output

if TYPE_CHECKING:
    import argparse
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence

    from mcp_actors.cli.fleet import Plan
    from mcp_actors.cli.options import GlobalOptions
    from mcp_actors.fleet.running import Runtime
    from mcp_actors.fleet.server import Server
    from mcp_actors.jsontypes import JsonObject

__all__ = ["ListVerb", "Part", "add_server", "is_over", "miss", "row_of", "run_listing", "settled_fleet"]

T = TypeVar("T")


def add_server(parser: argparse.ArgumentParser, what: str) -> None:
    """Add the argument and the option that every verb that lists has."""
    parser.add_argument("server", nargs="?", metavar="SERVER", help="only this server's; no other is started")
    parser.add_argument("--json", action="store_true", help=f'print {{"{what}": [...]}}')


def run_listing(
    shared: GlobalOptions, own: argparse.Namespace, verb: Callable[[Plan, argparse.Namespace], Awaitable[int]]
) -> int:
    """Run a verb with the plan of all servers, or of the one that was named."""
    from mcp_actors.cli.fleet import load_plan
    from mcp_actors.cli.signals import run_interruptibly

    plan = load_plan(shared)
    if own.server is not None:
        plan = plan.only(own.server)
    return run_interruptibly(partial(verb, plan, own))


@asynccontextmanager
async def settled_fleet(plan: Plan) -> AsyncIterator[Runtime]:
    """Start what the plan says, for a look, until every server is up or has failed; leaving stops all of it."""
    from mcp_actors.cli.asked import declining_host
    from mcp_actors.cli.fleet import open_fleet, settle

    async with open_fleet(plan.once(), host=declining_host()) as runtime:
        await settle(runtime)
        yield runtime


class Part(NamedTuple, Generic[T]):
    """One kind of what a verb lists."""

    # Its key of the JSON object.
    key: str
    # Asks one connected server for what it offers.
    fetch: Callable[[Server], Awaitable[Iterable[T]]]
    # The cells of one in the table, as long as they may be.
    cells: Callable[[T], Sequence[str]]
    # One for machines.
    row: Callable[[T], JsonObject]

    async def fetch_all(self, servers: Iterable[Server]) -> tuple[list[T], int]:
        """Ask the connected ones in turn.

        Returns:
            What they said, in order, and the exit code: one that failed is told of and hides no other's answer.
        """
        from mcp_actors.errors import McpActorsError

        found: list[T] = []
        code = exits.OK
        for server in servers:
            if not server.status.is_connected:
                continue
            try:
                found += await self.fetch(server)
            except McpActorsError as error:
                output.note(str(error))
                code = exits.FAILED
        return found, code


class ListVerb(NamedTuple, Generic[T]):
    """A verb that lists what servers offer, as a table or for machines."""

    # What is listed: the verb's own name.
    what: str
    # In the order of the table: the first, and each other one where the option of its key was given.
    parts: Sequence[Part[T]]

    def run(self, shared: GlobalOptions, own: argparse.Namespace) -> int:
        """List; 0 when every enabled server that was asked is connected, and answered."""
        return run_listing(shared, own, self._list)

    async def _list(self, plan: Plan, own: argparse.Namespace) -> int:
        from mcp_actors.cli.render import clean_line, columns, json_text

        parts = [part for part in self.parts if part is self.parts[0] or getattr(own, part.key)]
        async with settled_fleet(plan) as runtime:
            servers = [runtime.server(name) for name in plan.names]
            code = miss(runtime, plan, own.server)
            if is_over(own, code):
                return code
            found = [(part, *await part.fetch_all(servers)) for part in parts]
        if own.json:
            output.emit(json_text({part.key: [part.row(each) for each in items] for part, items, _ in found}))
        else:
            rows = [[clean_line(cell) for cell in part.cells(each)] for part, items, _ in found for each in items]
            output.emit("\n".join(columns(rows)) if rows else f"no {self.what}")
        return next((failed for _, _, failed in found if failed), code)


def miss(runtime: Runtime, plan: Plan, asked: str | None) -> int:
    """Tell of servers that should be up and are not, and of lists that failed.

    Args:
        runtime: settled.
        plan: what it runs.
        asked: the one server that was named: a disabled one is missed as well.

    Returns:
        The exit code of a verb that lists.
    """
    from mcp_actors.actors.lifecycle import ServerState
    from mcp_actors.cli.fleet import refuse, tell_warnings

    statuses = runtime.status().values()
    tell_warnings(statuses)
    fine = (ServerState.CONNECTED, *([ServerState.DISABLED] if asked is None else []))
    codes = [refuse(status) for status in statuses if status.state not in fine]
    if len(statuses) == 1 and codes:
        return codes[0]
    return exits.FAILED if codes or plan.invalid else exits.OK


def is_over(own: argparse.Namespace, code: int) -> bool:
    """Whether all is said: the one server that was named is not up. A machine gets its empty list all the same."""
    return own.server is not None and code != exits.OK and not own.json


def row_of(definition: JsonObject, **ours: str) -> JsonObject:
    """One row for machines: what we add, then everything as the server wrote it, bar keys that would hide ours."""
    return {**ours, **{key: value for key, value in definition.items() if key not in ours}}
