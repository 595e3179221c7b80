"""[kit] Scripted servers and broken wires, for our tests and yours."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mcp_actors.testing.contracts import check_transport
    from mcp_actors.testing.faulty import FaultyTransport
    from mcp_actors.testing.http_doorway import HttpAnswer, HttpRequest
    from mcp_actors.testing.http_server import open_http_server
    from mcp_actors.testing.http_voices import HttpOptions
    from mcp_actors.testing.scripted import Call, ScriptedServer
    from mcp_actors.testing.sse_server import open_sse_server
    from mcp_actors.testing.synthetic import synthetic_command, synthetic_server
    from mcp_actors.testing.wire_server import serve_stdio
    from mcp_actors.transports.memory import MemoryTransport

__all__ = [
    "Call",
    "FaultyTransport",
    "HttpAnswer",
    "HttpOptions",
    "HttpRequest",
    "MemoryTransport",
    "ScriptedServer",
    "check_transport",
    "open_http_server",
    "open_sse_server",
    "serve_stdio",
    "synthetic_command",
    "synthetic_server",
]

# Name -> module, of this room unless it is written whole. Imported on first use: `stdio_server` runs from this room and
# must not wait for it.
_HOMES = {
    "Call": "scripted",
    "FaultyTransport": "faulty",
    "HttpAnswer": "http_doorway",
    "HttpOptions": "http_voices",
    "HttpRequest": "http_doorway",
    "MemoryTransport": "mcp_actors.transports.memory",
    "ScriptedServer": "scripted",
    "check_transport": "contracts",
    "open_http_server": "http_server",
    "open_sse_server": "sse_server",
    "serve_stdio": "wire_server",
    "synthetic_command": "synthetic",
    "synthetic_server": "synthetic",
}


def __getattr__(name: str) -> object:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(home if "." in home else f"{__name__}.{home}"), name)
