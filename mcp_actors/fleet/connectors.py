"""Owns the second phase of loading: sources that come over a network and may be late, such as an account's connectors.

What this is not: the first phase. What files define has been connecting since before the first byte was asked for
here; a source that is slow, broken or hostile costs only itself, and leaves a problem.
"""

from __future__ import annotations

import hashlib
import logging
from typing import TYPE_CHECKING, Final, Protocol

import trio
from attrs import evolve, field

from mcp_actors.actors.lifecycle import ServerState
from mcp_actors.config.source_texts import read_source
from mcp_actors.config.sources import SourceReading, SourceText, Surroundings
from mcp_actors.config.specs import RemoteTarget, Scope
from mcp_actors.errors import ConfigError, McpActorsError, TransportError
from mcp_actors.origins import place_of
from mcp_actors.transports.http_client import HttpClient
from mcp_actors.values import frozen

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mcp_actors.config.changes import Applied
    from mcp_actors.fleet.running import Runtime

__all__ = ["ConnectorSource", "HttpConnectorSource", "join_connectors"]

logger = logging.getLogger("mcp_actors.runtime")

# Seconds that one source may take: nobody waits for it, but neither should it be forgotten.
FETCH_SECONDS: Final = 30.0
# A thousand servers take 300 kB.
MAX_LIST_BYTES: Final = 4 * 1024 * 1024


class ConnectorSource(Protocol):
    """Something that knows servers and has to be asked."""

    @property
    def label(self) -> str:
        """What to call it in messages; no two sources of one runtime share it."""
        ...

    async def fetch(self) -> SourceReading:
        """Ask for the servers. May take long, and may raise any error of this package or `OSError`.

        Cancellation:
            Must be safe: it has `FETCH_SECONDS`.
        """
        ...


@frozen
class HttpConnectorSource:
    """Servers from a URL that answers ``{"mcpServers": {...}}``, remote ones only, in scope `claudeai`.

    What comes over a network may not start programs here, nor bring a headers helper, nor read our variables: entries
    are read without an environment. They are plain HTTP servers here: what an account's proxy wants to know of who
    calls, an entry has in its ``headers`` (S089).
    """

    url: str = field(repr=place_of)
    # Maps name -> value.
    headers: Mapping[str, str] = field(factory=dict, repr=False)
    # For the proxy variables, name -> value.
    environ: Mapping[str, str] = field(factory=dict, repr=False)

    @property
    def label(self) -> str:
        """Its origin, and enough of a hash to tell it from others there."""
        return f"{place_of(self.url)} ({hashlib.sha256(self.url.encode()).hexdigest()[:8]})"

    async def fetch(self) -> SourceReading:
        """Fetch the list.

        Raises:
            TransportError: it did not come, or not whole.
            RemoteProtocolError: it is too long.
            ConfigError: it was refused.

        Cancellation:
            Safe; the connection is closed.

        Source:
            S015.
        """
        client = HttpClient(self.url, environ=self.environ)
        pairs = [(name.encode(), value.encode()) for name, value in self.headers.items()]
        pairs += [(b"Accept", b"application/json"), (b"Accept-Encoding", b"identity")]
        try:
            answer = await client.request("GET", pairs)
            try:
                if not 200 <= answer.status < 300:
                    raise ConfigError(file=self.label, reason=f"answered HTTP {answer.status}", category="unreadable")
                body = await answer.read(MAX_LIST_BYTES)
            finally:
                await answer.aclose()
        finally:
            await client.aclose()
        reading = read_source(SourceText(body, self.label, Scope.CLAUDEAI), Surroundings())
        return _remote_only(reading)


def _remote_only(reading: SourceReading) -> SourceReading:
    kept, problems = [], list(reading.problems)
    for spec in reading.specs:
        if isinstance(spec.target, RemoteTarget) and spec.target.headers_helper is None:
            kept.append(spec)
        else:
            reason = "starts a program, which a list that comes over the network may not"
            problems.append(ConfigError(server=spec.name, file=reading.file, key=spec.name, reason=reason))
    return evolve(reading, specs=tuple(kept), problems=tuple(problems))


async def join_connectors(runtime: Runtime, source: ConnectorSource) -> Applied:
    """Ask a source and let its servers join the fleet; what it said before is replaced.

    To be run beside the fleet: ``nursery.start_soon(join_connectors, runtime, source)``. A failure is a problem of the
    runtime (`Runtime.problems`), and what the source said before stays.

    Cancellation:
        Safe; what was begun is done.

    Source:
        S015, S022, S056, S057, S104.
    """
    configured = runtime.configured
    reading: SourceReading | None = None
    reason = f"did not answer within {FETCH_SECONDS:g} s"
    with trio.move_on_after(FETCH_SECONDS):
        try:
            reading = await source.fetch()
        except ConfigError as error:
            reason = error.reason
        except TransportError as error:
            reason = error.reason
        except McpActorsError as error:
            reason = error.describe()
        except OSError as error:
            reason = error.strerror or type(error).__name__
    if reading is None:
        problem = ConfigError(file=source.label, reason=f"connectors: {reason}", category="unreadable")
        reading = SourceReading(Scope.CLAUDEAI, source.label, problems=(problem,))
        logger.warning("%s", problem)
    async with configured.reading:
        waiting = [name for name, status in runtime.status().items() if status.state is ServerState.NEEDS_AUTH]
        changes = configured.take(configured.joined(reading, waiting))
    await runtime.carry_out(changes)
    return changes
