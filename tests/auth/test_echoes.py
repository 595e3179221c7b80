"""What is told of authorization servers that repeat all they were sent: every kind of request, in every way."""

from __future__ import annotations

import base64
import json
import logging
from urllib.parse import unquote

import attrs
import pytest
from oauth_peer import AS, MCP, Clock, World, answer, form_of, server_document
from oauth_wire import Server, send

from mcp_actors.auth.credentials import Credentials
from mcp_actors.auth.desk import AuthDesk
from mcp_actors.auth.device import log_in_by_code
from mcp_actors.auth.discovery import AuthServer
from mcp_actors.auth.driving import drive, drive_visiting
from mcp_actors.auth.fetcher import SafeFetcher
from mcp_actors.auth.flow import Errand, log_in
from mcp_actors.auth.identity import ClientIdentity
from mcp_actors.auth.messages import Purpose, WebRequest
from mcp_actors.auth.options import AuthOptions, DpopUse, GrantKind
from mcp_actors.auth.refreshing import Keeper
from mcp_actors.auth.store import CredentialStore, StoreChoice
from mcp_actors.auth.tokens import Tokens
from mcp_actors.auth.upkeep import mint
from mcp_actors.auth.xaa import exchange_id_token, redeem
from mcp_actors.config.specs import RemoteTarget, ServerSpec
from mcp_actors.errors import McpActorsError

META = f"{AS}/.well-known/oauth-authorization-server"
# With what URLs, JSON and HTML escape each in their own way.
SECRET = "client/s3cret+x&y"
LOGIN = Credentials(
    MCP,
    MCP,
    AuthServer(AS, f"{AS}/token"),
    GrantKind.AUTHORIZATION_CODE,
    Tokens("access-s3cret", expires_at=5.0, refresh_token="refresh/s3cret+x", id_token="id-s3cret-token"),
    ClientIdentity("mine", client_secret=SECRET),
)


def sent_with(request):
    """What a request holds that nobody may be told."""
    form = form_of(request) if request.body[:1] != b"{" else {}
    public = ("grant_type", "client_id", "redirect_uri", "resource", "scope", "audience")
    secrets = [value for name, value in form.items() if name not in public and not name.endswith("_type")]
    for name, value in request.headers:
        if name == "Authorization":
            secrets += [value.partition(" ")[2], unquote(base64.b64decode(value[6:]).decode().partition(":")[2])]
        if name == "DPoP":
            secrets.append(value)
    return secrets


def repeated(request):
    headers = [f"{name}: {value}" for name, value in request.headers]
    return "\n".join([*headers, request.body.decode(), *sent_with(request)])


WAYS = {
    "described": lambda said: answer({"error": "invalid_request", "error_description": said}, status=400),
    "coded": lambda said: answer({"error": said}, status=400),
    "with status 200": lambda said: answer({"error": "no", "error_description": said}),
    "in an outage": lambda said: answer({"error": "server_error", "message": said}, status=503),
    "as text": lambda said: answer(status=400, body=said.encode()),
    "far behind": lambda said: answer(status=400, body=b" " * 1000 + said.encode()),
    "as JSON that escapes": lambda said: answer(status=400, body=json.dumps([said]).replace("/", "\\/").encode()),
    "as .NET's": lambda said: answer(status=400, body=json.dumps([said]).replace("+", "\\u002B").encode()),
    "as a page": lambda said: answer(status=500, body=f"<p>{said.replace('&', '&amp;')}</p>".encode()),
    "with new tokens": lambda said: answer(
        {"error": "no", "access_token": "fresh-s3cret", "error_description": f"fresh-s3cret {said}"}, status=400
    ),
    "unreadably with new tokens": lambda said: answer(status=400, body=f"access_token=fresh-s3cret&{said}".encode()),
    "as where to go": lambda said: answer(status=302, location=f"/{said}".replace("\n", "/")),
    "as where to go from here": lambda said: answer(status=307, location=f"https://{said}".replace("\n", "/")),
}


class Echo:
    """The world, in which one URL repeats what it is sent, in one way."""

    def __init__(self, url, way, pages=None):
        self.world, self.url, self.way = World(pages), url, way
        self.clock = Clock()
        self.secrets = ["fresh-s3cret"]
        self.has_echoed = False
        self.fetch = SafeFetcher(MCP, self.exchange, self.resolve)

    async def resolve(self, host):
        return ["93.184.216.34"]

    async def exchange(self, method, url, headers, body, *, address, max_bytes):
        request = WebRequest(Purpose.TOKEN, url, method, tuple(headers), body)
        said = self.world.answer(request)
        if url == self.url:
            self.secrets += sent_with(request)
            self.has_echoed = True
            said = WAYS[self.way](repeated(request))
        return said.status, said.headers, said.body

    def errand(self, **options):
        redirect = "http://localhost:7777/callback"
        return Errand(MCP, AuthOptions(**options), self.clock.sources, redirect_uri=redirect)


MINE = {"client_id": "mine", "client_secret": SECRET}
DEVICE = answer(
    {"device_code": "device-s3cret", "user_code": "AB-CD", "verification_uri": f"{AS}/code", "expires_in": 20}
)


async def sign_in(echo, **options):
    await drive_visiting(log_in(echo.errand(**MINE, **options)), echo.fetch, echo.world.prompter)


async def sign_in_by_code(echo):
    await log_in_by_code(echo.errand(**MINE), echo.fetch, echo.world.prompter)


async def renew(echo):
    keeper = Keeper("slot", CredentialStore(StoreChoice.MEMORY), echo.fetch, echo.clock.sources)
    await keeper.adopt(LOGIN)
    await keeper.usable()


async def renew_while_it_serves(echo):
    alive = attrs.evolve(LOGIN.tokens, issued_at=echo.clock.now - 99, expires_at=echo.clock.now + 1)
    keeper = Keeper("slot", CredentialStore(StoreChoice.MEMORY), echo.fetch, echo.clock.sources)
    await keeper.adopt(attrs.evolve(LOGIN, tokens=alive))
    await keeper.usable()


async def mint_by_secret(echo):
    await drive(mint(echo.errand(grant=GrantKind.CLIENT_CREDENTIALS, **MINE)), echo.fetch)


async def mint_by_platform(echo):
    await drive(mint(echo.errand(grant=GrantKind.WORKLOAD), assertion="platform/s3cret+x"), echo.fetch)


async def exchange_leg(echo):
    flow = exchange_id_token(LOGIN, "id-s3cret", audience=AS, resource=MCP, scope=(), sources=echo.clock.sources)
    print(await drive(flow, echo.fetch))  # what it returns is told as well


async def redeem_leg(echo):
    from mcp_actors.auth.flow import find

    errand = echo.errand(**MINE)
    found = await drive(find(errand), echo.fetch)
    await drive(redeem(errand, found, "jag/s3cret+x"), echo.fetch)


async def register(echo):
    await drive_visiting(log_in(echo.errand()), echo.fetch, echo.world.prompter)


ASKING = {
    "a code": (sign_in, f"{AS}/token", {}),
    "a code, posted secret": (sign_in, f"{AS}/token", {META: ["client_secret_post"]}),
    "a code, with a proof": (lambda echo: sign_in(echo, dpop=DpopUse.ALWAYS), f"{AS}/token", {}),
    "a device code": (sign_in_by_code, f"{AS}/device", {}),
    "a typed code": (sign_in_by_code, f"{AS}/token", {f"{AS}/device": DEVICE}),
    "a refresh token": (renew, f"{AS}/token", {}),
    "a refresh token, early": (renew_while_it_serves, f"{AS}/token", {}),
    "a secret": (mint_by_secret, f"{AS}/token", {}),
    "an assertion": (mint_by_platform, f"{AS}/token", {}),
    "an ID token": (exchange_leg, f"{AS}/token", {}),
    "an ID-JAG": (redeem_leg, f"{AS}/token", {}),
    "nothing": (register, f"{AS}/register", {}),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("asking", ASKING)
async def test_no_answer_makes_us_tell_what_was_sent(asking, way, caplog, capsys, autojump_clock):
    """Not in the error, not in its causes, not in the log at DEBUG (fault 102, S354)."""
    ask, url, pages = ASKING[asking]
    methods = {"token_endpoint_auth_methods_supported": pages[META]} if META in pages else {}
    document = server_document(**methods, device_authorization_endpoint=f"{AS}/device")
    echo = Echo(url, way, {**pages, META: answer(document)})
    caplog.set_level(logging.DEBUG)

    try:
        await ask(echo)
    except McpActorsError as error:
        seen = f"{error} {error!r} {error.__cause__} {attrs.asdict(error)}"
    else:
        seen = ""

    assert echo.has_echoed
    seen += caplog.text + capsys.readouterr().out
    assert [secret for secret in echo.secrets if secret in seen] == []
    assert "s3cret" not in seen


@pytest.mark.parametrize(
    "challenge",
    [
        'Bearer resource_metadata="https://mcp.example.com/{}"',
        'Bearer resource_metadata="http://{}.example.com/"',
        'Bearer resource_metadata="{}"',
        'Bearer error="insufficient_scope", scope="{}"',
        'Bearer error="{0}", error_description="{0}", scope="{0}"',
    ],
)
@pytest.mark.parametrize("has_person", [False, True])
async def test_a_challenge_that_repeats_the_token_makes_us_tell_nothing(challenge, has_person, caplog):
    """A server's demand is told without the token that it answers, its remedy too (S245, S263)."""
    caplog.set_level(logging.DEBUG)
    world, clock = World(), Clock()
    desk = AuthDesk(
        None,
        {},
        CredentialStore(StoreChoice.MEMORY),
        prompter=world.prompter if has_person else None,
        sources=clock.sources,
    )
    auth = desk.for_server(ServerSpec("srv", RemoteTarget(MCP)))
    auth.fetch = world.fetch
    alive = attrs.evolve(LOGIN.tokens, expires_at=clock.now + 999, refresh_token=None)
    await auth.keeper.adopt(attrs.evolve(LOGIN, tokens=alive, scope=("read",)))
    answers = [(403 if "insufficient" in challenge else 401, [challenge.format("access-s3cret")])] * 9

    try:
        await send(auth, Server(*answers))
    except McpActorsError as error:
        seen = f"{error} {attrs.asdict(error)}"
    else:
        seen = ""

    assert "s3cret" not in seen + caplog.text


def landing(**said):
    return lambda back: {"state": back["state"], **{name: text.format(**back) for name, text in said.items()}}


@pytest.mark.parametrize(
    "said",
    [
        landing(error="access_denied", error_description="{state} {code}", code="{code}-s3cret"),
        landing(error="{state}"),
        landing(iss="https://{state}.example.com/"),
    ],
)
async def test_a_redirect_that_repeats_what_it_was_sent_with_makes_us_tell_nothing(said, caplog):
    """Neither `state` nor a code stands in the error (S266)."""
    caplog.set_level(logging.DEBUG)
    world = World(landing=said)
    errand = Errand(MCP, AuthOptions(**MINE), Clock().sources, redirect_uri="http://localhost:7777/callback")

    with pytest.raises(McpActorsError) as caught:
        await drive_visiting(log_in(errand), world.fetch, world.prompter)

    assert "r000" not in str(caught.value) + caplog.text
    assert "s3cret" not in str(caught.value)
