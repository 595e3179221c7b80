"""Owns the wiring of `auth` to `transports`: one desk for a runtime or a verb, with this machine's store and network.

What this is not: either room. They do not know each other; here they meet.
"""

from __future__ import annotations

from contextlib import nullcontext
from functools import partial
from typing import TYPE_CHECKING, Final, cast

from mcp_actors.auth.desk import AuthDesk
from mcp_actors.auth.server_auth import ServerAuth
from mcp_actors.auth.store import CredentialStore, StoreChoice
from mcp_actors.errors import ConfigError
from mcp_actors.transports.fetching import exchange_once, is_proxied

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from mcp_actors.auth.driving import SignInPrompter, Waiting
    from mcp_actors.config.specs import ServerSpec
    from mcp_actors.jsontypes import JsonObject
    from mcp_actors.transports.http_client import Auth

__all__ = ["CREDENTIALS_DIR", "auth_of", "extensions_of", "make_desk", "read_store_choice"]

# Below the state directory.
CREDENTIALS_DIR: Final = "credentials"


def read_store_choice(environ: Mapping[str, str]) -> StoreChoice:
    """Where logins are kept: ``MCP_ACTORS_CREDENTIALS_STORE``, else `auto`.

    Raises:
        ConfigError: it names no store.
    """
    text = environ.get("MCP_ACTORS_CREDENTIALS_STORE", "").strip().lower() or StoreChoice.AUTO
    try:
        return StoreChoice(text)
    except ValueError:
        known = ", ".join(StoreChoice)
        raise ConfigError(key="MCP_ACTORS_CREDENTIALS_STORE", reason=f"must be one of {known}") from None


def make_desk(
    environ: Mapping[str, str],
    *,
    state_dir: Path | None,
    prompter: SignInPrompter | None = None,
    waiting: Waiting = nullcontext,
) -> AuthDesk:
    """Make a desk. Does no I/O.

    Args:
        environ: variable name -> text: proxies, ``${VAR}`` of ``oauth`` blocks, systemd's credentials,
            where logins are kept.
        state_dir: where files, locks and what is remembered lie; None: nothing is kept but in a keyring.
        prompter: asks a person during a call; None: calls fail typed.
        waiting: entered with a server's name for as long as its person is asked.

    Raises:
        ConfigError: the environment names no store.
    """
    choice = read_store_choice(environ)
    if state_dir is None and choice is StoreChoice.AUTO:
        # Without a state directory there are no locks between processes: nothing is shared with them then.
        choice = StoreChoice.MEMORY
    directory = None if state_dir is None else state_dir / CREDENTIALS_DIR
    return AuthDesk(
        partial(exchange_once, environ=environ),
        environ,
        CredentialStore(choice, directory),
        state_dir=state_dir,
        prompter=prompter,
        waiting=waiting,
        is_proxied=partial(is_proxied, environ=environ),
    )


def auth_of(desk: AuthDesk, spec: ServerSpec) -> Auth | None:
    """Who we are towards a server, as the HTTP client takes it; None: as configured, or nobody.

    Raises:
        ConfigError: the block ``oauth`` of its entry cannot be used.
    """
    # The shape of httpx's auth flow, without its class: `auth` knows no httpx.
    return cast("Auth | None", desk.for_server(spec))


def extensions_of(auth: Auth | None) -> Mapping[str, JsonObject]:
    """The extensions that our client capabilities may declare to a server because of `auth` (S281)."""
    return auth.extensions if isinstance(auth, ServerAuth) else {}
