"""What tests of the auth room share: time and chance by hand, flows played without sockets, and an authorization server
that misbehaves on demand."""

from __future__ import annotations

import json
from contextlib import asynccontextmanager
from urllib.parse import parse_qsl, urlencode, urlsplit

import attrs

from mcp_actors.auth.messages import Sources, Visit, WebAnswer

MCP = "https://mcp.example.com/mcp"
AS = "https://as.example.com"


class Clock:
    """Seconds since the epoch, moved by hand; and chance without chance."""

    def __init__(self, now=1_000_000.0):
        self.now = now
        self.count = 0

    def token(self, size):
        self.count += 1
        return f"r{self.count:04d}".ljust(-(-size * 4 // 3), "x")

    @property
    def sources(self):
        return Sources(lambda: self.now, self.token)


def answer(document=None, status=200, body=None, **headers):
    data = json.dumps(document).encode() if body is None else body
    fixed = {"content-type": "application/json"}
    return WebAnswer(status, {**fixed, **{name.replace("_", "-"): value for name, value in headers.items()}}, data)


NOT_FOUND = answer(status=404, body=b"not found")


def form_of(request):
    """The form in a request's body."""
    return dict(parse_qsl(request.body.decode(), keep_blank_values=True))


def query_of(url):
    return dict(parse_qsl(urlsplit(url).query, keep_blank_values=True))


def server_document(issuer=AS, **more):
    return {
        "issuer": issuer,
        "authorization_endpoint": f"{issuer}/authorize",
        "token_endpoint": f"{issuer}/token",
        "registration_endpoint": f"{issuer}/register",
        "revocation_endpoint": f"{issuer}/revoke",
        "code_challenge_methods_supported": ["S256"],
        **more,
    }


def resource_document(resource=MCP, issuer=AS, **more):
    return {"resource": resource, "authorization_servers": [issuer], **more}


class World:
    """Answers requests out of a table, and visits by approving them. Everything that was asked is in `log`."""

    def __init__(self, pages=None, *, landing=None):
        # Maps URL -> answer, list of answers (one each, the last one for ever), or a function of the request.
        self.pages = {
            "https://mcp.example.com/.well-known/oauth-protected-resource/mcp": answer(resource_document()),
            f"{AS}/.well-known/oauth-authorization-server": answer(server_document()),
            f"{AS}/register": answer({"client_id": "registered-client"}, status=201),
            f"{AS}/token": answer({"access_token": "access-1", "expires_in": 3600, "refresh_token": "refresh-1"}),
            f"{AS}/revoke": answer({}),
            **(pages or {}),
        }
        self.log = []
        self.visits = []
        self.landing = landing

    def answer(self, request):
        self.log.append(request)
        page = self.pages.get(request.url, NOT_FOUND)
        if isinstance(page, list):
            page = page.pop(0) if len(page) > 1 else page[0]
        return page(request) if callable(page) else page

    def visit(self, url):
        self.visits.append(url)
        asked = query_of(url)
        back = {"code": "code-1", "state": asked["state"]}
        if self.landing is not None:
            back = self.landing(back)
        return f"{asked['redirect_uri']}?{urlencode(back)}"

    @property
    def urls(self):
        return [request.url for request in self.log]

    def forms(self, url=f"{AS}/token"):
        return [form_of(request) for request in self.log if request.url == url]

    def play(self, flow):
        """Run a flow to its end."""
        try:
            step = next(flow)
            while True:
                step = flow.send(self.visit(step.url) if isinstance(step, Visit) else self.answer(step))
        except StopIteration as end:
            return end.value

    async def fetch(self, request):
        return self.answer(request)

    @property
    def prompter(self):
        return _Prompter(self)


@attrs.define
class _Prompter:
    world: World
    redirect_uri: str = "http://localhost:7777/callback"
    codes: list = attrs.field(factory=list)

    @asynccontextmanager
    async def receive(self, *, fixed, preferred):
        yield attrs.evolve(self, redirect_uri=fixed or preferred or self.redirect_uri)

    async def visit(self, url):
        return self.world.visit(url)

    async def show_code(self, code):
        self.codes.append(code)
