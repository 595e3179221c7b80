"""Tests of `auth.xaa`: a company's word, end to end."""

from __future__ import annotations

import json

import pytest
from oauth_peer import AS, MCP, Clock, World, answer, query_of, resource_document, server_document
from oauth_wire import Server, send

from mcp_actors.auth.desk import AuthDesk
from mcp_actors.auth.pkce import b64url
from mcp_actors.auth.store import CredentialStore, StoreChoice
from mcp_actors.auth.xaa import CompanySetup, read_id_jag
from mcp_actors.config.specs import RemoteTarget, ServerSpec
from mcp_actors.errors import AuthFailed, AuthRequired, ConnectFailed

IDP = "https://idp.example.com"
SETUP = CompanySetup(IDP, "idp-client", client_secret="idp-secret")
OAUTH = {"xaa": True, "issuer": AS, "clientId": "as-client", "clientSecret": "as-secret"}
ID_JAG = "urn:ietf:params:oauth:token-type:id-jag"


def jwt(claims, **header):
    parts = ({"alg": "ES256", **header}, claims)
    return ".".join([*(b64url(json.dumps(part).encode()) for part in parts), "c2ln"])


def jag(now=1_000_000.0, aud=AS, typ="oauth-id-jag+jwt", life=300):
    return jwt({"aud": aud, "exp": now + life, "iss": IDP}, typ=typ)


class Office:
    """An MCP server, its authorization server, and a company's identity provider."""

    def __init__(self, tmp_path=None, oauth=OAUTH):
        self.clock = Clock()
        self.token_answers = {IDP: self.idp_token, AS: self.as_token}
        self.world = World(
            {
                f"{IDP}/.well-known/oauth-authorization-server": answer(
                    server_document(IDP, scopes_supported=["openid", "email"])
                ),
                f"{IDP}/token": lambda request: self.token_answers[IDP](request),
                f"{AS}/token": lambda request: self.token_answers[AS](request),
            }
        )
        self.desk = AuthDesk(
            self.exchange,
            {},
            CredentialStore(StoreChoice.MEMORY),
            state_dir=tmp_path,
            resolve=self.resolve,
            sources=self.clock.sources,
        )
        self.company = self.desk.company.use(SETUP)
        self.auth = self.desk.for_server(ServerSpec("srv", RemoteTarget(MCP), raw={"oauth": oauth}))
        self.minted = 0

    async def resolve(self, host):
        return ["93.184.216.34"]

    async def exchange(self, method, url, headers, body, *, address, max_bytes):
        from mcp_actors.auth.messages import Purpose, WebRequest

        said = self.world.answer(WebRequest(Purpose.TOKEN, url, method, tuple(headers), body))
        return said.status, said.headers, said.body

    def idp_token(self, request):
        from oauth_peer import form_of

        if "token-exchange" in form_of(request)["grant_type"]:
            return answer({"access_token": jag(self.clock.now), "issued_token_type": ID_JAG, "token_type": "N_A"})
        token = jwt({"exp": self.clock.now + 3600, "sub": "me"})
        return answer({"access_token": "idp", "id_token": token, "refresh_token": "idp-refresh", "expires_in": 3600})

    def as_token(self, request):
        self.minted += 1
        return answer({"access_token": f"xaa-{self.minted}", "expires_in": 600, "refresh_token": "never-kept"})

    async def sign_in(self):
        await self.company.log_in(self.world.prompter)


async def test_one_company_login_opens_a_server_without_a_page():
    """Legs 0 to 2 with the parameters that the extension wants (S270, S271, S273, S276, D18)."""
    office = Office()
    await office.sign_in()

    assert await send(office.auth, server := Server(token="xaa-1")) == 200

    assert len(office.world.visits) == 1
    asked = query_of(office.world.visits[0])
    assert (asked["client_id"], asked["scope"]) == ("idp-client", "openid")
    assert "resource" not in asked
    exchange = office.world.forms(f"{IDP}/token")[1]
    assert exchange["requested_token_type"] == ID_JAG
    assert (exchange["audience"], exchange["resource"]) == (AS, MCP)
    assert exchange["subject_token_type"] == "urn:ietf:params:oauth:token-type:id_token"
    redeem = office.world.forms()[0]
    assert redeem["grant_type"] == "urn:ietf:params:oauth:grant-type:jwt-bearer"
    assert redeem["assertion"] == jag(office.clock.now)
    assert [sent for sent, _ in server.seen] == [None, "Bearer xaa-1"]


async def test_an_expired_token_is_minted_anew_silently():
    """Legs 1 and 2 again; no refresh token of the server is used, nobody is asked (S277)."""
    office = Office()
    await office.sign_in()
    await send(office.auth, Server(token="xaa-1"))
    office.clock.now += 700

    assert await send(office.auth, Server(token="xaa-2")) == 200

    assert len(office.world.visits) == 1
    assert {form["grant_type"][-10:] for form in office.world.forms()} == {"jwt-bearer"}


async def test_an_expired_id_token_is_renewed_silently():
    """With the provider's refresh token (S272)."""
    office = Office()
    await office.sign_in()
    office.clock.now += 4000

    assert await send(office.auth, Server(token="xaa-1")) == 200

    grants = [form["grant_type"] for form in office.world.forms(f"{IDP}/token")]
    assert grants[:2] == ["authorization_code", "refresh_token"]


async def test_without_a_company_login_the_command_is_named():
    """Typed, at once; ordinary OAuth is not tried (S280)."""
    office = Office()

    with pytest.raises(AuthRequired, match="xaa login"):
        await send(office.auth, Server())

    assert office.world.visits == []
    assert not any("register" in url for url in office.world.urls)


async def test_another_issuer_gets_nothing():
    """The company's word goes to the configured authorization server and to no other (S278)."""
    office = Office()
    await office.sign_in()
    evil = "https://evil.example.com"
    office.world.pages |= {
        "https://mcp.example.com/.well-known/oauth-protected-resource/mcp": answer(resource_document(issuer=evil)),
        f"{evil}/.well-known/oauth-authorization-server": answer(server_document(evil)),
    }
    before = len(office.world.log)

    with pytest.raises(AuthFailed, match="is configured"):
        await send(office.auth, Server())

    assert not any(url.startswith((evil, f"{IDP}/token")) for url in office.world.urls[before:])


async def test_an_issuer_must_be_configured():
    """Without one, a server could name any."""
    office = Office(oauth={"xaa": True, "clientId": "as-client"})
    await office.sign_in()

    with pytest.raises(AuthFailed, match=r"oauth\.issuer"):
        await send(office.auth, Server())


async def test_a_denial_drops_the_company_login():
    """4xx: the person must be seen again (S280)."""
    office = Office()
    await office.sign_in()
    office.token_answers[IDP] = lambda _request: answer({"error": "invalid_grant"}, status=400)

    with pytest.raises(AuthRequired, match="said no"):
        await send(office.auth, Server())
    with pytest.raises(AuthRequired, match="missing or has ended"):
        await send(office.auth, Server())


async def test_an_outage_keeps_the_company_login():
    """5xx: later (S280)."""
    office = Office()
    await office.sign_in()
    usual = office.token_answers[IDP]
    office.token_answers[IDP] = lambda _request: answer({}, status=503)
    with pytest.raises(ConnectFailed):
        await send(office.auth, Server())
    office.token_answers[IDP] = usual

    assert await send(office.auth, Server(token="xaa-1")) == 200


async def test_a_refusal_of_the_server_is_final():
    """Leg 2 says no: an error, and nothing else is tried (S280)."""
    office = Office()
    await office.sign_in()
    office.token_answers[AS] = lambda _request: answer({"error": "invalid_grant"}, status=400)

    with pytest.raises(AuthFailed, match="invalid_grant"):
        await send(office.auth, Server())

    assert len(office.world.forms()) == 1


ANSWERS = [
    (answer({"access_token": jag(), "issued_token_type": ID_JAG, "token_type": "N_A"}), None),
    (answer({"access_token": jag(typ="OAUTH-ID-JAG+JWT"), "issued_token_type": ID_JAG, "token_type": "n_a"}), None),
    (answer({"access_token": jag(aud=[AS, "x"]), "issued_token_type": ID_JAG}), None),
    (answer({"access_token": jag(aud=f"{AS}/"), "issued_token_type": ID_JAG}), None),
    (answer({"access_token": jag(), "issued_token_type": "urn:x"}), "something else"),
    (answer({"access_token": jag()}), "something else"),
    (answer({"access_token": "opaque", "issued_token_type": ID_JAG}), "no ID-JAG"),
    (answer({"access_token": jag(typ="JWT"), "issued_token_type": ID_JAG}), "no ID-JAG"),
    (answer({"access_token": jag(aud="https://x"), "issued_token_type": ID_JAG}), "another authorization server"),
    (answer({"access_token": jag(life=-1), "issued_token_type": ID_JAG}), "expired"),
    (answer({"error": "invalid_grant"}, status=400), "invalid_grant"),
    (answer({"error": "invalid_grant"}), "invalid_grant"),
]


@pytest.mark.parametrize(("said", "fault"), ANSWERS)
def test_an_id_jag_is_looked_at_before_it_is_used(said, fault):
    """Type, audience and end, for early errors (S274, S275)."""
    result = read_id_jag(said, audience=AS, now=1_000_000.0, secrets=())

    assert isinstance(result, str) if fault is None else fault in str(result)


async def test_nothing_of_the_companys_word_is_shown():
    """No ID token, ID-JAG or secret in reprs and errors (E07)."""
    office = Office()
    await office.sign_in()
    await send(office.auth, Server(token="xaa-1"))

    text = repr((office.desk, office.company, office.auth, office.auth.minter, office.world.log))
    for secret in ("idp-secret", "as-secret", "idp-refresh", "xaa-1", jag(office.clock.now)):
        assert secret not in text
