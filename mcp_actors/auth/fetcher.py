"""Owns the one way to URLs that servers name: what may be asked, and that the answer stays small and timely.

What this is not: HTTP; an `exchange` is handed in, and so is the resolving of names.

Rules.

1. Only https; http for loopback alone.
2. Only addresses of the public internet, unless the MCP server itself is on this machine or that private network, or
   configuration says so. Link-local addresses (cloud metadata) are refused even then, unless configured.
3. A name is resolved here, every address it has must pass, and the connection goes to the address that passed.
4. Redirects are followed for GET only, at most three, and every hop is judged like the first one.
5. Bodies, times and tries are bounded; one retry, for what did not arrive (S265).
6. No error tells what a body said, or more of a URL than its origin.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Final, TypeAlias
from urllib.parse import urljoin, urlsplit

import trio
from attrs import field

from mcp_actors.auth.messages import WebAnswer, WebRequest
from mcp_actors.auth.urls import check_url, host_of, place_of
from mcp_actors.errors import AuthFailed, ConnectFailed, ProtocolError, TransportError
from mcp_actors.origins import is_loopback
from mcp_actors.values import define

if TYPE_CHECKING:
    from typing import Protocol

    class Exchange(Protocol):
        """One exchange in plain values; see `transports.fetching.exchange_once`."""

        async def __call__(
            self,
            method: str,
            url: str,
            headers: Sequence[tuple[str, str]],
            body: bytes,
            *,
            address: str | None,
            max_bytes: int,
        ) -> tuple[int, Mapping[str, str], bytes]:
            """Make it."""
            ...


__all__ = ["Reach", "Resolve", "SafeFetcher", "reach_of", "resolve_name"]

# A metadata document is a few kB; the largest of big providers about 20.
MAX_BODY_BYTES: Final = 256 * 1024
# Seconds for one request with its redirects (S265 allows 60; a person waits for several of them).
TIMEOUT: Final = 30.0
MAX_HOPS: Final = 3
REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})
# Addresses that are tried, one after the other.
MAX_ADDRESSES: Final = 3
LOOPBACK_ADDRESSES: Final = ("127.0.0.1", "::1")

Address: TypeAlias = "ipaddress.IPv4Address | ipaddress.IPv6Address"
# Host name -> its addresses as texts; raises OSError when it has none.
Resolve: TypeAlias = Callable[[str], Awaitable[Sequence[str]]]

# Shared address space, and what wraps IPv4 addresses: judged by name, since `is_private` differs between versions.
_NETWORKS: Final = tuple(
    ipaddress.ip_network(text)
    for text in ("100.64.0.0/10", "10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "fc00::/7", "fec0::/10")
)


class Reach:
    """How far away an address is; a number, so that they compare."""

    LOOPBACK: Final = 0
    PRIVATE: Final = 1
    PUBLIC: Final = 2
    # Nobody's: link-local, multicast, reserved, unspecified.
    FORBIDDEN: Final = 3


def reach_of(text: str) -> int:
    """How far away the address `text` is: a `Reach`.

    Source:
        MCP, security best practices, "SSRF"; E01, fault 106.
    """
    try:
        address: Address = ipaddress.ip_address(text.partition("%")[0])
    except ValueError:
        return Reach.FORBIDDEN
    if isinstance(address, ipaddress.IPv6Address):
        inner = address.ipv4_mapped or address.sixtofour or (address.teredo[1] if address.teredo else None)
        if inner is None and address in ipaddress.ip_network("64:ff9b::/96"):
            inner = ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
        if inner is not None:
            return reach_of(str(inner))
    if address.is_loopback:
        return Reach.LOOPBACK
    if address.is_link_local or address.is_multicast or address.is_unspecified:
        return Reach.FORBIDDEN
    if any(address in network for network in _NETWORKS if network.version == address.version):
        return Reach.PRIVATE
    return Reach.PUBLIC if address.is_global else Reach.FORBIDDEN


async def resolve_name(host: str) -> Sequence[str]:
    """Resolve a name with the system's resolver; at most a few addresses, in its order."""
    found = await trio.socket.getaddrinfo(host, None, type=trio.socket.SOCK_STREAM)
    return tuple(dict.fromkeys(str(entry[4][0]) for entry in found))


@define(eq=False)
class SafeFetcher:
    """Fetches for one MCP server. Construction does no I/O."""

    _server_url: str = field(repr=False, alias="server_url")
    _exchange: Exchange = field(repr=False, alias="exchange")
    _resolve: Resolve = field(default=resolve_name, repr=False, alias="resolve")
    # Whether a proxy makes the connection to a URL: then the name is resolved there, and only its text is judged here.
    _is_proxied: Callable[[str], bool] = field(default=lambda _url: False, repr=False, alias="is_proxied")
    # By configuration: private and link-local addresses may be asked.
    _allows_private: bool = field(default=False, alias="allows_private")
    _timeout: float = field(default=TIMEOUT, alias="timeout")
    # How near the MCP server is; None until it is needed.
    _nearness: int | None = field(default=None, init=False)

    async def __call__(self, request: WebRequest) -> WebAnswer:
        """Make one request.

        Raises:
            AuthFailed: it must not be made, or leads where it must not.
            ConnectFailed: there was no usable answer in time.

        Cancellation:
            Safe for us; a POST may have been carried out.

        Source:
            E01, S265, fault 106.
        """
        with trio.move_on_after(self._timeout) as scope:
            return await self._follow(request)
        assert scope.cancelled_caught
        raise ConnectFailed(reason=f"{place_of(request.url)} did not answer the {request.purpose} in time")

    async def _follow(self, request: WebRequest) -> WebAnswer:
        url, headers = request.url, request.headers
        for _ in range(MAX_HOPS + 1):
            answer = await self._ask(request, url, headers)
            location = answer.headers.get("location")
            if answer.status not in REDIRECTS or not location:
                return answer
            if request.method != "GET":
                raise AuthFailed(reason=f"{place_of(url)} redirects a {request.purpose}: refused")
            try:
                url = urljoin(url, location)
            except ValueError:
                raise AuthFailed(reason=f"{place_of(url)} redirects to no usable URL") from None
        raise AuthFailed(reason=f"{place_of(request.url)} redirects more than {MAX_HOPS} times")

    async def _ask(self, request: WebRequest, url: str, headers: Sequence[tuple[str, str]]) -> WebAnswer:
        check_url(url, f"the URL of the {request.purpose}")
        addresses = await self._addresses(url)
        failure: Exception | None = None
        # One more try for what surely did not arrive, at the next address where there is one.
        tries = [*addresses[:MAX_ADDRESSES]] if len(addresses) > 1 else [*addresses, *addresses]
        for address in tries:
            try:
                status, kept, body = await self._exchange(
                    request.method, url, headers, request.body, address=address, max_bytes=MAX_BODY_BYTES
                )
            except ConnectFailed as exc:
                failure = exc
            except TransportError as exc:
                failure = exc
                if request.method != "GET":
                    break
            except ProtocolError as exc:
                raise AuthFailed(reason=f"the {request.purpose} at {place_of(url)}: {exc.reason}") from exc
            else:
                return WebAnswer(status, kept, body)
        why = failure.reason if isinstance(failure, TransportError) else "no address"
        raise ConnectFailed(reason=f"the {request.purpose} failed: {why}") from failure

    async def _addresses(self, url: str) -> Sequence[str | None]:
        """Where to connect to for `url`: judged addresses; None: a proxy knows."""
        host = host_of(url)
        nearest = await self._nearest_allowed()
        if self._is_proxied(url):
            is_literal = _is_literal(host)
            self._judge(url, [host] if is_literal else [], nearest)
            return (None,)
        if _is_literal(host):
            self._judge(url, [host], nearest)
            return (host,)
        if is_loopback(host):  # whatever a resolver says: that name is this machine
            self._judge(url, LOOPBACK_ADDRESSES, nearest)
            return LOOPBACK_ADDRESSES
        try:
            found = await self._resolve(host)
        except OSError as exc:
            raise ConnectFailed(reason=f"{host} cannot be resolved: {exc.strerror or 'no address'}") from exc
        if not found:
            raise ConnectFailed(reason=f"{host} cannot be resolved: no address")
        self._judge(url, found, nearest)
        return tuple(found)

    def _judge(self, url: str, addresses: Sequence[str], nearest: int) -> None:
        """Rule 2."""
        is_plain = urlsplit(url).scheme == "http"
        for address in addresses:
            reach = reach_of(address)
            if reach == Reach.FORBIDDEN and not (self._allows_private and _is_link_local(address)):
                why = "leads to an address that no server has"
            elif reach < nearest:
                why = "leads into a private network, where the MCP server is not; oauth.allowPrivateNetwork permits it"
            elif is_plain and reach != Reach.LOOPBACK:
                why = "is plain http"
            else:
                continue
            raise AuthFailed(reason=f"refused to ask {place_of(url)}: it {why}")

    async def _nearest_allowed(self) -> int:
        """The nearest reach that may be asked: a server on this machine may name anything near, a private one only its
        network."""
        if self._allows_private:
            return Reach.LOOPBACK
        if self._nearness is None:
            host = host_of(self._server_url)
            if is_loopback(host):
                self._nearness = Reach.LOOPBACK
            elif _is_literal(host):
                self._nearness = min(reach_of(host), Reach.PUBLIC)
            elif self._is_proxied(self._server_url):
                self._nearness = Reach.PUBLIC
            else:
                try:
                    reaches = [reach_of(address) for address in await self._resolve(host)]
                except OSError:
                    reaches = []
                # All of them: a name that also resolves to a private address proves nothing.
                self._nearness = min(max(reaches, default=Reach.PUBLIC), Reach.PUBLIC)
        return self._nearness


def _is_literal(host: str) -> bool:
    try:
        ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return False
    return True


def _is_link_local(text: str) -> bool:
    try:
        return ipaddress.ip_address(text.partition("%")[0]).is_link_local
    except ValueError:
        return False
