"""Signing in without a person, as the public conformance suite wants it, for a driver of its client leg.

The suite's authorization servers approve everybody at once: a GET of the authorization URL is answered with the
redirect, which nobody follows. `sign_in_desk` reads the suite's environment.
"""

from __future__ import annotations

import json
import tempfile
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

from mcp_actors.auth.credentials import Credentials
from mcp_actors.auth.desk import AuthDesk
from mcp_actors.auth.discovery import AuthServer
from mcp_actors.auth.driving import drive
from mcp_actors.auth.flow import find
from mcp_actors.auth.options import AuthOptions, GrantKind
from mcp_actors.auth.store import CredentialStore, StoreChoice
from mcp_actors.auth.tokens import Tokens
from mcp_actors.auth.xaa import CompanySetup
from mcp_actors.transports.fetching import exchange_once, is_proxied

REDIRECT_URI = "http://localhost:3000/callback"
CLIENT_DOCUMENT = "https://conformance-test.local/client-metadata.json"


class HeadlessPrompter:
    """A person who approves at once and whose browser shows us where it was led."""

    redirect_uri = REDIRECT_URI

    def __init__(self, exchange):
        self._exchange = exchange

    @asynccontextmanager
    async def receive(self, *, fixed, preferred):
        del fixed, preferred
        yield self

    async def visit(self, url):
        status, headers, _ = await self._exchange("GET", url, (), b"", address=None, max_bytes=65536)
        assert 300 <= status < 400, f"the authorization endpoint answered {status}"
        return headers["location"]

    async def show_code(self, code):
        raise AssertionError("nobody to show a code to")


def exchange(environ):
    return partial(exchange_once, environ=environ)


def make_desk(environ, *, prompter=None):
    """A desk that keeps nothing after the process."""
    send = exchange(environ)
    return AuthDesk(
        send,
        environ,
        CredentialStore(StoreChoice.MEMORY),
        prompter=prompter or HeadlessPrompter(send),
        is_proxied=lambda url: is_proxied(url, environ),
    )


def auth_options(scenario, context):
    """What the scenario's context configures."""
    if scenario == "auth/client-credentials-jwt":
        return AuthOptions(
            grant=GrantKind.CLIENT_CREDENTIALS,
            client_id=context["client_id"],
            private_key=context["private_key_pem"],
            signing_algorithm=context["signing_algorithm"],
        )
    if scenario == "auth/client-credentials-basic":
        return AuthOptions(
            grant=GrantKind.CLIENT_CREDENTIALS,
            client_id=context["client_id"],
            client_secret=context["client_secret"],
            auth_method="client_secret_basic",
        )
    if scenario == "auth/wif-jwt-bearer":
        with tempfile.NamedTemporaryFile("w", suffix=".jwt", delete=False) as file:
            file.write(context["valid_jwt"])
        return AuthOptions(grant=GrantKind.WORKLOAD, assertion_file=file.name)
    if scenario == "auth/enterprise-managed-authorization":
        return AuthOptions(grant=GrantKind.XAA, client_id=context["client_id"], client_secret=context["client_secret"])
    if scenario == "auth/pre-registration":
        return AuthOptions(
            client_id=context["client_id"], client_secret=context["client_secret"], issuer=context.get("issuer")
        )
    return AuthOptions(client_metadata_url=CLIENT_DOCUMENT)


async def sign_in_desk(spec, environ):
    """The desk, and who we are towards `spec`, as MCP_CONFORMANCE_SCENARIO and _CONTEXT say."""
    scenario = environ.get("MCP_CONFORMANCE_SCENARIO", "")
    context = json.loads(environ.get("MCP_CONFORMANCE_CONTEXT") or "{}")
    desk = make_desk(environ)
    options = auth_options(scenario, context)
    auth = desk.for_server(spec, options=options)
    if options.grant is GrantKind.XAA:
        await _employ(desk, auth, context)
    return desk, auth


async def _employ(desk, auth, context):
    """Adopt the company's login that the suite hands out, and pin the issuer as an administrator would."""
    company = desk.use_company(CompanySetup(context["idp_issuer"], context["idp_client_id"]))
    provider = AuthServer(issuer=context["idp_issuer"], token_endpoint=context["idp_token_endpoint"])
    await company.adopt(
        Credentials(
            server_url=context["idp_issuer"],
            resource="",
            server=provider,
            grant=GrantKind.AUTHORIZATION_CODE,
            tokens=Tokens("unused", id_token=context["idp_id_token"]),
            identity=company.setup.identity,
        )
    )
    found = await drive(find(auth.errand(None, None)), auth.fetch)
    import attrs

    auth.options = attrs.evolve(auth.options, issuer=found.server.issuer)


def drop_file(options):
    """Remove what `auth_options` wrote."""
    if options.assertion_file:
        Path(options.assertion_file).unlink(missing_ok=True)
