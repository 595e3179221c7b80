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

if TYPE_CHECKING:
    from mcp_actors.auth.credentials import Credentials
    from mcp_actors.auth.driving import Fetch, Prompter
    from mcp_actors.auth.flow import Errand

__all__ = ["log_in_by_code"]

# Seconds added when the server finds us too eager (RFC 8628, section 3.5).
SLOWER: Final = 5.0
# A registration for this grant has no redirect; RFC 7591 wants one all the same.
PLACEHOLDER: Final = "http://localhost/callback"


async def log_in_by_code(errand: Errand, fetch: Fetch, prompter: Prompter) -> Credentials:
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
    await prompter.show_code(code)
    interval = code.interval
    with trio.move_on_after(code.expires_in):
        while True:
            await trio.sleep(interval)
            form = device_form(code.device_code, resource=found.resource)
            polling = ask_token(server, form, identity=identity, presentation=presentation, sources=sources)
            try:
                result = await drive(polling, fetch)
            except ConnectFailed:
                interval *= 2  # RFC 8628, section 3.5: exponential backoff on a timeout
                continue
            if not isinstance(result, Refused):
                return credentials_of(errand, found, result, GrantKind.DEVICE_CODE, identity, presentation)
            if result.code == "slow_down":
                interval += SLOWER
            elif result.code != "authorization_pending" and not result.is_passing:
                raise refusal_error(result, server)
    raise AuthFailed(reason="the code was not typed in in time: start the sign-in again")
