"""Owns how actors are spoken to: `Mailbox`, `Ref`, `Envelope`, `Reply`.

What this is not: an actor. There is no base class; an actor is a task that reads one mailbox.

The seven laws. A plain trio channel is not yet a mailbox: closing its receiving end drops buffered messages silently,
and an asker of a dropped message waits for ever.

1. Bounded: `size` is required, with its reason beside it.
2. A message is a frozen attrs class; the envelope (message, reply) carries the one-shot reply.
3. A reply is resolved exactly once. Handling is ``with envelope:``; leaving the block unresolved fails it. An error
   that leaves the block of an ask is its asker's and nobody else's, and is logged where it is no weather.
4. On exit the mailbox drains and fails what it held, then closes; no await between the two.
5. The mailbox encloses the nursery that reads it, never the other way round.
6. No actor awaits a reply from an actor that may await it: asks go down the floors, events go up as tells.
7. A handler that can take long runs in the actor's own nursery; the loop itself never waits on a peer.

Laws 1 to 4 are kept here; 5 to 7 bind the bodies.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Generic, TypeVar, cast

import outcome
import trio
from attrs import field

from mcp_actors.errors import ActorGone, LocalProtocolError, MailboxFull, McpActorsError
from mcp_actors.values import define, frozen

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self

__all__ = ["Ask", "Envelope", "Mailbox", "Ref", "Reply"]

logger = logging.getLogger("mcp_actors.mailbox")

R = TypeVar("R")
M = TypeVar("M")


class Ask(Generic[R]):
    """Marks a message that is answered with an `R`. Pure data, no behaviour."""

    __slots__ = ()


@define(eq=False)
class Reply(Generic[R]):
    """The one-shot answer slot of an ask; `actor` names who owes it."""

    actor: str
    # Written once by the actor that handles the message, or by the mailbox that drops it.
    _outcome: outcome.Value[R] | outcome.Error | None = None
    _resolved: trio.Event = field(factory=trio.Event)

    @property
    def is_resolved(self) -> bool:
        """Whether the answer is there."""
        return self._outcome is not None

    def resolve(self, value: R) -> None:
        """Answer. Raises `LocalProtocolError` when it was answered before (law 3)."""
        self._settle(outcome.Value(value))

    def fail(self, error: BaseException) -> None:
        """Answer with an error. Raises `LocalProtocolError` when it was answered before (law 3)."""
        self._settle(outcome.Error(error))

    def _settle(self, result: outcome.Value[R] | outcome.Error) -> None:
        if self._outcome is not None:
            raise LocalProtocolError(reason=f"{self.actor} resolved a reply twice")
        self._outcome = result
        self._resolved.set()

    async def wait(self) -> R:
        """Wait for the answer, and return or raise it.

        Raises:
            ActorGone: the actor ended without answering.

        Cancellation:
            Safe. The actor may still answer; nobody reads it then.
        """
        await self._resolved.wait()
        assert self._outcome is not None
        return self._outcome.unwrap()


@frozen(eq=False)
class Envelope(Generic[M]):
    """A message and the reply it is owed, None for a tell. Enter it while handling (law 3)."""

    message: M
    reply: Reply[object] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        if self.reply is None:
            return False
        if isinstance(error, Exception):
            self.fail(error)
            return True
        if not self.reply.is_resolved:
            self.reply.fail(ActorGone(actor=self.reply.actor, cause=error))
        return False

    def fail(self, error: Exception) -> None:
        """Answer the ask with what its handling raised, if it is not answered yet; a bug is logged, too."""
        assert self.reply is not None
        if not isinstance(error, McpActorsError):
            logger.error("! %s failed at %s", self.reply.actor, type(self.message).__name__, exc_info=error)
        if not self.reply.is_resolved:
            self.reply.fail(error)

    def resolve(self, value: object = None) -> None:
        """Answer the ask; does nothing for a tell."""
        if self.reply is not None:
            self.reply.resolve(value)


@frozen(eq=False)
class Ref(Generic[M]):
    """A cheap, copyable address of an actor."""

    actor: str
    _mailbox: Mailbox[M] = field(repr=False)

    def tell_nowait(self, message: M) -> None:
        """Send without a reply and without waiting.

        Raises:
            MailboxFull: it holds its bound already.
            ActorGone: it is closed.
        """
        try:
            self._mailbox.sender.send_nowait(Envelope(message))
        except trio.WouldBlock:
            raise MailboxFull(actor=self.actor, size=self._mailbox.size) from None
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            raise ActorGone(actor=self.actor, cause=self._mailbox.cause) from None

    async def tell(self, message: M) -> None:
        """Send without a reply; waits while the mailbox is full.

        Raises:
            ActorGone: it is closed.

        Cancellation:
            Safe. The message was put whole or not at all.
        """
        try:
            self.tell_nowait(message)  # where there is room, no step of the scheduler is spent
        except MailboxFull:
            await self._put(Envelope(message))

    async def ask(self, message: Ask[R]) -> R:
        """Send and wait for the reply.

        Raises:
            ActorGone: the actor ended before it answered.

        Cancellation:
            Safe. The message may still be handled; nobody reads its reply then.
        """
        return await (await self.begin(message)).wait()

    async def begin(self, message: Ask[R]) -> Reply[R]:
        """Send; the reply can be waited for later.

        Raises:
            ActorGone: it is closed.

        Cancellation:
            Safe. The message was put whole or not at all.
        """
        reply: Reply[R] = Reply(self.actor)
        await self._put(Envelope(cast("M", message), cast("Reply[object]", reply)))
        return reply

    async def _put(self, envelope: Envelope[M]) -> None:
        try:
            await self._mailbox.sender.send(envelope)
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            raise ActorGone(actor=self.actor, cause=self._mailbox.cause) from None


class Mailbox(Generic[M]):
    """The bounded inbox of an actor. Enter it around the nursery that reads it (law 5)."""

    def __init__(self, actor: str, *, size: int) -> None:
        self.actor = actor
        self.size = size
        # Why the actor ended; set on exit, None when it ended in order.
        self.cause: BaseException | None = None
        self.sender, self._receiver = trio.open_memory_channel[Envelope[M]](size)

    @property
    def ref(self) -> Ref[M]:
        """An address to hand out."""
        return Ref(self.actor, self)

    async def receive(self) -> Envelope[M]:
        """Wait for the next envelope. Cancellation: safe; a message is taken whole or stays."""
        return await self._receiver.receive()

    def receive_nowait(self) -> Envelope[M] | None:
        """The next envelope, None when there is none."""
        try:
            return self._receiver.receive_nowait()
        except trio.WouldBlock:
            return None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.cause = error if isinstance(error, Exception) else None
        # Law 4: drain (also what blocked senders hold), fail, close; no await in between.
        while (envelope := self.receive_nowait()) is not None:
            with envelope:
                pass
        self._receiver.close()

    def __repr__(self) -> str:
        held = self._receiver.statistics().current_buffer_used
        return f"<Mailbox {self.actor} {held}/{self.size}>"
