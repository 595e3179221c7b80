"""Owns signing in without a browser here: a code is shown, typed in elsewhere, and asked about until it was (RFC 8628).

What this is not: the sign-in with a redirect (`flow`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import trio

from mcp_actors.auth.driving import drive
from mcp_actors.auth.flow import choose_presentation, credentials_of, find, refusal_error, wanted_scope
from mcp_actors.auth.grants import DEVICE_GRANT, ask_device_code, ask_token, device_form
from mcp_actors.auth.identity import choose_identity
from mcp_actors.auth.options import GrantKind
from mcp_actors.auth.registration import register
from mcp_actors.auth.tokens import Refused
from mcp_actors.auth.urls import place_of
from mcp_actors.errors import AuthFailed, ConnectFailed
from mcp_actors.groups import bare_errors

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcp_actors.auth.credentials import Credentials
    from mcp_actors.auth.discovery import AuthServer
    from mcp_actors.auth.driving import Fetch, SignInPrompter
    from mcp_actors.auth.flow import Errand
    from mcp_actors.auth.messages import Asking
    from mcp_actors.auth.tokens import Tokens

__all__ = ["log_in_by_code"]

# Seconds added when the server finds us too eager (RFC 8628, section 3.5).
SLOWER: Final = 5.0
# A registration for this grant has no redirect; RFC 7591 wants one all the same.
PLACEHOLDER: Final = "http://localhost/callback"


async def log_in_by_code(errand: Errand, fetch: Fetch, prompter: SignInPrompter) -> Credentials:
    """Sign in with a code that a person types in elsewhere. Stores nothing.

    Raises:
        AuthFailed: the server does not offer it, or it was refused or not typed in in time.
        ConnectFailed: a server is out of order for now.

    Cancellation:
        Safe; the code becomes void by itself.
    """
    found = await drive(find(errand), fetch)
    server, sources = found.server, errand.sources
    if server.device_endpoint is None:
        raise AuthFailed(reason=f"{place_of(server.issuer)} offers no sign-in by code (device authorization)")
    previous = None if errand.previous is None else errand.previous.identity
    scope = wanted_scope(errand, found)
    identity = choose_identity(server, errand.options, redirect_uri=PLACEHOLDER, remembered=previous, now=sources.now())
    if identity is None:
        grants = (DEVICE_GRANT, "refresh_token")
        registering = register(server, redirect_uri=PLACEHOLDER, scope=scope, grant_types=grants, now=sources.now())
        identity = await drive(registering, fetch)
    asking = ask_device_code(server, identity=identity, scope=scope, resource=found.resource, sources=sources)
    code = await drive(asking, fetch)
    if isinstance(code, Refused):
        raise refusal_error(code, server)
    presentation = choose_presentation(errand, found)
    form = device_form(code.device_code, resource=found.resource)
    tokens: Tokens | None = None
    with trio.move_on_after(code.expires_in), bare_errors():
        async with trio.open_nursery() as nursery:
            nursery.start_soon(prompter.show_code, code)
            tokens = await _poll(
                lambda: ask_token(server, form, identity=identity, presentation=presentation, sources=sources),
                fetch,
                server,
                code.interval,
            )
            nursery.cancel_scope.cancel()
    if tokens is None:
        raise AuthFailed(reason="the code was not typed in in time: start the sign-in again")
    return credentials_of(errand, found, tokens, GrantKind.DEVICE_CODE, identity, presentation)


async def _poll(
    ask: Callable[[], Asking[Tokens | Refused]], fetch: Fetch, server: AuthServer, interval: float
) -> Tokens:
    while True:
        await trio.sleep(interval)
        try:
            result = await drive(ask(), fetch)
        except ConnectFailed:
            interval *= 2  # RFC 8628, section 3.5: exponential backoff on a timeout
            continue
        if not isinstance(result, Refused):
            return result
        if result.code == "slow_down":
            interval += SLOWER
        elif result.code != "authorization_pending" and not result.is_passing:
            raise refusal_error(result, server)
