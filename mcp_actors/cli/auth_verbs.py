"""Owns the verbs about who we are: ``login``, ``logout``, ``auth status``, ``xaa``.

What this is not: signing in (`auth`), nor asking the person (`signing_in`).

Rule 1: heavy imports stand inside functions (``--help`` stays fast).
Rule 2: no token is ever printed, nor a secret taken from the command line, where other users would see it.
"""

from __future__ import annotations

import os
from functools import partial
from typing import TYPE_CHECKING, Final

from mcp_actors.cli import output
from mcp_actors.cli.exits import FAILED, LOGIN, OK, UsageError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Awaitable, Callable

    from mcp_actors.auth.desk import AuthDesk
    from mcp_actors.auth.status import AuthStatus
    from mcp_actors.auth.xaa import CompanySetup
    from mcp_actors.cli.options import GlobalOptions
    from mcp_actors.config.specs import ServerSpec
    from mcp_actors.jsontypes import Json

__all__ = [
    "configure_auth",
    "configure_login",
    "configure_logout",
    "configure_xaa",
    "run_auth",
    "run_login",
    "run_logout",
    "run_xaa",
    "status_line",
    "status_row",
    "with_desk",
]

COMPANY_SECRET: Final = "MCP_XAA_IDP_CLIENT_SECRET"  # noqa: S105 - a name
# States in which a server has what it needs.
_FINE: Final = frozenset({"signed-in", "configured", "silent", "none"})


def with_desk(verb: Callable[[AuthDesk], Awaitable[int]]) -> int:
    """Run a verb that needs a desk and no fleet."""
    from mcp_actors.cli.configured import places_of
    from mcp_actors.cli.signals import run_interruptibly
    from mcp_actors.fleet.signing import make_desk

    desk = make_desk(os.environ, state_dir=places_of().state_dir)
    return run_interruptibly(partial(verb, desk))


def _spec(shared: GlobalOptions, name: str) -> ServerSpec:
    from mcp_actors.cli.fleet import load_plan

    plan = load_plan(shared).only(name)
    plan.tell()
    return plan.spec(name)


# ── login, logout ────────────────────────────────────────────────────────────────────────────────────────────────────


def configure_login(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``login``."""
    parser.add_argument("name", metavar="NAME", help="a configured server")
    parser.add_argument("--no-browser", action="store_true", help="print the page's address, and take an answer pasted")
    parser.add_argument("--code", action="store_true", help="show a code to type in elsewhere, where the server can")
    parser.add_argument("--scopes", metavar="S", help="ask for these scopes, separated by blanks, and no others")


def run_login(shared: GlobalOptions, own: argparse.Namespace) -> int:
    """Sign in to one server; the old login stays until the new one works."""
    spec = _spec(shared, own.name)
    scopes = None if own.scopes is None else tuple(own.scopes.replace(",", " ").split())
    # What `add --client-secret` kept is found without it.
    secret = os.environ.get("MCP_CLIENT_SECRET") or None

    async def verb(desk: AuthDesk) -> int:
        from mcp_actors.cli.signing_in import terminal_sign_in

        prompter = terminal_sign_in(uses_browser=not own.no_browser)
        status = await desk.log_in(spec, prompter, scopes=scopes, by_code=own.code, client_secret=secret)
        output.note(f"signed in: {status_line(status)}", prefix="")
        return OK

    return with_desk(verb)


def configure_logout(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``logout``."""
    parser.add_argument("name", metavar="NAME", help="a configured server")


def run_logout(shared: GlobalOptions, own: argparse.Namespace) -> int:
    """Revoke and forget the login of one server, and its registration."""
    spec = _spec(shared, own.name)

    async def verb(desk: AuthDesk) -> int:
        was_in = await desk.log_out(spec)
        output.note(f"{spec.name}: {'signed out' if was_in else 'was not signed in'}", prefix="")
        return OK

    return with_desk(verb)


# ── auth status ──────────────────────────────────────────────────────────────────────────────────────────────────────


def configure_auth(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``auth``."""
    parser.add_argument("action", choices=("status",), metavar="status", help="tell how each server is signed in to")
    parser.add_argument("name", nargs="?", metavar="NAME", help="only this server")
    parser.add_argument("--json", action="store_true", help="print JSON")


def run_auth(shared: GlobalOptions, own: argparse.Namespace) -> int:
    """Tell how servers are signed in to; asks nobody. 4 when one that was named is not."""
    from mcp_actors.cli.fleet import load_plan
    from mcp_actors.cli.render import json_text

    plan = load_plan(shared)
    specs = (plan.spec(own.name),) if own.name else plan.specs

    async def verb(desk: AuthDesk) -> int:
        from mcp_actors.config.specs import RemoteTarget

        rows = [await desk.status(spec) for spec in specs if own.name or isinstance(spec.target, RemoteTarget)]
        if own.json:
            output.emit(json_text({"servers": [status_row(row) for row in rows]}))
        else:
            for row in rows:
                output.emit(status_line(row))
            if not rows:
                output.note("no server that is reached over a network is configured", prefix="")
        return LOGIN if own.name and rows[0].state not in _FINE else OK

    return with_desk(verb)


def status_row(status: AuthStatus) -> dict[str, Json]:
    """The documented JSON of one server; no token is in it."""
    return {
        "name": status.server,
        "state": status.state,
        "grant": status.grant,
        "issuer": status.issuer,
        "resource": status.resource,
        "client_id": status.client_id,
        "scopes": list(status.scopes),
        "expires_at": None if status.expires_at is None else _moment(status.expires_at),
        "can_renew": status.can_renew,
        "store": status.store,
        "dpop": status.is_key_bound,
    }


def status_line(status: AuthStatus) -> str:
    """One line for a person; what servers wrote is cleaned."""
    from mcp_actors.cli.render import clean_line

    facts = [f"{status.server}: {status.state}"]
    if status.issuer is not None:
        facts.append(f"issuer {clean_line(status.issuer)}")
        facts.append(f"scopes {clean_line(' '.join(status.scopes)) or '(the default)'}")
        facts.append("expiry unknown" if status.expires_at is None else f"until {_moment(status.expires_at)}")
        facts.append("renewed by itself" if status.can_renew else "not renewable")
        facts.append(f"kept in {status.store}")
    return ", ".join(facts)


def _moment(seconds: float) -> str:
    from datetime import UTC, datetime

    return datetime.fromtimestamp(min(seconds, 253402300799), UTC).isoformat(timespec="seconds")


# ── xaa ──────────────────────────────────────────────────────────────────────────────────────────────────────────────


def configure_xaa(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``xaa``."""
    parser.add_argument(
        "action",
        choices=("setup", "login", "logout"),
        metavar="setup|login|logout",
        help="name the company's identity provider; sign in there, once for all its servers; sign out",
    )
    parser.add_argument("--issuer", metavar="URL", help="setup: the identity provider")
    parser.add_argument("--client-id", metavar="ID", help="setup: which client we are there")
    parser.add_argument(
        "--client-secret", action="store_true", help="setup: ask for its secret (or MCP_XAA_IDP_CLIENT_SECRET)"
    )
    parser.add_argument("--callback-port", type=int, metavar="N", help="setup: port of the registered redirect")
    parser.add_argument("--no-browser", action="store_true", help="login: print the page's address")


def run_xaa(shared: GlobalOptions, own: argparse.Namespace) -> int:
    """Set up, or sign in to, the company whose word signs in to all its servers (enterprise-managed authorization)."""
    del shared
    if own.action == "setup":
        setup = _setup_of(own)

        async def verb(desk: AuthDesk) -> int:
            kind = await desk.company.set_up(setup)
            kept = "" if kind is None else f"; its secret is kept in {kind}"
            output.note(f"the company's identity provider is {setup.issuer}{kept}", prefix="")
            output.note("sign in there with: mcp-actors xaa login", prefix="")
            return OK

        return with_desk(verb)

    async def in_or_out(desk: AuthDesk) -> int:
        from mcp_actors.cli.signing_in import terminal_sign_in

        company = await desk.company.current()
        if company is None:
            output.note("no company is set up: mcp-actors xaa setup --issuer URL --client-id ID")
            return FAILED
        if own.action == "logout":
            was_in = await company.log_out()
            output.note("signed out of the company" if was_in else "was not signed in to the company", prefix="")
            return OK
        kind = await company.log_in(terminal_sign_in(uses_browser=not own.no_browser))
        output.note(f"signed in to the company; kept in {kind}", prefix="")
        return OK

    return with_desk(in_or_out)


def _setup_of(own: argparse.Namespace) -> CompanySetup:
    from mcp_actors.auth.urls import check_url
    from mcp_actors.auth.xaa import CompanySetup

    if not own.issuer or not own.client_id:
        raise UsageError("xaa setup needs --issuer URL and --client-id ID")
    if own.callback_port is not None and not 0 < own.callback_port < 65536:
        raise UsageError("--callback-port must be a port number")
    secret = os.environ.get(COMPANY_SECRET) or None
    if own.client_secret:
        from mcp_actors.cli.client_secrets import ask_secret

        secret = ask_secret(COMPANY_SECRET)
    return CompanySetup(
        issuer=check_url(own.issuer, "--issuer"),
        client_id=own.client_id,
        client_secret=secret,
        callback_port=own.callback_port,
    )
