"""Owns the place where a sign-in arrives: a listener on this machine for one visit, or the URL that a person pastes.

What this is not: what the URL that arrives means (`flow.read_landing`), nor the opening of a browser (`browser`).

Rules. (1) Only 127.0.0.1 and ::1 are bound, before a browser opens. (2) One path, GET; everything else is 404. (3) The
first visit with our state ends it, others are none of ours (D07); it is over after five minutes, whatever happens
(S246). (4) A fixed port that is taken is an error that names the setting; a preferred one gives way (fault 64).
"""

from __future__ import annotations

import contextlib
import errno
from typing import TYPE_CHECKING, Final
from urllib.parse import parse_qsl, urlsplit

import h11
import trio
from attrs import field

from mcp_actors.errors import AuthFailed
from mcp_actors.groups import bare_errors
from mcp_actors.values import define

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

__all__ = ["Landing", "open_landing", "page_for"]

TIMEOUT: Final = 300.0
PATH: Final = "/callback"
MAX_HEAD_BYTES: Final = 16 * 1024
REQUEST_SECONDS: Final = 10.0
# Connections at once: a browser opens a few ahead.
MAX_CONNECTIONS: Final = 16

_PAGE: Final = """<!doctype html><html lang="en"><meta charset="utf-8"><title>{title}</title>
<style>body{{font:16px system-ui;margin:15vh auto;max-width:32em;padding:0 1em}}</style><h1>{title}</h1><p>{text}</p>"""
_PAGES: Final = {
    "done": ("Almost done", "The answer arrived. You can close this page; the program says how it ended."),
    "refused": ("Not signed in", "The sign-in was not granted. You can close this page; the program says more."),
    "stranger": ("Not ours", "This answer does not belong to the sign-in that is waiting. Start it again."),
    "elsewhere": ("Nothing here", "This page only takes the answer of a sign-in."),
}


def page_for(kind: str) -> bytes:
    """The page that a person sees; nothing that a server sent is in it."""
    title, text = _PAGES[kind]
    return _PAGE.format(title=title, text=text).encode()


@define(eq=False)
class Landing:
    """Where one visit arrives."""

    redirect_uri: str
    # Sends the person to a URL, and may bring back one that was pasted; cancelled when the visit ends.
    _go: Callable[[str, Landing], Awaitable[None]] = field(repr=False)
    _timeout: float = TIMEOUT
    # What must come back with the visit under way; None: nobody is on the way.
    _state: str | None = field(default=None, init=False, repr=False)
    # Set when the page of the visit was written, where it came by HTTP.
    is_shown: trio.Event | None = field(default=None, init=False, repr=False)
    # Holds the URL that came first.
    _arrived: list[str] = field(factory=list, init=False, repr=False)
    _event: trio.Event = field(factory=trio.Event, init=False, repr=False)

    async def visit(self, url: str) -> str:
        """Send the person to `url` and wait for what comes back: the whole URL.

        Raises:
            AuthFailed: nothing came in time.

        Cancellation:
            Safe.
        """
        self._state = _fields(url).get("state")
        self._arrived.clear()
        self._event = trio.Event()
        with trio.move_on_after(self._timeout), bare_errors():
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._go, url, self)
                await self._event.wait()
                nursery.cancel_scope.cancel()
        if self._arrived:
            return self._arrived[0]
        raise AuthFailed(reason=f"nobody finished the sign-in within {self._timeout / 60:g} minutes")

    def arrive(self, url: str) -> bool:
        """Take a URL that came, or was pasted; returns whether it belongs to the visit under way, and is the first."""
        state = _fields(url).get("state")
        if self._arrived or self._state is None or state != self._state:
            return False
        self._arrived.append(url)
        self._event.set()
        return True

    @property
    def path(self) -> str:
        """The one path that is served."""
        return urlsplit(self.redirect_uri).path or "/"


@contextlib.asynccontextmanager
async def open_landing(
    go: Callable[[str, Landing], Awaitable[None]],
    *,
    fixed: str | None = None,
    preferred: str | None = None,
    timeout: float = TIMEOUT,
) -> AsyncIterator[Landing]:
    """Listen for one visit while the block runs.

    Args:
        go: sends the person somewhere; may go on to take a URL that is pasted (`Landing.arrive`).
        fixed: the redirect URI that it must have, an http URL on this machine; None: any.
        preferred: the redirect URI of a registration; taken if its port is free.
        timeout: seconds for one visit.

    Raises:
        AuthFailed: the fixed port is taken, or nothing can be listened on.

    Source:
        S246-S248; D07; faults 64 and 65; RFC 8252, section 7.3.
    """
    listeners, redirect_uri = await _bind(fixed, preferred)
    landing = Landing(redirect_uri, go, timeout)
    limit = trio.CapacityLimiter(MAX_CONNECTIONS)

    async def serve(stream: trio.SocketStream) -> None:
        async with limit:
            await _serve(stream, landing)

    with bare_errors():
        async with trio.open_nursery() as nursery:
            nursery.start_soon(trio.serve_listeners, serve, listeners)
            try:
                yield landing
            finally:
                if landing.is_shown is not None:
                    with trio.move_on_after(0.5):  # let the last page reach its reader
                        await landing.is_shown.wait()
                nursery.cancel_scope.cancel()


async def _bind(fixed: str | None, preferred: str | None) -> tuple[list[trio.SocketListener], str]:
    for wish in (fixed, preferred):
        if wish is None:
            continue
        port = urlsplit(wish).port or 80
        try:
            return await _listen(port), wish
        except OSError as exc:
            if wish == fixed:
                is_taken = exc.errno in (errno.EADDRINUSE, errno.EACCES)
                why = "is taken by another program" if is_taken else f"cannot be used: {exc.strerror}"
                raise AuthFailed(
                    reason=f"port {port}, where the sign-in must come back to, {why}; "
                    "free it, or set another oauth.callbackPort"
                ) from exc
    try:
        listeners = await _listen(0)
    except OSError as exc:
        raise AuthFailed(reason=f"cannot listen on this machine: {exc.strerror}") from exc
    port = listeners[0].socket.getsockname()[1]
    return listeners, f"http://localhost:{port}{PATH}"


async def _listen(port: int) -> list[trio.SocketListener]:
    """Listen on 127.0.0.1, and on ::1 where there is one, both on the same port. Raises OSError when it is taken."""
    for _ in range(5):
        listeners = await trio.open_tcp_listeners(port, host="127.0.0.1")
        bound = listeners[0].socket.getsockname()[1]
        try:
            return [*listeners, *await trio.open_tcp_listeners(bound, host="::1")]
        except OSError as exc:
            if exc.errno != errno.EADDRINUSE:
                return listeners  # no IPv6 here
            for listener in listeners:
                await listener.aclose()
            if port:
                raise
    raise OSError(errno.EADDRINUSE, "no port is free on both 127.0.0.1 and ::1")


def _fields(url: str) -> dict[str, str]:
    """The query's fields; none when it is no sensible URL."""
    try:
        return dict(parse_qsl(urlsplit(url).query, keep_blank_values=True, max_num_fields=100))
    except ValueError:
        return {}


async def _serve(stream: trio.SocketStream, landing: Landing) -> None:
    """Serve one request on one connection. No exception leaves but cancellation."""
    connection = h11.Connection(h11.SERVER, max_incomplete_event_size=MAX_HEAD_BYTES)
    with trio.move_on_after(REQUEST_SECONDS):
        try:
            async with stream:
                request: h11.Request | None = None
                while True:
                    event = connection.next_event()
                    if event is h11.NEED_DATA:
                        connection.receive_data(await stream.receive_some(4096))
                    elif isinstance(event, h11.Request):
                        request = event
                        break
                    else:
                        return
                status, kind = _answer(request, landing)
                if status == 200:
                    landing.is_shown = trio.Event()
                body = page_for(kind)
                headers = [
                    ("content-type", "text/html; charset=utf-8"),
                    ("content-length", str(len(body))),
                    ("cache-control", "no-store"),
                    ("content-security-policy", "default-src 'none'; style-src 'unsafe-inline'"),
                    ("referrer-policy", "no-referrer"),
                    ("connection", "close"),
                ]
                response = h11.Response(status_code=status, headers=headers)
                parts = (response, h11.Data(data=body), h11.EndOfMessage())
                await stream.send_all(b"".join(connection.send(part) or b"" for part in parts))
                if status == 200 and landing.is_shown is not None:
                    landing.is_shown.set()
                await stream.send_eof()
        except (h11.ProtocolError, trio.BrokenResourceError, trio.ClosedResourceError, OSError):
            pass


def _answer(request: h11.Request, landing: Landing) -> tuple[int, str]:
    path, _, query = request.target.decode("latin-1").partition("?")
    if request.method != b"GET" or path != landing.path:
        return 404, "elsewhere"
    names = set(_fields(f"?{query}"))
    if not names & {"state", "error", "code"}:
        return 404, "elsewhere"
    base = landing.redirect_uri.partition("?")[0]
    if not landing.arrive(f"{base}?{query}"):
        return 400, "stranger"
    return 200, "refused" if "error" in names else "done"
