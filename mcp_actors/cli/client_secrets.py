"""Owns what verbs that write entries do about a client's secret: ask for it, keep it where logins are, forget it.

What this is not: where that is (`auth`), nor writing entries (`changing`). No secret is ever written into an entry.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING

from mcp_actors.cli import output
from mcp_actors.cli.exits import OK, UsageError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from mcp_actors.auth.desk import AuthDesk
    from mcp_actors.config.specs import ServerSpec

__all__ = ["add_client_secret", "ask_secret", "check_client", "forget_secret", "keep_secret"]


def add_client_secret(parser: argparse.ArgumentParser) -> None:
    """Add the option ``--client-secret``."""
    parser.add_argument(
        "--client-secret",
        action="store_true",
        help="ask for that client's secret (or MCP_CLIENT_SECRET); kept where logins are, not in the file",
    )


def check_client(spec: ServerSpec) -> None:
    """Raise `UsageError` where the entry names no client, or has a secret of its own."""
    oauth = spec.raw.get("oauth")
    if not isinstance(oauth, Mapping) or not oauth.get("clientId"):
        raise UsageError("--client-secret is of the client that --client-id names (oauth.clientId in JSON)")
    if oauth.get("clientSecret"):
        raise UsageError("the entry has an oauth.clientSecret of its own: give one of both")


def ask_secret(variable: str) -> str:
    """The secret that ``--client-secret`` asks for: what the environment has, else typed at the terminal without echo.

    Args:
        variable: of the environment; never an argument, which other users of the machine can see.

    Raises:
        UsageError: there is neither, or nothing was typed.

    Source:
        S261, S361.
    """
    secret = os.environ.get(variable)
    if secret:
        return secret
    if sys.stdin is None or not sys.stdin.isatty():
        raise UsageError(f"--client-secret asks at a terminal; without one set {variable}")
    from getpass import getpass

    secret = getpass("client secret: ", stream=sys.stderr)
    if not secret:
        raise UsageError("no secret was given")
    return secret


def keep_secret(spec: ServerSpec) -> str:
    """Ask for the secret of the client that the entry names, and keep it; returns the kind of the store.

    Raises:
        UsageError: no secret was given.
        ConfigError: the entry cannot have one.
        AuthFailed: no store took it.

    Source:
        S261.
    """
    from mcp_actors.cli.auth_verbs import with_desk

    secret, kind = ask_secret("MCP_CLIENT_SECRET"), ""

    async def keep(desk: AuthDesk) -> int:
        nonlocal kind
        kind = await desk.keep_client_secret(spec, secret)
        return OK

    with_desk(keep)
    return kind


def forget_secret(specs: Sequence[ServerSpec]) -> None:
    """Forget what `keep_secret` kept for entries that are gone: nobody would look for it. What fails is told."""
    from mcp_actors.cli.auth_verbs import with_desk
    from mcp_actors.errors import ConfigError, McpActorsError

    having = [spec for spec in specs if isinstance(spec.raw.get("oauth"), Mapping)]

    async def forget(desk: AuthDesk) -> int:
        for spec in having:
            with suppress(ConfigError):  # an entry that cannot be used had no secret kept
                await desk.forget_client_secret(spec)
        return OK

    if having:
        try:
            with_desk(forget)
        except McpActorsError as error:
            output.note(f"a client secret that was kept for it could not be looked for: {error.describe()}")
