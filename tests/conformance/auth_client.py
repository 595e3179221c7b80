"""What a scenario of signing in needs of our driver: an ``oauth`` block, and a person who approves at once.

What this is not: a way around the runtime. What is here goes in by the doors that a program has: the configuration, a
prompter, and the runtime's desk.

The suite's authorization servers approve everybody: a GET of the authorization URL is answered with the redirect, which
nobody follows.
"""

from __future__ import annotations

import tempfile
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING, Any, Final

from mcp_actors.auth.credentials import Credentials
from mcp_actors.auth.discovery import AuthServer
from mcp_actors.auth.driving import drive
from mcp_actors.auth.flow import find
from mcp_actors.auth.options import GrantKind
from mcp_actors.auth.tokens import Tokens
from mcp_actors.auth.xaa import CompanySetup
from mcp_actors.config.specs import RemoteTarget, ServerSpec
from mcp_actors.transports.fetching import exchange_once

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator, Mapping

    from mcp_actors import Runtime

__all__ = ["ApprovingPrompter", "employ", "oauth_block"]

REDIRECT_URI: Final = "http://localhost:3000/callback"
CLIENT_DOCUMENT: Final = "https://conformance-test.local/client-metadata.json"


class ApprovingPrompter:
    """A person who approves at once and whose browser shows us where it was led."""

    redirect_uri = REDIRECT_URI

    @asynccontextmanager
    async def receive(self, *, fixed: str | None, preferred: str | None) -> AsyncIterator[ApprovingPrompter]:
        """Be the place to arrive at."""
        del fixed, preferred
        yield self

    async def visit(self, url: str) -> str:
        """Look at the page and say where it leads."""
        status, headers, _ = await exchange_once("GET", url, (), b"", address=None, max_bytes=65536, environ={})
        if not 300 <= status < 400:
            raise SystemExit(f"the authorization endpoint answered {status}")
        return headers["location"]

    async def show_code(self, code: object) -> None:
        """Nobody reads it."""
        raise SystemExit(f"nobody can type in {code}")


# ── what a scenario says in advance, as an entry would ───────────────────────────────────────────────────────────────


def _by_key(context: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "grant": "client_credentials",
        "clientId": context["client_id"],
        "privateKey": context["private_key_pem"],
        "signingAlgorithm": context["signing_algorithm"],
    }


def _by_secret(context: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "grant": "client_credentials",
        "clientId": context["client_id"],
        "clientSecret": context["client_secret"],
        "tokenEndpointAuthMethod": "client_secret_basic",
    }


def _by_company(context: Mapping[str, Any]) -> dict[str, Any]:
    return {"xaa": True, "clientId": context["client_id"], "clientSecret": context["client_secret"]}


def _registered(context: Mapping[str, Any]) -> dict[str, Any]:
    block = {"clientId": context["client_id"], "clientSecret": context["client_secret"]}
    return block | ({"issuer": context["issuer"]} if "issuer" in context else {})


_BLOCKS: Final[Mapping[str, Callable[[Mapping[str, Any]], dict[str, Any]]]] = {
    "auth/client-credentials-jwt": _by_key,
    "auth/client-credentials-basic": _by_secret,
    "auth/enterprise-managed-authorization": _by_company,
    "auth/pre-registration": _registered,
}


@contextmanager
def oauth_block(scenario: str, context: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The ``oauth`` block of the entry, while the block runs: what a workload's platform says lies in a file."""
    if scenario == "auth/wif-jwt-bearer":
        with tempfile.NamedTemporaryFile("w", suffix=".jwt") as file:
            file.write(context["valid_jwt"])
            file.flush()
            yield {"grant": "workload_identity", "assertionFile": file.name}
    elif scenario in _BLOCKS:
        yield _BLOCKS[scenario](context)
    else:
        yield {"clientMetadataUrl": CLIENT_DOCUMENT}


async def employ(runtime: Runtime, name: str, url: str, context: Mapping[str, Any]) -> None:
    """Adopt the company's login that the suite hands out, and run the server with its issuer pinned (S278).

    A person would have signed in to the company, and an administrator would have written the issuer down.
    """
    company = runtime.desk.company.use(CompanySetup(context["idp_issuer"], context["idp_client_id"]))
    await company.adopt(
        Credentials(
            server_url=context["idp_issuer"],
            resource="",
            server=AuthServer(issuer=context["idp_issuer"], token_endpoint=context["idp_token_endpoint"]),
            grant=GrantKind.AUTHORIZATION_CODE,
            tokens=Tokens("unused", id_token=context["idp_id_token"]),
            identity=company.setup.identity,
        )
    )
    spec = ServerSpec(name, RemoteTarget(url), raw={"oauth": _by_company(context)})
    auth = runtime.desk.for_server(spec)
    if auth is None:
        raise SystemExit("there is nothing to sign in with")
    found = await drive(find(auth.errand(None, None)), auth.fetch)
    pinned = {**_by_company(context), "issuer": found.server.issuer}
    await runtime.add_server(ServerSpec(name, RemoteTarget(url), raw={"oauth": pinned}))
