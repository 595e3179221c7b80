"""Owns the table from a transport's name to what builds it. Each module is imported when its first server needs it.

What this is not: opening; `Transport.run` does that.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias

from attrs import field

from mcp_actors.config.specs import InProcessTarget, RemoteTarget, TransportName
from mcp_actors.errors import ConnectFailed
from mcp_actors.transports.ladder import Hurry
from mcp_actors.values import frozen

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mcp_actors.config.settings import Settings
    from mcp_actors.config.specs import ServerSpec
    from mcp_actors.transports.base import Transport
    from mcp_actors.transports.found import Found
    from mcp_actors.transports.http_client import Auth
    from mcp_actors.transports.leftovers import Journal

__all__ = ["BUILDERS", "Opening", "open_transport"]


@frozen
class Opening:
    """What a builder may need, besides the spec."""

    settings: Settings
    # Maps variable name -> text: the base of a child's environment, the variables of proxies and TLS.
    environ: Mapping[str, str] = field(repr=False)
    # Who we are, for transports over HTTP; None: only the configured headers.
    auth: Auth | None = None
    # Where children are noted for the next start's sweep; see `transports.stdio`.
    journal: Journal | None = None
    # Pressed when a person wants a stop to skip its waits; see `transports.ladder`.
    hurry: Hurry | None = None
    # What was found out about servers that named no transport; None: nothing is remembered.
    found: Found | None = None


def _stdio(spec: ServerSpec, opening: Opening) -> Transport:
    from mcp_actors.transports.stdio import StdioTransport

    hurry = opening.hurry or Hurry()
    return StdioTransport(spec, opening.settings, environ=opening.environ, journal=opening.journal, hurry=hurry)


def _http(spec: ServerSpec, opening: Opening) -> Transport:
    from mcp_actors.transports.http import HttpTransport

    if isinstance(spec.target, RemoteTarget) and spec.target.is_guess:
        from mcp_actors.transports.fallback import FallbackTransport
        from mcp_actors.transports.found import Found

        found = opening.found or Found()
        return FallbackTransport(spec, opening.settings, found=found, auth=opening.auth, environ=opening.environ)
    return HttpTransport(spec, opening.settings, auth=opening.auth, environ=opening.environ)


def _sse(spec: ServerSpec, opening: Opening) -> Transport:
    from mcp_actors.transports.legacy_sse import SseTransport

    return SseTransport(spec, opening.settings, auth=opening.auth, environ=opening.environ)


def _ws(spec: ServerSpec, opening: Opening) -> Transport:
    from mcp_actors.transports.websocket import WebSocketTransport

    return WebSocketTransport(spec, opening.settings, environ=opening.environ)


def _memory(spec: ServerSpec, _opening: Opening) -> Transport:
    from mcp_actors.transports.memory import MemoryTransport

    target = spec.target
    if not isinstance(target, InProcessTarget):
        raise ConnectFailed(server=spec.name, reason="the transport sdk needs a server in this process")
    return MemoryTransport(target.serve)


Builder: TypeAlias = "Callable[[ServerSpec, Opening], Transport]"

BUILDERS: Final[Mapping[TransportName, Builder]] = {
    TransportName.STDIO: _stdio,
    TransportName.HTTP: _http,
    TransportName.SSE: _sse,
    TransportName.WS: _ws,
    TransportName.SSE_IDE: _sse,
    TransportName.WS_IDE: _ws,
    TransportName.SDK: _memory,
}


def open_transport(
    spec: ServerSpec,
    settings: Settings,
    *,
    environ: Mapping[str, str],
    auth: Auth | None = None,
    journal: Journal | None = None,
    hurry: Hurry | None = None,
    found: Found | None = None,
) -> Transport:
    """Build the transport of a server; `run` opens it.

    Args:
        spec: what to talk to.
        settings: bounds and times.
        environ: maps variable name -> text.
        auth: adds credentials to HTTP requests.
        journal: where children are noted.
        hurry: pressed when a stop should skip its waits.
        found: remembers which servers speak HTTP+SSE, over their lives; None: each life finds it out.

    Raises:
        ConnectFailed: the target does not fit the transport.
        ConfigError: the transport cannot work with what the spec says.
    """
    return BUILDERS[spec.transport](spec, Opening(settings, environ, auth, journal, hurry, found))
