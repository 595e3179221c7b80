"""Owns the stdio transport: one child process, whole lines in both directions, a bounded memory of what else it said.

What this is not: MCP. A line that begins like a JSON object or batch goes to the sink unread; all others are noise.

Rule 1: whatever way `run` is left, the whole tree is stopped first, shielded and bounded (faults 1-3, 94, S145).
Rule 2: one task hears all of it, also while it is being stopped: a child that blocks on a full pipe cannot leave in
order. Reading never waits for writing, for the sink, or for a log (faults 7, 18).
Rule 3: the end is judged once, a short moment after its first sign, so that the cause carries exit status and last
words; everybody who asks gets that cause (faults 5, 17).
"""

from __future__ import annotations

import contextlib
import logging
import os
import re
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

import trio
from attrs import field

from mcp_actors.config.specs import StdioTarget
from mcp_actors.errors import ConnectFailed, RemoteProtocolError, TransportBroken, TransportClosed, TransportError
from mcp_actors.protocol.framing import LineFramer, encode_line
from mcp_actors.sent_secrets import longest_first, of_arguments, of_environment
from mcp_actors.transports import ladder
from mcp_actors.transports.base import Diagnostics, Turn
from mcp_actors.transports.commands import resolve_final, spawn_hint
from mcp_actors.transports.environment import child_environment
from mcp_actors.transports.outbox import Outbox
from mcp_actors.transports.process import BIG_PIPE_BYTES, PIPE_BYTES, describe_exit, enlarge_pipe, read_now
from mcp_actors.transports.spawning import spawn
from mcp_actors.transports.words import LastLines, LineLimit
from mcp_actors.values import define

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mcp_actors.config.settings import Settings
    from mcp_actors.config.specs import ServerSpec
    from mcp_actors.protocol.types import Frame, ServerInfo
    from mcp_actors.transports.base import Sink
    from mcp_actors.transports.leftovers import Journal
    from mcp_actors.transports.process import Child

__all__ = ["StdioTransport"]

_log = logging.getLogger("mcp_actors.transports.stdio")

# How long after the first sign of the end (exit, end-of-file, a refused write) the other signs and the last words are
# waited for, in seconds. A grandchild that holds the pipes open costs no more than this.
_LAST_MOMENT: Final = 0.5
# How many lines of standard error an error shows.
_SHOWN_LINES: Final = 20
# An object or a batch; "[" alone also begins many a log line ("[INFO] ready"). A byte order mark may lead.
_MESSAGE: Final = re.compile(
    # An object, or an array that begins with one, with nothing, or with a bare value (fault 77): no "[12:01:07] ready".
    rb"(?:\xef\xbb\xbf)?[ \t]*(?:\{|\[[ \t]*(?:[{\]]|(?:-?\d{1,20}|null|true|false|\"[^\"]{0,80}\")[ \t]*,[ \t]*[\[{]))"
)
_OBJECT: Final = ord("{")
_BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"


@define(eq=False)
class _Running:
    """What there is from the child's start on."""

    child: Child
    sink: Sink


@define(eq=False)
class StdioTransport:
    """Runs one server as a child process and moves lines to and from it. See `base.Transport` for the contract."""

    spec: ServerSpec
    settings: Settings
    # The runtime's own environment; the child sees little of it (fault 101).
    environ: Mapping[str, str] = field(repr=False, kw_only=True)
    # Where the child is recorded for the next run, None: nowhere (fault 4).
    journal: Journal | None = field(default=None, kw_only=True, repr=False)
    # Shared by all transports of a runtime: skips the waits of their ladders.
    hurry: ladder.Hurry = field(factory=ladder.Hurry, kw_only=True, repr=False)

    kind = "stdio"
    is_exchange = False
    is_eager = True

    # See `base.Transport`.
    secrets: tuple[str, ...] = field(init=False, repr=False)
    _target: StdioTarget = field(init=False, repr=False)
    # From `run` on; None where the child did not start, too.
    _running: _Running | None = field(default=None, init=False, repr=False)
    # Takes messages before the child is there, too.
    _outbox: Outbox = field(factory=Outbox, init=False, repr=False)
    # What the first sign of the end said; a judgement may know better.
    _first_sign: str | None = field(default=None, init=False)
    _framer: LineFramer = field(init=False, repr=False)
    _turn: Turn = field(factory=Turn, init=False, repr=False)
    # How much is read of standard output at once; once a read fills the pipe, that is enlarged and so is the read.
    _read_bytes: int = field(default=PIPE_BYTES, init=False, repr=False)
    # Set with `_verdict`: why nothing can be sent any more.
    _judged: trio.Event = field(factory=trio.Event, init=False, repr=False)
    _verdict: TransportError | None = field(default=None, init=False)
    _stderr: LastLines = field(init=False, repr=False)
    _limit: LineLimit = field(factory=LineLimit, init=False, repr=False)
    # The last lines before we began to stop it; None until then.
    _said: tuple[str, ...] | None = field(default=None, init=False, repr=False)
    _noise: LastLines = field(init=False, repr=False)
    _noise_count: int = field(default=0, init=False)
    _notes: tuple[str, ...] = field(default=(), init=False, repr=False)

    def __attrs_post_init__(self) -> None:
        if not isinstance(self.spec.target, StdioTarget):
            raise TypeError(f"{self.spec.name} is not a stdio server")
        self._target = self.spec.target
        given = (*of_environment(self._target.environment), *of_arguments(self._target.args))
        self.secrets = longest_first(given)
        self._stderr, self._noise = LastLines(self.secrets), LastLines(self.secrets)
        self._framer = LineFramer(self.settings.max_message_bytes)

    @property
    def shutdown_bound(self) -> float:
        """Seconds that leaving `run` may take at most."""
        return ladder.bound(ladder.rungs(self.settings))

    @property
    def is_full(self) -> bool:
        """Whether `send` waits until the child has read some of what was sent."""
        return self._outbox.is_full

    @property
    def _too_large(self) -> str:
        return f"message larger than {self.settings.max_message_bytes} bytes"

    @trio.lowlevel.enable_ki_protection
    async def run(self, sink: Sink, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Start the child and serve its pipes. Runs until cancelled or until the child or a pipe ends.

        Raises:
            ConnectFailed: the program was not found or could not be started.
            TransportBroken: it exited, was killed, closed a pipe, or sent a message over the bound.

        Cancellation:
            Stops the whole process tree, shielded for at most `shutdown_bound` seconds.

        Source:
            S066, S069, S136-S145, faults 1-18.
        """
        await trio.lowlevel.checkpoint_if_cancelled()
        child = self._spawn()
        self._running = running = _Running(child, sink)
        try:
            self._outbox.begin(child.stdin, partial(self._ask_for_room, child))
            read = partial(self._read_messages, running)
            child.selector.on_readable(child.stdout, read)
            child.selector.likeliest = read
            child.hear(child.stderr, self._hear)
            task_status.started()
            await self._serve(child)
            self._judge(self._cause(child))
        finally:
            self._judge(TransportClosed(server=self.spec.name))
            await self._stop(child)
            child.close()
        raise self._error()

    async def send(self, frame: Frame) -> None:
        """Put one frame on the child's input; before the child is born it is kept until then.

        Raises:
            TransportBroken: the wire is gone; carries exit status and last words.
            TransportClosed: `run` has been left.
            LocalProtocolError: the frame holds a line break.

        Cancellation:
            Safe. The frame goes out whole or not at all.
        """
        if self._verdict is None and await self._outbox.put(encode_line(frame.data)):
            return
        await self._judged.wait()
        raise self._error()

    def session_ready(self, info: ServerInfo) -> None:
        """Nothing to do: a pipe is the same before and after the handshake."""

    def diagnostics(self) -> Diagnostics:
        """Describe the child as it is now; of one that we stop, what it said before. No side effects."""
        child = self._running.child if self._running is not None else None
        return Diagnostics(
            pid=child.pid if child is not None else None,
            exit_status=child.exit_status if child is not None else None,
            stderr_tail=self._stderr.tail() if self._said is None else self._said,
            noise_count=self._noise_count,
            noise_tail=self._noise.tail(),
            notes=self._notes,
        )

    # ── birth ────────────────────────────────────────────────────────────────────────────────────────────────────────

    def _spawn(self) -> Child:
        target = self._target
        # None: the directory that we run in is gone; what needs none of it starts all the same.
        ours: str | None = None
        with contextlib.suppress(FileNotFoundError):
            ours = os.getcwd()  # noqa: PTH109  a Path costs more
        cwd = target.cwd if ours is None or not target.cwd else str(Path(ours, target.cwd))
        cwd = cwd or ours
        if cwd is None or not os.path.isabs(cwd):  # noqa: PTH117
            reason = "the directory that we run in does not exist any more"
            raise ConnectFailed(server=self.spec.name, reason=reason, can_retry=False)
        try:
            if target.cwd and not Path(cwd).is_dir():
                raise ConnectFailed(reason=f"the directory to start in does not exist: {cwd}", can_retry=False)
            environ = child_environment(self.environ, target.environment, project=ours)
            argv, program = resolve_final(target.command, target.args, self.environ, environ=environ, cwd=cwd)
            child = spawn(argv, program=program, environ=environ, cwd=cwd)
        except ConnectFailed as error:
            error.server = self.spec.name
            raise
        except (OSError, ValueError) as error:
            what = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
            hint = spawn_hint(error) if isinstance(error, OSError) else None
            what = f"{what}: {hint}" if hint else what
            raise ConnectFailed(
                server=self.spec.name, reason=f"could not start {target.command!r}: {what}", can_retry=False
            ) from error
        if self.journal is not None:
            self.journal.record(child.pid, server=self.spec.name, command=target.command)
        return child

    # ── life ─────────────────────────────────────────────────────────────────────────────────────────────────────────

    async def _serve(self, child: Child) -> None:
        """Hear the child until the first sign of the end, and for a moment longer until the other signs are there."""
        while self._first_sign is None:
            await child.selector.turn()
            if child.exit_status is not None:
                self._end(describe_exit(child.exit_status))
        if self._first_sign != self._too_large:
            with trio.move_on_after(_LAST_MOMENT):
                await child.wait()
                await child.hear_out()

    async def _read_messages(self, running: _Running) -> bool:
        """Take what the child says now, if anything."""
        child = running.child
        chunk = read_now(child.stdout, self._read_bytes)
        if chunk == b"":
            child.selector.forget(child.stdout)
            self._end("closed its standard output")
        elif chunk and self._verdict is None:
            self._outbox.heard()
            await self._sort_lines(chunk, running.sink)
            if len(chunk) == self._read_bytes < BIG_PIPE_BYTES:
                self._read_bytes = enlarge_pipe(child.stdout)
        return bool(chunk)

    async def _sort_lines(self, chunk: bytes, sink: Sink) -> None:
        try:
            for line in self._framer.feed(chunk):
                if line[0] == _OBJECT:
                    sink.deliver(line)
                elif _MESSAGE.match(line):
                    sink.deliver(line.removeprefix(_BYTE_ORDER_MARK))
                else:
                    self._noise_count += 1
                    self._noise.add(line)
                if self._turn.spend(len(line)):
                    await trio.lowlevel.checkpoint()
                    if self._verdict is not None:
                        return
            if self._framer.is_over:
                self._framer.feed(b"")
        except RemoteProtocolError:
            self._end(self._too_large)

    def _hear(self, chunk: bytes) -> None:
        for line in self._limit.admit(self._stderr.feed(chunk), trio.current_time()):
            _log.debug("[MCP:%s] stderr %s", self.spec.name, line)

    def _ask_for_room(self, child: Child) -> None:
        if child.stdin >= 0:
            child.selector.on_writable(child.stdin, partial(self._write_more, child))

    async def _write_more(self, child: Child) -> None:
        if not self._outbox.flush():
            child.selector.forget(child.stdin)
        if self._outbox.is_broken:
            self._end("closed its standard input")

    # ── end ──────────────────────────────────────────────────────────────────────────────────────────────────────────

    def _end(self, sign: str) -> None:
        if self._first_sign is None:
            self._first_sign = sign

    def _cause(self, child: Child) -> TransportBroken:
        status = child.poll()
        sign = self._first_sign or "ended"
        return TransportBroken(
            server=self.spec.name,
            reason=sign if status is None or sign == self._too_large else describe_exit(status),
            exit_status=status,
            stderr_tail=self._stderr.tail()[-_SHOWN_LINES:],
        )

    def _judge(self, verdict: TransportError) -> None:
        if self._verdict is not None:
            return
        self._verdict = verdict
        if isinstance(verdict, TransportClosed):
            self._said = self._stderr.tail()  # what follows, a traceback as a rule, is about our signal
        self._judged.set()
        running = self._running
        if running is not None:
            self._outbox.close()
            running.child.selector.forget(running.child.stdin)
            running.sink.ended(self._error())

    def _error(self) -> TransportError:
        # A new one for each who asks: a raised exception collects tracebacks.
        verdict = self._verdict
        assert verdict is not None
        return type(verdict)(
            server=verdict.server,
            reason=verdict.reason,
            exit_status=verdict.exit_status,
            stderr_tail=verdict.stderr_tail,
        )

    async def _stop(self, child: Child) -> None:
        steps = ladder.rungs(self.settings)
        await ladder.climb(child, steps, self.hurry)
        # What it wrote at the very end may not have been read yet.
        self._hear(read_now(child.stderr, PIPE_BYTES) or b"")
        if not child.is_gone():
            self._notes = (f"process group {child.pid} outlived SIGKILL",)
        elif self.journal is not None:
            self.journal.forget(child.pid)
