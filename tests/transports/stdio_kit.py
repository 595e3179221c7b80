"""What the tests of real children share: a sink that collects, an open transport, and proof that nobody is left."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import trio

from mcp_actors.config.settings import Settings
from mcp_actors.config.specs import ServerSpec, StdioTarget
from mcp_actors.errors import TransportError
from mcp_actors.protocol.types import Frame
from mcp_actors.transports import procfs
from mcp_actors.transports.stdio import StdioTransport

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

CHILDREN = Path(__file__).parent / "children"
PYTHON = [sys.executable, "-S", "-E"]
# Short waits: a child that refuses costs a fifth of a second, not four.
SHORT = Settings(stop_interrupt=0.1, stop_terminate=0.1, stop_reap=2.0)


class Sink:
    """Collects raw messages; `wait_for` returns when there are enough."""

    def __init__(self) -> None:
        self.raw: list[bytes] = []
        self._lot = trio.lowlevel.ParkingLot()

    def deliver(self, raw: bytes) -> None:
        self.raw.append(raw)
        self._lot.unpark_all()

    def refuse(self, frame, refusal) -> None:
        raise AssertionError("stdio refuses nothing")

    def lose(self, frame, reason) -> None:
        raise AssertionError("stdio loses nothing")

    def answering(self, frame) -> None:
        raise AssertionError("stdio tells of no first byte")

    def ended(self, error) -> None:
        """The tests look at what `run` raises."""

    def is_waiting(self, request_id) -> bool:
        return True

    async def wait_for(self, count: int) -> list[bytes]:
        while len(self.raw) < count:
            await self._lot.park()
        return self.raw[:count]


def child_spec(name: str, *args: str, environment=None, cwd=None) -> ServerSpec:
    """A server that is one of the scripts in `children/`."""
    path = str(CHILDREN / name)
    command = ["/bin/sh", path] if name.endswith(".sh") else [*PYTHON, path]
    if name.endswith(".sh"):
        environment = {"PYTHON": sys.executable}
    return ServerSpec(name.split(".")[0], StdioTarget(command[0], (*command[1:], *args), environment or {}, cwd))


def make(name: str, *args: str, settings: Settings = SHORT, environment=None, **more) -> StdioTransport:
    return StdioTransport(child_spec(name, *args, environment=environment), settings, environ=dict(os.environ), **more)


class Wire:
    """A transport in `run`, what it delivered, and how it ended."""

    def __init__(self, transport: StdioTransport) -> None:
        self.transport = transport
        self.sink = Sink()
        self.ended = trio.Event()
        self.error: TransportError | None = None

    async def send(self, data: bytes) -> None:
        await self.transport.send(Frame(data))

    @property
    def pid(self) -> int:
        pid = self.transport.diagnostics().pid
        assert pid is not None
        return pid

    async def run(self, task_status=trio.TASK_STATUS_IGNORED) -> None:
        try:
            await self.transport.run(self.sink, task_status=task_status)
        except TransportError as error:
            self.error = error
        finally:
            self.ended.set()

    async def end(self) -> TransportError:
        await self.ended.wait()
        assert self.error is not None
        return self.error


@asynccontextmanager
async def opened(transport: StdioTransport) -> AsyncIterator[Wire]:
    """Run the transport; leave by closing it."""
    wire = Wire(transport)
    async with trio.open_nursery() as nursery:
        await nursery.start(wire.run)
        yield wire
        nursery.cancel_scope.cancel()


def our_children() -> list[int]:
    """Pids of the processes below this one, zombies included."""
    rows = list(procfs.stats())
    tree = {os.getpid()}
    while more := {row.pid for row in rows if row.parent in tree} - tree:
        tree |= more
    return sorted(tree - {os.getpid()})


def living(marker: str) -> list[int]:
    """Pids of living processes, wherever they hang, that have `marker` among their arguments."""
    found = []
    for row in procfs.stats():
        try:
            arguments = Path(f"/proc/{row.pid}/cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if row.is_alive and marker.encode() in arguments:
            found.append(row.pid)
    return found


@contextmanager
def nobody_left() -> Iterator[None]:
    """Check that the body left no process and no descriptor behind."""
    before, descriptors = our_children(), len(list(Path("/proc/self/fd").iterdir()))
    yield
    assert [pid for pid in our_children() if pid not in before] == []
    assert len(list(Path("/proc/self/fd").iterdir())) <= descriptors


@contextmanager
def stubborn_child() -> Iterator[subprocess.Popen[bytes]]:
    """A process that ignores signals, of no transport and in a group of its own; killed and reaped afterwards."""
    child = subprocess.Popen(
        [*PYTHON, str(CHILDREN / "server.py"), "stubborn"], start_new_session=True, stdout=subprocess.PIPE
    )
    assert child.stdout is not None
    child.stdout.readline()
    try:
        yield child
    finally:
        child.kill()
        child.communicate()


def dead_pid() -> int:
    done = subprocess.Popen(["/bin/true"])
    done.wait()
    return done.pid
