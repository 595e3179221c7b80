"""An MCP server on loopback that wants a login, with its authorization server, which misbehaves on demand; a person who
signs in there, and a fleet with that server in it."""

from __future__ import annotations

import json
from contextlib import asynccontextmanager
from urllib.parse import parse_qsl, urlencode

import trio

from mcp_actors.auth.loopback import open_landing
from mcp_actors.config.specs import RemoteTarget, ServerSpec
from mcp_actors.fleet.signing import make_desk
from mcp_actors.runtime import open_runtime
from mcp_actors.testing.http_server import HttpAnswer, HttpOptions, open_http_server
from mcp_actors.testing.synthetic import synthetic_server
from mcp_actors.transports.fetching import exchange_once

# Where a desk keeps logins in files, as others then find them.
IN_FILES = {"MCP_ACTORS_CREDENTIALS_STORE": "file"}


class Site:
    """What it gives is in its attributes; change them to misbehave."""

    def __init__(self):
        self.origin = ""
        self.url = ""
        self.log = []
        self.count = 0
        # Access tokens that are taken now.
        self.good = set()
        self.refresh = None
        self.lifetime = 3600
        # Scopes that the last token has, and what a message needs: method -> scope.
        self.granted = ""
        self.needed = {}
        # What the MCP server was told, message by message.
        self.heard = []
        # Whether no token does, whatever was given.
        self.is_closed = False
        # Maps path -> what is answered instead.
        self.pages = {}

    def answer(self, document, status=200, **headers):
        pairs = tuple((name.replace("_", "-"), value) for name, value in headers.items())
        return HttpAnswer(status, json.dumps(document).encode(), headers=pairs)

    def intercept(self, request):
        self.log.append(f"{request.method} {request.path}")
        page = self.pages.get(request.path)
        if page is not None:
            return page(request) if callable(page) else page
        if request.path == "/.well-known/oauth-protected-resource/mcp":
            return self.answer({"resource": self.url, "authorization_servers": [self.origin]})
        if request.path == "/.well-known/oauth-authorization-server":
            return self.answer(self.metadata())
        act = {"/register": self.register, "/authorize": self.authorize, "/token": self.token, "/revoke": self.revoke}
        if request.path in act:
            return act[request.path](request)
        place = f'resource_metadata="{self.origin}/.well-known/oauth-protected-resource/mcp"'
        if self.is_closed or request.headers.get("authorization", "").removeprefix("Bearer ") not in self.good:
            return self.answer({"error": "invalid_token"}, 401, www_authenticate=f"Bearer {place}")
        message = json.loads(request.body) if request.body else {}
        self.heard.append(message)
        wanted = self.needed.get(message.get("method"), "")
        if wanted not in ("", *self.granted.split()):
            challenge = f'Bearer error="insufficient_scope", scope="{wanted}", {place}'
            return self.answer({"error": "insufficient_scope"}, 403, www_authenticate=challenge)
        return None

    @property
    def posts(self):
        """How often the MCP server was asked anything."""
        return self.log.count("POST /mcp")

    def metadata(self):
        return {
            "issuer": self.origin,
            "authorization_endpoint": f"{self.origin}/authorize",
            "token_endpoint": f"{self.origin}/token",
            "registration_endpoint": f"{self.origin}/register",
            "revocation_endpoint": f"{self.origin}/revoke",
            "code_challenge_methods_supported": ["S256"],
        }

    def register(self, request):
        return self.answer({"client_id": "site-client"}, 201)

    def authorize(self, request):
        asked = dict(parse_qsl(request.query))
        self.granted = asked.get("scope", "")
        back = urlencode({"code": "site-code", "state": asked["state"], "iss": self.origin})
        return HttpAnswer(302, headers=(("location", f"{asked['redirect_uri']}?{back}"),))

    def token(self, request):
        form = dict(parse_qsl(request.body.decode()))
        if form["grant_type"] == "refresh_token" and form["refresh_token"] != self.refresh:
            self.good, self.refresh = set(), None
            return self.answer({"error": "invalid_grant"}, 400)
        return self.give()

    def give(self):
        self.count += 1
        self.good = {f"site-access-{self.count}"}
        self.refresh = f"site-refresh-{self.count}"
        document = {"access_token": f"site-access-{self.count}", "refresh_token": self.refresh, "token_type": "Bearer"}
        return self.answer(document if self.lifetime is None else {**document, "expires_in": self.lifetime})

    def revoke(self, request):
        self.good, self.refresh = set(), None
        return self.answer({})


@asynccontextmanager
async def open_site():
    """Serve a site while the block runs."""
    site = Site()
    options = HttpOptions(intercept=site.intercept)
    async with open_http_server(synthetic_server(tools=2), options=options) as url:
        site.url, site.origin = url, url.removesuffix("/mcp")
        yield site


FILES = {"MCP_ACTORS_CREDENTIALS_STORE": "file"}
HELLO = {"text": "hello"}


class Browser:
    """A person whose browser follows the redirect to our listener."""

    @asynccontextmanager
    async def receive(self, *, fixed, preferred):
        async with open_landing(self._go, fixed=fixed, preferred=preferred) as landing:
            yield landing

    async def _go(self, url, landing):
        _, headers, _ = await exchange_once("GET", url, (), b"", address=None, max_bytes=65536, environ={})
        landed = await exchange_once("GET", headers["location"], (), b"", address=None, max_bytes=65536, environ={})
        assert (landed[0], b"close this page" in landed[2]) == (200, True)

    async def show_code(self, code):
        raise AssertionError


def remote(site, **block):
    return ServerSpec("srv", RemoteTarget(site.url), raw={"oauth": block} if block else {})


def elsewhere(state_dir):
    """A desk of its own, as another process would have."""
    return make_desk(IN_FILES, state_dir=state_dir)


@asynccontextmanager
async def fleet(site, state_dir, *more, sign_in=None, **block):
    """The site as the server `srv`, with this ``oauth`` block, and more servers."""
    specs = [remote(site, **block), *more]
    with trio.fail_after(30):
        async with open_runtime(specs, environ=FILES, state_dir=state_dir, sign_in=sign_in) as runtime:
            runtime.waker.interval = 0.01
            await runtime.wait_ready()
            yield runtime


async def wait_state(runtime, state):
    while runtime.server("srv").status.state != state:
        await runtime.wait_published()


def tool_of(runtime):
    return runtime.server("srv").tools[0].callable_name
