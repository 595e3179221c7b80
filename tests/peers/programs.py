"""Owns programs that serve a port on loopback for the time of a block: real servers of others.

What this is not: their installation (`conftest`), nor stdio servers, which our own runtime starts.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Final

import trio

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping, Sequence

__all__ = ["free_port", "serving"]

# Until a program listens.
START_SECONDS: Final = 20.0
# Between two looks; there is no line on its output that every program writes once it listens.
LOOK_SECONDS: Final = 0.05


def free_port() -> int:
    """A port of loopback that nobody uses now; kept by nobody, so that a program can be told to use it twice."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


@asynccontextmanager
async def serving(words: Sequence[str], port: int, environment: Mapping[str, str] | None = None) -> AsyncIterator[None]:
    """Run a program that listens on `port`. On exit it is killed with all that it started, as a crash would.

    Raises:
        RuntimeError: it ended instead; the last lines that it wrote are in the message.
        trio.TooSlowError: it does not listen.
    """
    program = await trio.lowlevel.open_process(
        words,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        env={**os.environ, **(environment or {})},
        start_new_session=True,
    )
    lines = bytearray()
    try:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_collect, program.stderr, lines)
            with trio.fail_after(START_SECONDS):
                while not await _listens(port):
                    if program.poll() is not None:
                        raise RuntimeError(f"{words[0]} ended with {program.returncode}: {lines[-2000:].decode()}")
                    await trio.sleep(LOOK_SECONDS)
            yield
            nursery.cancel_scope.cancel()
    finally:
        with suppress(ProcessLookupError):
            os.killpg(program.pid, signal.SIGKILL)
        with trio.CancelScope(shield=True):
            await program.wait()


async def _collect(stream: trio.abc.ReceiveStream | None, lines: bytearray) -> None:
    assert stream is not None
    async with stream:
        async for chunk in stream:
            lines += chunk
            del lines[:-20_000]


async def _listens(port: int) -> bool:
    try:
        stream = await trio.open_tcp_stream("127.0.0.1", port)
    except OSError:
        return False
    await stream.aclose()
    return True
