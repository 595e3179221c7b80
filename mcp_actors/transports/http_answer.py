"""Owns the answer to one HTTP request: reads its body in pieces, bounded, decoded, and ends the exchange for good.

What this is not: MCP (`http_exchange`), nor the making of requests (`http_client`, which makes these).
"""

from __future__ import annotations

import os
import socket
import ssl
import zlib
from contextlib import suppress
from typing import TYPE_CHECKING, Final, Protocol

import trio
from attrs import field

from mcp_actors.errors import RemoteProtocolError, TransportBroken
from mcp_actors.groups import causes
from mcp_actors.sent_secrets import starred
from mcp_actors.values import define

if TYPE_CHECKING:
    from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable, Mapping

    from mcp_actors.sent_secrets import SentSecrets

__all__ = ["BROKEN_ERRORS", "NO_WORDS", "HttpAnswer", "RawResponse", "explain"]

# What an end is called that nobody has words for.
NO_WORDS: Final = "the connection broke"
# Bytes that a compressed body may grow into at once.
MAX_INFLATED: Final = 1024 * 1024
# What OpenSSL calls a peer that does not begin with TLS.
_NO_TLS: Final = frozenset({"WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE", "HTTP_REQUEST", "PACKET_LENGTH_TOO_LONG"})
ZLIB_ENCODINGS: Final = frozenset({"gzip", "x-gzip", "deflate"})
# What a connection's end looks like when the HTTP library does not translate it.
BROKEN_ERRORS: Final = (OSError, trio.BrokenResourceError, trio.ClosedResourceError)


class RawResponse(Protocol):
    """As much of the HTTP library's response as is used here."""

    # Whether the body was read already, by an auth flow.
    is_stream_consumed: bool

    @property
    def headers(self) -> Mapping[str, str]:
        """Names are looked up in any case."""
        ...

    @property
    def stream(self) -> AsyncIterable[bytes]:
        """The body as it comes, not decoded."""
        ...

    def aiter_bytes(self) -> AsyncIterator[bytes]:
        """The body, decoded."""
        ...

    async def aclose(self) -> None:
        """End the exchange."""


@define(eq=False)
class HttpAnswer:
    """The answer to one request, whose body is still to be read. Must be closed."""

    status: int
    # Where it came from, after redirects; may hold a secret in its query.
    url: str = field(repr=False)
    _response: RawResponse = field(repr=False)
    # Called once, when the exchange has ended.
    _release: Callable[[], Awaitable[None]] = field(repr=False)
    # What was sent, by this request and those before it.
    _sent: SentSecrets = field(repr=False)
    # What the HTTP library raises when a connection ends.
    _errors: tuple[type[Exception], ...] = field(repr=False)
    # Whether the body was read to its end, so that the connection can be used again.
    is_complete: bool = field(default=False, init=False)
    # Whether the connection ended inside the body.
    is_broken: bool = field(default=False, init=False)
    _is_closed: bool = field(default=False, init=False, repr=False)
    _chunks: AsyncIterator[bytes] = field(init=False, repr=False)
    # What was looked at and is still to be read.
    _peeked: bytes = field(default=b"", init=False, repr=False)
    # Undoes a compression that was not asked for; None for a plain body.
    _inflater: zlib._Decompress | None = field(default=None, init=False, repr=False)

    def __attrs_post_init__(self) -> None:
        if self._response.is_stream_consumed:  # an auth flow read it
            self._chunks = self._response.aiter_bytes()
            return
        self._chunks = aiter(self._response.stream)
        if self._encoding in ZLIB_ENCODINGS:
            self._inflater = zlib.decompressobj(wbits=zlib.MAX_WBITS | 32)

    def header(self, name: str) -> str | None:
        """Value of a header, several joined by ", "; `name` in any case."""
        value: str | None = self._response.headers.get(name)
        return value

    def told(self, words: str) -> str:
        """The same words, with stars where they repeat what we sent to be known by (fault 102)."""
        return starred(words, self._sent.secrets)

    def without_secrets(self, body: bytes) -> bytes:
        """The same for a body."""
        # Latin-1 keeps every byte, whatever it means; secrets in another script are sent as the same bytes.
        text = starred(body.decode("latin-1"), [secret.encode().decode("latin-1") for secret in self._sent.secrets])
        return text.encode("latin-1")

    @property
    def content_type(self) -> str:
        """Lower-case media type without parameters; empty when there is none (fault 36)."""
        return (self.header("content-type") or "").partition(";")[0].strip().lower()

    @property
    def _encoding(self) -> str:
        return (self.header("content-encoding") or "identity").strip().lower()

    async def receive_some(self) -> bytes:
        """Read the next piece of the decoded body, as it arrives.

        Returns:
            Bytes, none at the end of the body.

        Raises:
            TransportBroken: the connection ended inside the body, or the body cannot be decoded.

        Cancellation:
            Safe; the connection is closed.
        """
        if self._peeked:
            chunk, self._peeked = self._peeked, b""
            return chunk
        if self._inflater is None:
            if self._encoding != "identity" and not self._response.is_stream_consumed:
                raise TransportBroken(reason=f"the answer is compressed with {self.told(self._encoding)[:20]}, unasked")
            return await self._receive_raw()
        while True:
            if self._inflater.eof:
                return b""  # what follows is no part of the body, and would be kept without bound
            raw = self._inflater.unconsumed_tail or await self._receive_raw()
            try:
                # In steps: a few bytes may hold gigabytes.
                chunk = self._inflater.decompress(raw, MAX_INFLATED) if raw else self._inflater.flush()
            except zlib.error as exc:
                raise TransportBroken(reason="the answer broke off: its compression is damaged") from exc
            if chunk:
                return chunk
            if not raw and not self._inflater.eof:
                raise TransportBroken(reason="the answer broke off: its compression has no end")

    async def looks_like_json(self) -> bool:
        """Whether the body begins as a message does. Nothing is lost but white space before it.

        Raises:
            TransportBroken: as for `receive_some`.

        Cancellation:
            Safe; the connection is closed.
        """
        while chunk := await self.receive_some():
            if start := chunk.lstrip():
                self._peeked = start
                return start[:1] in b"{["
        return False

    async def _receive_raw(self) -> bytes:
        if self.is_complete or self.is_broken or self._is_closed:
            return b""
        try:
            async for chunk in self._chunks:
                if chunk:
                    return chunk
        except self._errors as exc:
            self.is_broken = True
            raise TransportBroken(reason=f"the answer broke off: {self.told(explain(exc))}") from exc
        self.is_complete = True
        return b""

    async def read(self, max_bytes: int) -> bytes:
        """Read the whole body.

        Raises:
            RemoteProtocolError: it is longer than `max_bytes`.
            TransportBroken: the connection ended inside it.

        Cancellation:
            Safe; the connection is closed.
        """
        announced = self.header("content-length") or ""
        is_too_long = announced.isascii() and announced.isdigit() and int(announced[:20]) > max_bytes
        parts: list[bytes] = []
        size = 0
        while not is_too_long and (chunk := await self.receive_some()):
            parts.append(chunk)
            size += len(chunk)
            is_too_long = size > max_bytes
        if is_too_long:
            raise RemoteProtocolError(reason=f"the answer is longer than {max_bytes} bytes")
        return b"".join(parts)

    async def read_start(self, max_bytes: int, within: float) -> bytes:
        """Read the body's start: at most `max_bytes` of what arrives `within` seconds. Never fails."""
        body = b""
        with trio.move_on_after(within):
            try:
                while len(body) < max_bytes and (chunk := await self.receive_some()):
                    body += chunk
            except TransportBroken:
                pass
        return body[:max_bytes]

    async def _finish_if_ready(self) -> None:
        """Take what has arrived already, without waiting for more; ends the generators below by a cancel of our own."""
        with trio.CancelScope(shield=True) as now:
            now.cancel()
            try:
                while await self._receive_raw():
                    pass
            except TransportBroken:
                pass

    async def aclose(self) -> None:
        """End the exchange. Without the body's end the connection is closed, which tells a modern server to stop (B17).

        Cancellation:
            Shielded; waits for nobody.
        """
        if self._is_closed:
            return
        if not self.is_complete:
            # httpcore's generators are nested; closing the outer one leaves the inner ones to the garbage collector.
            await self._finish_if_ready()
        self._is_closed = True
        with trio.CancelScope(shield=True):
            with suppress(*self._errors):  # it was broken anyway
                await self._response.aclose()
            await self._release()


def explain(exc: BaseException) -> str:
    """Say why in the words of the innermost cause that has any (``str(ConnectError)`` is often empty)."""
    best = ""
    for seen in causes(exc):
        if isinstance(seen, ssl.SSLError) and seen.reason in _NO_TLS:
            best = f"it does not speak TLS there; if it is a plain server, write http:// (or ws://) ({seen.reason})"
        elif isinstance(seen, ssl.SSLCertVerificationError):
            best = f"its certificate is not trusted: {seen.verify_message} (NODE_EXTRA_CA_CERTS names more to trust)"
        elif isinstance(seen, OSError) and seen.strerror:
            has_own_codes = isinstance(seen, ssl.SSLError | socket.gaierror)
            best = seen.strerror if has_own_codes or not seen.errno else os.strerror(seen.errno)
        elif str(seen) and not best:
            best = str(seen)
    return " ".join((best or NO_WORDS).split())[:300]
