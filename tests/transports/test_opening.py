"""The table from names to transports."""

from __future__ import annotations

import subprocess
import sys

import pytest

from mcp_actors.config.settings import Settings
from mcp_actors.config.specs import InProcessTarget, RemoteTarget, ServerSpec, StdioTarget, TransportName
from mcp_actors.errors import ConfigError, ConnectFailed
from mcp_actors.transports.opening import BUILDERS, open_transport


async def serve(link):
    """Serve nothing."""


@pytest.mark.parametrize(
    ("target", "kind"),
    [
        (StdioTarget("true"), "stdio"),
        (RemoteTarget("http://h/mcp"), "http"),
        (RemoteTarget("http://h/mcp", is_guess=True), "http"),
        (RemoteTarget("http://h/sse", transport=TransportName.SSE), "sse"),
        (RemoteTarget("http://h/sse", transport=TransportName.SSE_IDE), "sse"),
        (RemoteTarget("ws://h/", transport=TransportName.WS), "ws"),
        (RemoteTarget("ws://h/", transport=TransportName.WS_IDE), "ws"),
        (InProcessTarget(serve), "memory"),
    ],
)
def test_open(target, kind):
    """Each kind of target gets its transport, which is built and not opened."""
    transport = open_transport(ServerSpec("s", target), Settings(), environ={})

    assert kind == transport.kind
    assert transport.is_exchange is (kind in ("http", "sse"))
    assert transport.shutdown_bound > 0


def test_every_transport_has_a_builder():
    """The table is complete (S006)."""
    assert set(BUILDERS) == set(TransportName)


def test_open_bad_header():
    """What cannot be sent is a configuration error before anything is opened."""
    with pytest.raises(ConfigError, match=r"headers\.X"):
        open_transport(ServerSpec("s", RemoteTarget("http://h/", headers={"X": "a\nb"})), Settings(), environ={})


def test_open_sdk_without_server():
    """A remote target that calls itself in-process is refused."""
    with pytest.raises(ConnectFailed):
        open_transport(ServerSpec("s", RemoteTarget("http://h/", transport=TransportName.SDK)), Settings(), environ={})


def test_open_passes_environ():
    """The proxy variables reach the HTTP transport."""
    environ = {"http_proxy": "http://p:1"}
    transport = open_transport(ServerSpec("s", RemoteTarget("http://h/")), Settings(), environ=environ)

    assert transport._client._environ == environ


def test_stdio_loads_no_http():
    """A program that only talks stdio never imports HTTP."""
    code = (
        "import sys\n"
        "from mcp_actors.config.settings import Settings\n"
        "from mcp_actors.config.specs import ServerSpec, StdioTarget\n"
        "from mcp_actors.transports.opening import open_transport\n"
        "open_transport(ServerSpec('s', StdioTarget('true')), Settings(), environ={})\n"
        "print([m for m in sys.modules if 'http' in m and not m.startswith('http.')])\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert "mcp_actors.transports.http" not in done.stdout
    assert "httpx" not in done.stdout
