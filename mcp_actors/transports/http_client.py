"""Owns HTTP: builds the client of one server and makes single exchanges with it. The only file that imports httpx.

What this is not: MCP over HTTP (`http`), nor who we are (an `Auth` is handed in).

It drives httpx's transport object and not its client: the client costs half as much again per exchange, follows
redirects in ways that lose a POST or leak headers, and adds nothing else that is wanted. Rules, each met in practice:

- One client per server, its pool without limits: streams never compete with calls (fault 50), and a request that was
  cancelled while its connection was set up cannot starve the others (fault 95). Such a request leaves a dead entry in
  the pool; after a few of them the pool is replaced, and the old one closed once its last answer has been read.
- HTTP/1.1 only: a cancelled HTTP/2 stream of httpx is never reset, and a hundred of them kill the connection.
- One TLS context in the whole process, made when the first https server needs it (`tls`); none at all for http.
- Redirects are followed by hand, and only where method, body and headers may go along: 307 and 308, to the same origin
  or from http to https on the same host (fault 38, C15).
- Loopback is never proxied (fault 49).
- Who sets an Authorization header knows why: such a request is nobody else's business (S255).
- No error names more of a URL than its origin and path, and none says why in httpx's words if the cause says it better.
"""

from __future__ import annotations

import base64
import ssl
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any, Final, TypeAlias, cast
from urllib.parse import unquote, urlsplit

import trio

from mcp_actors.errors import ConnectFailed, TransportBroken
from mcp_actors.origins import place_of
from mcp_actors.sent_secrets import SentSecrets, starred
from mcp_actors.transports.http_answer import BROKEN_ERRORS, HttpAnswer, explain
from mcp_actors.transports.proxies import proxy_for
from mcp_actors.transports.redirects import REDIRECTS, redirected
from mcp_actors.transports.tls import TlsChoice
from mcp_actors.values import define

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping, Sequence
    from types import ModuleType

    import httpx

    from mcp_actors.transports.http_answer import RawResponse

__all__ = ["Auth", "HttpAnswer", "HttpClient", "basic_credentials", "httpx_library", "tls_context"]

# What knows who we are: an auth flow in httpx's shape.
Auth: TypeAlias = "httpx.Auth"
Headers: TypeAlias = "Sequence[tuple[bytes, bytes]]"

# Waiting for the first byte and for the next one has no timeout here: the clocks of a call are its caller's.
TIMEOUTS: Final = {"connect": 10.0, "write": 30.0, "read": None, "pool": None}
# Below the 5 s after which common servers close idle connections, so that we rarely write into a closing one.
KEEPALIVE: Final = 4.0
# Hops that a redirect may take; browsers allow 20, servers that mean well need one.
MAX_HOPS: Final = 5
# Requests cancelled before their answer began, after which a pool is replaced (fault 95).
MAX_STRAYS: Final = 16


@cache
def httpx_library() -> ModuleType:
    """The HTTP library: httpx2, the maintained successor, when it is installed, else httpx (S362)."""
    try:
        import httpx2 as library
    except ImportError:
        import httpx as library  # type: ignore[no-redef]
    return library


def tls_context(environ: Mapping[str, str]) -> ssl.SSLContext:
    """The TLS context for what these variables say, in nearly every process one: 20-50 ms and about 1 MB, once.

    Raises:
        ConnectFailed: a variable names a file that cannot be used.

    Source:
        S093.
    """
    return _context(TlsChoice.of(environ))


@lru_cache(maxsize=4)
def _context(choice: TlsChoice) -> ssl.SSLContext:
    return choice.make_context(lambda: cast("ssl.SSLContext", httpx_library().create_ssl_context(trust_env=False)))


@cache
def _bare_context() -> ssl.SSLContext:
    """What http:// pools are given so that nothing loads certificates for them; it trusts nobody."""
    return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


@define(eq=False)
class _Once:
    """Iterates over one chunk. No generator, which a cancelled send would leave to the garbage collector."""

    chunk: bytes

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        chunk, self.chunk = self.chunk, b""
        if not chunk:
            raise StopAsyncIteration
        return chunk


@cache
def _body_class() -> Callable[[bytes], httpx.AsyncByteStream]:
    """A request body in the library's shape, which can be sent again (auth flows)."""

    class Body(httpx_library().AsyncByteStream):  # type: ignore[misc]
        def __init__(self, data: bytes) -> None:
            self._data = data

        def __aiter__(self) -> AsyncIterator[bytes]:
            return _Once(self._data)

    return Body


@define(eq=False)
class _Pool:
    """One httpx transport: the connections to one origin, direct or through a proxy."""

    transport: httpx.AsyncHTTPTransport
    # Exchanges whose answer is not closed yet.
    active: int = 0
    # Requests that were cancelled before their answer began.
    strays: int = 0
    # No new exchange may use it.
    is_retired: bool = False

    async def release(self) -> None:
        """Count one exchange less; closes a retired pool after its last one. Shielded, does not wait for peers."""
        self.active -= 1
        if self.is_retired and self.active == 0:
            await self.aclose()

    async def aclose(self) -> None:
        with trio.CancelScope(shield=True):
            await self.transport.aclose()


class HttpClient:
    """Makes exchanges with one server. Construction does no I/O and loads no certificates."""

    # Where the next request goes; changes with a redirect, may hold a secret in its query.
    url: str

    def __init__(
        self,
        url: str,
        *,
        auth: Auth | None = None,
        environ: Mapping[str, str] | None = None,
        address: str | None = None,
        sent: SentSecrets | None = None,
    ) -> None:
        """Describe the client.

        Args:
            url: the endpoint, http or https.
            auth: adds credentials to each request and may repeat it; None: nobody.
            environ: maps variable name -> text, for proxies and TLS; None: no proxy, and what is shipped is trusted.
            address: IP address to connect to instead of resolving the URL's host; TLS still checks the host's name.
            sent: learns what is sent, where several clients make one connection; None: its own.
        """
        self.url = url
        self._address = address
        self._auth = auth
        self._environ = environ or {}
        # Maps origin -> the pool that new exchanges with it use; nearly always one entry.
        self._pools: dict[tuple[str, str, int | None], _Pool] = {}
        # Maps URL -> its parsed form; at most the one in use.
        self._parsed: tuple[str, httpx.URL] | None = None
        # What requests carried, headers of `auth` among it.
        self._sent = SentSecrets() if sent is None else sent

    @property
    def secrets(self) -> tuple[str, ...]:
        """What requests carried that nobody may be told, longest first."""
        return self._sent.secrets

    def __repr__(self) -> str:
        return f"<HttpClient {place_of(self.url)}>"

    async def request(self, method: str, headers: Headers, body: bytes = b"") -> HttpAnswer:
        """Make one request and wait for the head of its answer. Follows redirects that are safe to follow.

        Returns:
            The answer, whatever its status. The caller closes it.

        Raises:
            ConnectFailed: the request did not arrive, or was redirected to where it must not go (then `http_status`).
            TransportBroken: the connection ended before the answer began; the request may have been carried out.

        Cancellation:
            Safe; the connection is closed.

        Source:
            Fault 38, C15.
        """
        url = self.url
        for _ in range(MAX_HOPS):
            response, pool = await self._exchange(method, url, headers, body)
            answer = self._answer(response, url, pool)
            location = answer.header("location") if answer.status in REDIRECTS else None
            if location is None:
                self.url = url
                return answer
            try:
                url = redirected(method, url, location, answer.status)
            finally:
                await answer.aclose()
        text = f"{place_of(self.url)} redirects in circles: stopped after {MAX_HOPS} hops"
        raise ConnectFailed(reason=text, http_status=answer.status, can_retry=False)

    async def request_once(self, method: str, headers: Headers, body: bytes = b"") -> HttpAnswer:
        """Make one request and follow no redirect. Otherwise as `request`. Cancellation: safe."""
        response, pool = await self._exchange(method, self.url, headers, body)
        return self._answer(response, self.url, pool)

    async def aclose(self) -> None:
        """Close every connection; exchanges under way break. Shielded, waits for nobody."""
        pools, self._pools = self._pools, {}
        for pool in pools.values():
            await pool.aclose()

    async def _exchange(self, method: str, url: str, headers: Headers, body: bytes) -> tuple[httpx.Response, _Pool]:
        library = httpx_library()
        try:
            parsed = self._parse(url)
            framing = [(b"Content-Length", b"%d" % len(body))] if body else []
            given = {name.lower() for name, _ in headers}
            if b"host" not in given:
                framing.append((b"Host", parsed.netloc))
            extensions: dict[str, Any] = {"timeout": TIMEOUTS}
            if self._address is not None:
                extensions["sni_hostname"] = parsed.host
                parsed = parsed.copy_with(host=self._address)
            request = library.Request(
                method,
                parsed,
                headers=[*framing, *headers],
                stream=_body_class()(body),
                extensions=extensions,
            )
        except (library.InvalidURL, UnicodeError, ValueError) as exc:
            raise _unusable(url) from exc
        if self._auth is None or b"authorization" in given:
            return await self._send(request)
        flow = self._auth.async_auth_flow(request)
        try:
            request = await anext(flow)
            while True:
                response, pool = await self._send(request)
                try:
                    request = await flow.asend(response)
                except StopAsyncIteration:
                    return response, pool
                except BaseException:
                    await self._answer(response, url, pool).aclose()
                    raise
                await self._answer(response, url, pool).aclose()
        finally:
            await flow.aclose()

    async def _send(self, request: httpx.Request) -> tuple[httpx.Response, _Pool]:
        library = httpx_library()
        pool = self._pool_for(request.url)
        pool.active += 1
        self._sent.note(request.headers.items(), str(request.url))
        try:
            response: httpx.Response = await pool.transport.handle_async_request(request)
        except BaseException as exc:
            if isinstance(exc, trio.Cancelled):
                pool.strays += 1
                if pool.strays >= MAX_STRAYS:
                    self._retire(pool)
            await pool.release()
            place = place_of(str(request.url.copy_with(raw_path=b"/"))).rstrip("/")
            if isinstance(
                exc, (library.ConnectError, library.ConnectTimeout, library.ProxyError, library.UnsupportedProtocol)
            ):
                raise ConnectFailed(reason=f"cannot reach {place}: {explain(exc)}") from exc
            if isinstance(exc, UnicodeError):  # a host that names cannot be resolved for: a label empty or too long
                raise _unusable(str(request.url)) from exc
            if isinstance(exc, (library.HTTPError, *BROKEN_ERRORS)):
                why = starred(explain(exc), self._sent.secrets)  # the library quotes what it cannot read
                raise TransportBroken(reason=f"no answer from {place}: {why}") from exc
            raise
        response.request = request
        return response, pool

    def _answer(self, response: httpx.Response, url: str, pool: _Pool) -> HttpAnswer:
        errors = (httpx_library().HTTPError, *BROKEN_ERRORS)
        return HttpAnswer(response.status_code, url, cast("RawResponse", response), pool.release, self._sent, errors)

    def _retire(self, pool: _Pool) -> None:
        pool.is_retired = True
        self._pools = {key: other for key, other in self._pools.items() if other is not pool}

    def _parse(self, url: str) -> httpx.URL:
        if self._parsed is None or self._parsed[0] != url:
            self._parsed = url, httpx_library().URL(url)
        return self._parsed[1]

    def _pool_for(self, url: httpx.URL) -> _Pool:
        origin = url.scheme, url.host, url.port
        pool = self._pools.get(origin)
        if pool is None:
            proxy = proxy_for(str(url), self._environ) if self._environ else None
            self._pools[origin] = pool = _Pool(_build(url.scheme, proxy, self._environ))
        return pool


def _unusable(url: str) -> ConnectFailed:
    return ConnectFailed(reason=f"{place_of(url)} is not a usable URL", can_retry=False)


def _build(scheme: str, proxy: str | None, environ: Mapping[str, str]) -> httpx.AsyncHTTPTransport:
    library = httpx_library()
    needs_tls = scheme == "https" or (proxy or "").startswith("https:")
    settings: dict[str, Any] = {
        "verify": tls_context(environ) if needs_tls else _bare_context(),
        "trust_env": False,
        "http2": False,
        "limits": library.Limits(max_connections=None, max_keepalive_connections=None, keepalive_expiry=KEEPALIVE),
    }
    try:
        transport: httpx.AsyncHTTPTransport = library.AsyncHTTPTransport(proxy=proxy, **settings)
    except (ImportError, ValueError, library.InvalidURL) as exc:
        raise ConnectFailed(
            reason="the proxy of the environment cannot be used (SOCKS needs the package socksio)"
        ) from exc
    return transport


def basic_credentials(url: str) -> str | None:
    """The Authorization value for the user and password inside `url`; None when it has none."""
    user_info = httpx_library().URL(url).userinfo
    if not user_info:
        return None
    parts = urlsplit(url)
    pair = f"{unquote(parts.username or '')}:{unquote(parts.password or '')}"
    return "Basic " + base64.b64encode(pair.encode()).decode()
