"""Owns the running of a sign-in flow, which only yields steps: requests go to a `fetch`, page visits to a person.

What this is not: the flow (`flow`, `upkeep`, `xaa`), nor fetching (`fetcher`).
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Protocol, TypeAlias, TypeVar

from mcp_actors.auth.messages import Asking, Flow, Sources, Visit, WebAnswer, WebRequest
from mcp_actors.errors import AuthRequired, McpActorsError
from mcp_actors.sent_secrets import hide, longest_first

if TYPE_CHECKING:
    from contextlib import AbstractAsyncContextManager, AbstractContextManager

    from mcp_actors.auth.grants import DeviceCode

__all__ = ["Fetch", "Reception", "SignInPrompter", "Waiting", "drive", "drive_visiting", "real_sources"]

T = TypeVar("T")


class Reception(Protocol):
    """A place where a person arrives after a visit: already listening."""

    redirect_uri: str

    async def visit(self, url: str) -> str:
        """Send the person to `url`; returns the whole URL that it led back to. Cancellation: the visit is over."""
        ...


class SignInPrompter(Protocol):
    """What a program or a door supplies so that a person can sign in."""

    def receive(self, *, fixed: str | None, preferred: str | None) -> AbstractAsyncContextManager[Reception]:
        """Open a place to arrive at.

        Args:
            fixed: the redirect URI that it must have; None: any.
            preferred: the one that a registration has, best kept.
        """
        ...

    async def show_code(self, code: DeviceCode) -> None:
        """Show a code to type in elsewhere. Cancellation: the code is no longer wanted, or was typed in."""
        ...


# Makes one request; raises `AuthFailed` where it must not be made, `ConnectFailed` where no answer came.
Fetch: TypeAlias = Callable[[WebRequest], Awaitable[WebAnswer]]
# Entered with a server's name for as long as its person is asked: whoever has a clock says what stops meanwhile.
Waiting: TypeAlias = "Callable[[str], AbstractContextManager[object]]"


def real_sources() -> Sources:
    """Time and chance of this machine."""
    return Sources(now=time.time, token=secrets.token_urlsafe)


async def drive(flow: Asking[T], fetch: Fetch) -> T:
    """Run a flow that needs no person. Its errors repeat nothing that was sent for it (fault 102).

    Cancellation:
        Safe for us; a request under way may have been carried out.
    """
    return await drive_visiting(flow, fetch, None)


async def drive_visiting(flow: Flow[T], fetch: Fetch, reception: Reception | None) -> T:
    """Run a flow with visits, otherwise as `drive`. `reception`: where the person arrives; None: there is nobody.

    Raises:
        AuthRequired: a person is needed and there is none.
    """
    sent: set[str] = set()
    try:
        step = next(flow)
        while True:
            if not isinstance(step, Visit):
                sent.update(step.secrets)
                step = flow.send(await fetch(step))
            elif reception is None:
                raise AuthRequired
            else:
                landing = await reception.visit(step.url)
                sent.update(step.secrets(landing))
                step = flow.send(landing)
    except StopIteration as end:
        result: T = end.value
        return result
    except McpActorsError as exc:
        hide(exc, longest_first(sent))
        raise
    finally:
        flow.close()
