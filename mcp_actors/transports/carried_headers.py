"""Owns the headers that go with every request to one server, as they are now: the configured ones, and the helper's.

What this is not: the helper's run (`headers_helper`), nor what may be in a header (`http_headers`).

A helper is run at every connect, and once more when the server refuses who we are (S091). Many calls may be refused at
once: one of them runs the helper, the others take what it printed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import trio
from attrs import evolve

from mcp_actors.config.specs import RemoteTarget
from mcp_actors.errors import ConfigError, ConnectFailed, LocalProtocolError
from mcp_actors.transports.headers_helper import FAILED_CODE, print_headers

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mcp_actors.config.specs import ServerSpec

__all__ = ["REFUSALS", "CarriedHeaders"]

# Statuses by which a server refuses who we are (S091).
REFUSALS = frozenset({401, 403})


class CarriedHeaders:
    """The headers of every request to one server."""

    def __init__(
        self,
        spec: ServerSpec,
        environ: Mapping[str, str] | None,
        encode: Callable[[RemoteTarget], list[tuple[bytes, bytes]]],
    ) -> None:
        """Take the configured headers; nothing runs.

        Args:
            spec: the server.
            environ: of the helper, name -> value; None: empty.
            encode: makes the headers of a target sendable.

        Raises:
            ConfigError: a configured header cannot be sent.
        """
        target = spec.target
        if not isinstance(target, RemoteTarget):
            raise LocalProtocolError(server=spec.name, reason="headers need a remote target")
        # What to send, in order; replaced whole.
        self.pairs = encode(target)
        # Counts the replacements.
        self.version = 0
        self._spec = spec
        self._target = target
        self._environ = environ or {}
        self._encode = encode
        # Held while the helper runs.
        self._running = trio.Lock()

    @property
    def has_helper(self) -> bool:
        """Whether there is a helper to ask."""
        return self._target.headers_helper is not None

    async def open(self) -> None:
        """Ask the helper, if there is one: to be called at every connect.

        Raises:
            ConfigError: it may not run, or printed a header that cannot be sent.
            ConnectFailed: it failed.

        Cancellation:
            Safe; the helper is killed.

        Source:
            S090.
        """
        if self.has_helper:
            async with self._running:
                await self._ask()

    async def renew(self, refused: int) -> bool:
        """Ask the helper again, after the server refused the headers of version `refused`.

        Returns:
            Whether there are headers of another version now, worth one more try.

        Raises:
            ConfigError, ConnectFailed: as `open`.

        Cancellation:
            Safe; the helper is killed.

        Source:
            S091.
        """
        if not self.has_helper:
            return False
        async with self._running:
            if self.version == refused:
                await self._ask()
        return True

    async def _ask(self) -> None:
        printed = await print_headers(self._spec, self._environ)
        theirs = {name.lower() for name in printed}
        ours = {name: value for name, value in self._target.headers.items() if name.lower() not in theirs}
        try:
            self.pairs = self._encode(evolve(self._target, headers=ours | printed))
        except ConfigError as error:
            reason = f"headersHelper printed what cannot be sent: {error.reason}"
            raise ConnectFailed(server=self._spec.name, reason=reason, code=FAILED_CODE) from None
        self.version += 1

    def __repr__(self) -> str:
        return f"<CarriedHeaders of {self._spec.name}, version {self.version}>"
