"""Owns the way to run a `ScriptedServer` as a stdio process.

What this is not: the fast server for many processes (`stdio_server`); this one imports trio.

``python -m mcp_actors.testing.wire_server PATH [NAME]`` runs the Python file PATH and serves what it calls ``server``,
or NAME.
"""

from __future__ import annotations

import os
import runpy
import sys
from typing import TYPE_CHECKING, Final

import trio
from attrs import field

from mcp_actors.protocol.framing import LineFramer
from mcp_actors.values import define

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mcp_actors.testing.scripted import ScriptedServer

__all__ = ["StdioLink", "main", "serve_stdio"]

READ_BYTES: Final = 64 * 1024
MAX_LINE_BYTES: Final = 64 * 1024 * 1024


@define(eq=False)
class StdioLink:
    """Lines on a pair of pipes as a `scripted.Link`."""

    _incoming: trio.abc.ReceiveStream
    _outgoing: trio.abc.SendStream
    _framer: LineFramer = field(factory=lambda: LineFramer(MAX_LINE_BYTES))
    # Lines that were read and not yet received, newest first.
    _lines: list[bytes] = field(factory=list)
    _lock: trio.Lock = field(factory=trio.Lock)

    async def receive(self) -> bytes:
        """Next line that is not blank.

        Raises:
            trio.EndOfChannel: standard input ended.
        """
        while not self._lines:
            chunk = await self._incoming.receive_some(READ_BYTES)
            if not chunk:
                raise trio.EndOfChannel
            self._lines = self._framer.feed(bytes(chunk))[::-1]
        return self._lines.pop()

    async def send(self, data: bytes) -> None:
        """Write one line.

        Cancellation:
            Shielded once the write has begun, until the pipe takes it or breaks: half a line would garble the next.
        """
        async with self._lock:
            with trio.CancelScope(shield=True):
                await self._outgoing.send_all(data + b"\n")


async def serve_stdio(server: ScriptedServer) -> int:
    """Serve one client on descriptors 0 and 1 until end-of-file. Returns the exit status.

    Cancellation:
        Safe.
    """
    incoming, outgoing = trio.lowlevel.FdStream(os.dup(0)), trio.lowlevel.FdStream(os.dup(1))
    async with incoming, outgoing:
        await server.serve(StdioLink(incoming, outgoing))
    return server.died_with or 0


def main(arguments: Sequence[str] | None = None) -> None:
    """Serve the server that a Python file makes. Never returns."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    if not 1 <= len(words) <= 2:
        sys.stderr.write("usage: wire_server PATH [NAME]\n")
        raise SystemExit(2)
    server = runpy.run_path(words[0])[words[1] if len(words) > 1 else "server"]
    try:
        status = trio.run(serve_stdio, server)
    except KeyboardInterrupt:
        status = 0
    raise SystemExit(status)


if __name__ == "__main__":
    main()
