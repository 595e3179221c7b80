"""Owns how one connection is asked for what somebody listens to: at first, when that changes, and after a loss.

What this is not: who listens, and to what (`listening`); nor the decision to ask again (`protocol.listening`).

The rule: a task runs only while there is something to do. The open ``subscriptions/listen`` of a modern server has none
of its own: its slot tells of its end.
"""

from __future__ import annotations

import logging
import random
from typing import TYPE_CHECKING, Final

import trio

from mcp_actors.actors.bell import Bell
from mcp_actors.actors.slots import OpenSlot, Request, SendAgain
from mcp_actors.errors import LocalProtocolError, McpActorsError, NotWatched
from mcp_actors.protocol.budget import Budget
from mcp_actors.protocol.features import AskForLevel, NoLevels, StampLevel, plan_log_level
from mcp_actors.protocol.listening import LISTEN, NOTHING, PROOF, Again, Never, decide_relisten, plan_listening
from mcp_actors.protocol.types import Era

if TYPE_CHECKING:
    from mcp_actors.actors.listening import Listening
    from mcp_actors.actors.lists import Lists
    from mcp_actors.actors.slots import Slot
    from mcp_actors.actors.wire import Wire
    from mcp_actors.protocol.listening import ListenFilter
    from mcp_actors.protocol.types import ServerInfo

__all__ = ["Subscriber", "ask_for_level"]

logger = logging.getLogger("mcp_actors.connection")

SUBSCRIBE_TIMEOUT: Final = 30.0
# So many subscriptions in a row that were never acknowledged are told to whoever depends on them; one is asked for on.
MAX_REFUSED: Final = 3
LEFT_OUT: Final = "the server leaves it out of our subscription"
NOT_OFFERED: Final = "the server does not offer resources.subscribe any more"


class Subscriber:
    """Asks over one wire; `begin` first, then `again` at every change of what is wanted."""

    __slots__ = (
        "_asked",
        "_before",
        "_bell",
        "_failures",
        "_has_gap",
        "_info",
        "_is_asking",
        "_is_changed",
        "_is_resend",
        "_life",
        "_lists",
        "_open",
        "_opened_at",
        "_refused",
        "_subscribed",
        "_unheard",
        "_wire",
        "_wishes",
        "is_level_known",
    )

    def __init__(self, wishes: Listening, life: trio.Nursery, wire: Wire, info: ServerInfo, lists: Lists) -> None:
        # What is wanted.
        self._wishes = wishes
        self._life = life
        self._wire = wire
        self._info = info
        # Fetched anew after a gap.
        self._lists = lists
        # Whether this wire session knows what log messages are wanted.
        self.is_level_known = False
        # Whether nobody listened for a while: then the next acknowledgement is followed by a fetch.
        self._has_gap = False
        # URI -> why the server does not tell of it, as far as it was asked.
        self._unheard: dict[str, NotWatched] = {}
        # Legacy: what this wire session is subscribed to, sorted.
        self._subscribed: tuple[str, ...] = ()
        # Modern: the open ``subscriptions/listen``, since when, and how many were lost in a row before.
        self._open: OpenSlot | None = None
        # What it asks for, and how many were refused in a row, never acknowledged.
        self._asked = NOTHING
        self._refused = 0
        # The one that it follows, heard until the server has acknowledged the open one: so a change misses nothing.
        self._before: OpenSlot | None = None
        self._opened_at = 0.0
        self._failures = 0
        # Whether the next one follows a `SendAgain`.
        self._is_resend = False
        # Whether a task asks, or waits until it may.
        self._is_asking = False
        # Whether it has to ask anew; the bell tells it.
        self._is_changed = False
        self._bell = Bell()

    async def begin(self) -> None:
        """Ask for the first time; whatever takes an answer is left to a task."""
        if self._info.era is Era.MODERN:
            await self._ask()
        elif self._wishes.are_any:  # legacy servers tell of their lists unasked
            self._start()

    def again(self) -> None:
        """Ask anew: what is wanted changed."""
        self._is_changed = True
        self._bell.ring()
        self._start()

    def renewed(self) -> None:
        """The server began a new wire session and knows of nothing."""
        self._subscribed = ()
        self.is_level_known = False
        self.again()

    def _start(self, after: float = 0.0) -> None:
        if not self._is_asking and self._wire.gone is None:
            self._is_asking = True
            self._life.start_soon(self._ask_after, after)

    async def _ask_after(self, seconds: float) -> None:
        """Ask after a pause, which a change ends."""
        with trio.move_on_after(seconds):
            while not self._is_changed:
                await self._bell.wait()
        await self._ask()

    async def _ask(self) -> None:
        """Ask for what is wanted. Waits for answers in legacy only."""
        self._is_asking = self._is_changed = True
        while self._is_changed:
            self._is_changed = False
            self._step_back()
            level = self._wishes.log_level
            if level is not None and not self.is_level_known:
                await self._repeat_level(level)
            plan = plan_listening(self._wishes.wanted, self._info)
            self._unheard = {uri: self._not_watched(uri, NOT_OFFERED) for uri in plan.missing.uris}
            await self._subscribe(plan.subscribe)
            if plan.listen is not None:
                await self._listen(plan.listen)
        self._is_asking = False
        if plan.listen is None:
            self._withdraw_before()
            self._judge(NOTHING)
            self._wishes.answered()
        elif self._open is not None and not self._open.is_open:
            self._ended(self._open)

    async def _listen(self, wanted: ListenFilter) -> None:
        """Open a subscription. It may have ended by then."""
        self._asked = wanted
        self._open = slot = OpenSlot(self._ended)
        self._opened_at = trio.current_time()
        is_resend, self._is_resend = self._is_resend, False
        try:
            await self._wire.calls.begin(LISTEN, wanted.to_params(), slot, is_resend=is_resend)
        except McpActorsError as lost:
            slot.fail(lost.with_traceback(None))  # it would hold this frame, and this frame it

    def _step_back(self) -> None:
        """Make room for another subscription; of two that follow an acknowledged one the first is withdrawn."""
        if self._open is None:
            return
        if self._before is None and self._open.is_open:
            self._before = self._open
        else:
            self._wire.calls.withdraw(self._open)
            if self._before is None:
                self._lose()
        self._open, self._failures = None, 0

    def acknowledged(self, slot: Slot, honoured: ListenFilter) -> None:
        """Learn that the server listens, and to what; only the subscription that was asked for last counts."""
        if slot is not self._open:
            return
        self._refused = 0
        self._withdraw_before()
        if self._has_gap:
            self._has_gap = False
            self._lists.mark_all()
        self._judge(self._asked - honoured, LEFT_OUT)
        if not self._is_changed:
            self._wishes.answered()

    def _judge(self, unheard: ListenFilter, why: str = "") -> None:
        """Tell whoever depends on it what the server does not tell of."""
        self._wishes.judge(self._unheard | {uri: self._not_watched(uri, why) for uri in unheard.uris})
        self._lists.note_unheard(dict.fromkeys(unheard.lists, why))

    def _not_watched(self, uri: str, why: str) -> NotWatched:
        return NotWatched(server=self._wire.server, uri=uri, reason=why)

    def _withdraw_before(self) -> None:
        before, self._before = self._before, None
        if before is not None:
            self._wire.calls.withdraw(before)

    def _ended(self, slot: OpenSlot) -> None:
        """Learn that a subscription has ended."""
        if slot is self._before:
            self._before = None
            self._lose()
            return
        if slot is not self._open or self._is_asking:  # withdrawn; or `_ask` looks at it when it has done
            return
        self._open = None
        if isinstance(slot.error, SendAgain):
            self._is_resend = self._has_gap = True
            self.again()
            return
        self._lose()
        if self._wire.gone is not None:
            return
        self._failures = 1 if trio.current_time() - self._opened_at >= PROOF else self._failures + 1
        lost = slot.error if isinstance(slot.error, McpActorsError) else None
        step = decide_relisten(lost, self._failures, random.random())
        self._refused += 1
        if self._refused >= MAX_REFUSED or isinstance(step, Never):
            self._judge(self._asked, "the server ends its subscription at once" if lost is None else lost.describe())
        if isinstance(step, Again):
            self._withdraw_before()  # it may be one too many
            self._start(step.after)
        else:
            logger.debug("[MCP:%s] = listens no more: %s", self._wire.server, step.reason)

    def _lose(self) -> None:
        """Note that nothing is heard for now."""
        self._has_gap = True
        self._wishes.lost()

    async def _repeat_level(self, level: str) -> None:
        self.is_level_known = True
        try:
            await ask_for_level(level, self._wire, self._info)
        except (McpActorsError, trio.TooSlowError) as error:
            logger.debug("[MCP:%s] ! the log level was not taken: %s", self._wire.server, error)

    async def _subscribe(self, wanted: tuple[str, ...]) -> None:
        """Legacy: subscribe to what is new, unsubscribe from what nobody watches any more."""
        old, self._subscribed = self._subscribed, wanted
        steps = [("resources/unsubscribe", uri) for uri in sorted(set(old).difference(wanted))]
        steps += [("resources/subscribe", uri) for uri in sorted(set(wanted).difference(old))]
        for method, uri in steps:
            try:
                budget = Budget(SUBSCRIBE_TIMEOUT, trio.current_time())
                await self._wire.calls.ask(Request(method, {"uri": uri}, budget))
            except (McpActorsError, trio.TooSlowError) as error:
                logger.debug("[MCP:%s] ! %s failed: %s", self._wire.server, method, error)
                if method == "resources/subscribe":
                    self._subscribed = tuple(each for each in self._subscribed if each != uri)
                    why = error.describe() if isinstance(error, McpActorsError) else str(error)
                    self._unheard[uri] = self._not_watched(uri, why)


async def ask_for_level(level: str, wire: Wire, info: ServerInfo) -> None:
    """Have this server send log messages of at least this level.

    Raises:
        LocalProtocolError: there is no such level, or the server has none.
        McpActorsError: the server refused.
    """
    match plan_log_level(level, info):
        case AskForLevel(method, params):
            await wire.calls.ask(Request(method, params, Budget(SUBSCRIBE_TIMEOUT, trio.current_time())))
        case StampLevel(stamped):
            wire.session.stamp_log_level(stamped)
        case NoLevels(reason):
            raise LocalProtocolError(server=wire.server, reason=reason)
