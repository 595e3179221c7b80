"""Owns the answers of our own two tools, through which a model finds and reads resources.

What this is not: their definitions and shapes (`tools.resource_tools`), or the permission to call them (`face`).

Rule 1: what goes wrong is a result that the model reads: it may have the URI from elsewhere.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol

import trio

from mcp_actors.errors import McpActorsError, UnknownServer
from mcp_actors.model.unavailable import unavailable
from mcp_actors.protocol import jsonrpc
from mcp_actors.tools.items import resources_from_items
from mcp_actors.tools.plans import ModelResult, ModelText
from mcp_actors.tools.resource_tools import LIST_RESOURCES, list_answer, plan_contents, resource_tools
from mcp_actors.values import frozen

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from mcp_actors.actors.registry import Snapshot
    from mcp_actors.jsontypes import JsonObject
    from mcp_actors.tools.plans import SaveFile
    from mcp_actors.tools.resource_tools import HostTool

__all__ = ["OwnTools", "Resourceful", "told"]

# From here on contents are decoded in a thread.
THREAD_BYTES: Final = 100_000
# Servers that an error names.
MAX_NAMED: Final = 10


class Resourceful(Protocol):
    """What these tools need of the runtime; see `Runtime` for each."""

    @property
    def snapshot(self) -> Snapshot: ...

    async def request(self, server: str, method: str, params: JsonObject | None = None) -> bytes: ...


def told(text: str, *, is_error: bool = False) -> ModelResult:
    """Make a result of one text of ours."""
    return ModelResult((ModelText(text),), is_error)


@frozen
class OwnTools:
    """The pair, over one runtime."""

    runtime: Resourceful
    # Writes files; gives their paths.
    save: Callable[[Sequence[SaveFile]], Awaitable[list[str | None]]]

    @property
    def offered(self) -> tuple[HostTool, ...]:
        """The pair while some connected server has resources, else nothing (S326)."""
        infos = [connection.info for connection in self.runtime.snapshot.connections.values()]
        return resource_tools(info.capabilities for info in infos if info is not None)

    async def call(self, tool: HostTool, arguments: JsonObject) -> ModelResult:
        """Answer one call. Cancellation: safe.

        Source:
            S320, S321, S327, S328, S331.
        """
        server = arguments.get("server")
        try:
            if tool is LIST_RESOURCES:
                answer = self._list(server if isinstance(server, str) else None)
            else:
                answer = await self._read(str(server), str(arguments.get("uri")))
        except (McpActorsError, trio.TooSlowError) as error:
            text = error.describe() if isinstance(error, McpActorsError) else f"timed out: {error}"
            return told(f"Error: {text}", is_error=True)
        return told(jsonrpc.encode(answer).decode())

    def _require(self, server: str) -> None:
        """Raise `UnknownServer`, which names those that have resources, where this one has none."""
        connections = self.runtime.snapshot.connections
        having = [name for name, one in connections.items() if one.info is not None and one.info.has("resources")]
        if server not in having:
            raise UnknownServer(name=server, nearest=tuple(having[:MAX_NAMED]))

    def _list(self, server: str | None) -> JsonObject:
        snapshot = self.runtime.snapshot
        if server is not None:
            self._require(server)
        wanted = {name: listing for name, listing in snapshot.listings.items() if server in (None, name)}
        offered = [resources_from_items(name, listing.resources or ())[0] for name, listing in wanted.items()]
        failures = unavailable(snapshot.servers) if server is None else {}
        return list_answer(offered, failures)

    async def _read(self, server: str, uri: str) -> JsonObject:
        self._require(server)
        raw = await self.runtime.request(server, "resources/read", {"uri": uri})
        plan = await trio.to_thread.run_sync(plan_contents, raw) if len(raw) > THREAD_BYTES else plan_contents(raw)
        return plan.finish(await self.save(plan.files))
