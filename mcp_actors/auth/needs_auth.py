"""Owns the memory of servers that asked for a login, so that a restart within 15 minutes does not ask them again.

What this is not: the state of a running server (`actors.lifecycle`).

Rules. (1) Many readers at once share one reading of the file. (2) Writers come one after the other, read, change and
replace; one that fails does not hold up the next (S257). (3) What cannot be read is empty. (4) A server with a static
Authorization header or a headers helper is never in here: it has no login that could be missing (S255).
"""

from __future__ import annotations

import hashlib
import json
import logging
import time
from typing import TYPE_CHECKING, Final

import trio
from attrs import field

from mcp_actors.auth.messages import number_in
from mcp_actors.config.specs import RemoteTarget
from mcp_actors.errors import RemoteProtocolError
from mcp_actors.files.locks import process_lock
from mcp_actors.files.private import read_private, write_private
from mcp_actors.protocol.jsonrpc import decode_object, encode
from mcp_actors.values import define

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from mcp_actors.config.specs import ServerSpec

__all__ = ["FILE_NAME", "NeedsAuthCache", "cache_id", "why_no_login"]

log = logging.getLogger("mcp_actors.auth")

FILE_NAME: Final = "mcp-needs-auth-cache.json"
# Seconds (S254).
LIFE: Final = 15 * 60.0
MAX_ENTRIES: Final = 1000
# Some 30 000 years: what is beyond is no moment.
MAX_MILLISECONDS: Final = 1e15


def why_no_login(spec: ServerSpec) -> str:
    """Why nobody signs in to this server, and where its credentials stand instead."""
    target = spec.target
    if not isinstance(target, RemoteTarget):
        return "it is no address but a program, which signs in by itself; what it needs goes into its env"
    where = "its headersHelper prints" if target.headers_helper is not None else "its headers, or its url, hold"
    return f"{where} its credentials already: change them there, or take them out to sign in"


def cache_id(spec: ServerSpec) -> str | None:
    """The key of a server: its name and a hash of what it is; None: it is never remembered (S255)."""
    target = spec.target
    if not isinstance(target, RemoteTarget) or target.has_credentials:
        return None
    what = [str(target.transport), target.url, sorted(target.headers.items())]
    digest = hashlib.sha256(json.dumps(what, ensure_ascii=False).encode()).hexdigest()[:16]
    return f"{spec.name}:{digest}"


@define(eq=False)
class NeedsAuthCache:
    """The file ``{id: {"timestamp": milliseconds}}``."""

    # None: nothing is remembered between runs.
    _path: Path | None
    _now: Callable[[], float] = time.time
    # Written by the first reader of a reading; the others wait for its event.
    _reading: trio.Event | None = field(default=None, init=False)
    # Maps id -> seconds since the epoch; None: not read since the last write.
    _known: Mapping[str, float] | None = field(default=None, init=False)
    # Writes made by this object.
    _writes: int = field(default=0, init=False)
    _writing: trio.Lock = field(factory=trio.Lock, init=False, repr=False)

    async def is_fresh(self, key: str) -> bool:
        """Whether that server asked for a login in the last 15 minutes. Never fails. Cancellation: safe.

        Source:
            S254, S256.
        """
        moment = (await self._entries()).get(key)
        return moment is not None and 0 <= self._now() - moment < LIFE

    async def note(self, key: str) -> None:
        """Remember that a server asks for a login. Never fails. Cancellation: safe."""
        await self._change(key, self._now())

    async def clear(self, key: str) -> None:
        """Forget it, at once: somebody signed in (S250). Never fails. Cancellation: safe."""
        await self._change(key, None)

    async def _entries(self) -> Mapping[str, float]:
        while self._known is None:
            if self._reading is not None:
                await self._reading.wait()
                continue
            self._reading = event = trio.Event()
            writes = self._writes
            try:
                found = await trio.to_thread.run_sync(self._read)
                if writes == self._writes:  # else it may be the old file
                    self._known = found
            finally:
                self._reading = None
                event.set()
        return self._known

    def _read(self) -> Mapping[str, float]:
        """Blocks. Rule 3."""
        try:
            data = None if self._path is None else read_private(self._path)
            document = {} if data is None else decode_object(data)
        except (OSError, RemoteProtocolError):
            return {}
        found: dict[str, float] = {}
        for key, entry in list(document.items())[:MAX_ENTRIES]:
            milliseconds = number_in(entry, "timestamp", limit=MAX_MILLISECONDS) if isinstance(entry, dict) else None
            found |= {} if milliseconds is None else {key: milliseconds / 1000}
        return found

    async def _change(self, key: str, moment: float | None) -> None:
        async with self._writing:
            if self._path is None:
                known = dict(self._known or {})
                known.pop(key, None)
                self._known = known if moment is None else {**known, key: moment}
                return
            try:
                async with process_lock(self._path.with_suffix(".lock")):
                    await trio.to_thread.run_sync(self._rewrite, self._path, key, moment)
            except OSError as exc:
                log.debug("Failed to remember who needs a login: %s", exc.strerror)
            finally:
                self._writes += 1
                self._known = None

    def _rewrite(self, path: Path, key: str, moment: float | None) -> None:
        """Blocks."""
        known = dict(self._read())
        if moment is None and key not in known:
            return
        known.pop(key, None)
        now = self._now()
        known = {each: when for each, when in known.items() if now - when < LIFE}
        if moment is not None:
            known[key] = moment
        document = {each: {"timestamp": int(when * 1000)} for each, when in known.items()}
        write_private(path, encode(document))
