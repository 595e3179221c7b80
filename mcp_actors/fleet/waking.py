"""Owns the restart of servers that wait for a login after somebody signed in, in this process or in another.

What this is not: signing in (`auth`), nor the start of a server (the supervisor's).

Rules.

1. A login is tried once per server: one that is refused as well wakes nothing again.
2. Whoever waits looks at one small file; the store is read when that has changed.
3. A call to such a server looks first, so that it need not wait for the next round of `run`.
"""

from __future__ import annotations

import logging
from contextlib import suppress
from typing import TYPE_CHECKING, Final

import trio
from attrs import field

from mcp_actors.actors.lifecycle import ServerState
from mcp_actors.config.specs import RemoteTarget
from mcp_actors.errors import ActorGone, ConfigError, McpActorsError
from mcp_actors.values import define

if TYPE_CHECKING:
    from pathlib import Path

    from mcp_actors.fleet.opener import Opener
    from mcp_actors.fleet.running import Runtime

__all__ = ["Waker"]

logger = logging.getLogger("mcp_actors.runtime")

# What a person who has just signed in does not notice.
INTERVAL: Final = 1.0


@define(eq=False)
class Waker:
    """Looks for logins on behalf of one runtime."""

    _runtime: Runtime
    _opener: Opener
    # Seconds between two looks while a server waits. Whoever has the runtime may set it.
    interval: float = field(default=INTERVAL, init=False)
    # What the file of rule 2 looked like when a server's login was last looked for. Server name -> moment in ns.
    _seen: dict[str, int] = field(factory=dict, init=False)
    # Server name -> the login it was woken for last (rule 1).
    _tried: dict[str, str] = field(factory=dict, init=False)
    # Of many callers one wakes; the others find it done.
    _lock: trio.Lock = field(factory=trio.Lock, init=False, repr=False)

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Wake whoever a login is made for. Runs until cancelled, or ends at once where nothing is kept."""
        task_status.started()
        with suppress(ActorGone):  # the registry was left while a file was looked at: the runtime ends
            while self._opener.state_dir is not None:
                waiting = [name for name in self._runtime.snapshot.servers if self._is_waiting(name)]
                if not waiting:
                    await self._runtime.wait_published()
                    continue
                await trio.sleep(self.interval)
                now = await self._moment()
                for name in waiting:
                    if now is not None and now != self._seen.get(name):
                        await self.look(name)

    async def look(self, name: str) -> None:
        """Start a server that waits for a login, if there is one that it was not tried with. Never fails.

        Cancellation:
            Safe.

        Source:
            S250, S254.
        """
        if not self._is_waiting(name):
            return
        async with self._lock:
            now = await self._moment()
            if not self._is_waiting(name) or (now is not None and now == self._seen.get(name)):
                return
            login = None
            with suppress(McpActorsError):  # what is wrong with it was said when the server was tried
                login = await self._opener.desk.newest(self._runtime.configured.find(name))
            if now is not None:
                self._seen[name] = now
            if login is None or login == self._tried.get(name):
                return
            self._tried[name] = login
            logger.info("[MCP:%s] starts again: somebody signed in", name)
            with suppress(McpActorsError):  # it was removed meanwhile
                await self._runtime.restart(name)

    def _is_waiting(self, name: str) -> bool:
        status, spec = self._runtime.snapshot.servers.get(name), self._runtime.configured.specs.get(name)
        is_remote = spec is not None and isinstance(spec.target, RemoteTarget)
        return is_remote and status is not None and status.state is ServerState.NEEDS_AUTH

    async def _moment(self) -> int | None:
        """When somebody signed in last; None: never, as far as is known."""
        with suppress(ConfigError):  # of the choice of a store
            news_file = self._opener.desk.news_file
            return None if news_file is None else await trio.to_thread.run_sync(_moment_of, news_file)
        return None


def _moment_of(path: Path | None) -> int | None:
    """When the file was written; None: there is none. Blocks."""
    try:
        return None if path is None else path.stat().st_mtime_ns
    except OSError:
        return None
