"""Tests of `auth.server_auth`, with the requests and answers of the HTTP library in use."""

from __future__ import annotations

import base64
import logging

import pytest
import trio
from oauth_house import SPEC, House
from oauth_peer import AS, MCP, NOT_FOUND, World, answer, query_of, resource_document
from oauth_wire import META, Server, send

from mcp_actors.auth.jwt import read_claims
from mcp_actors.config.specs import RemoteTarget, ServerSpec
from mcp_actors.errors import AuthFailed, AuthRequired, ConfigError, ConnectFailed

PRM = "https://mcp.example.com/.well-known/oauth-protected-resource/mcp"


async def test_a_server_that_wants_nothing_gets_nothing():
    """No login, no requests but its own."""
    house = House()

    assert await send(house.auth, server := Server((200, []))) == 200

    assert server.seen == [(None, None)]
    assert house.world.log == []


async def test_a_demand_is_met_and_the_request_repeated():
    """401, sign-in, the same request with the token; the next one has it at once (S244, D14, S245)."""
    house, server = House(), Server()

    assert await send(house.auth, server) == 200
    assert await send(house.auth, server) == 200

    assert [token for token, _ in server.seen] == [None, "Bearer access-1", "Bearer access-1"]
    assert len(house.world.visits) == 1


async def test_twenty_calls_send_one_person_once():
    """However many calls want it."""
    house, server = House(), Server()

    async with trio.open_nursery() as nursery:
        for _ in range(20):
            nursery.start_soon(send, house.auth, server)

    assert len(house.world.visits) == 1


@pytest.mark.parametrize("challenge", [[META], []])
async def test_headless_fails_typed_and_names_the_command(challenge):
    """With a challenge or without: at once, nothing is discovered, nobody waits (D22, fault 51)."""
    house = House(has_person=False)

    with pytest.raises(AuthRequired) as caught:
        await send(house.auth, Server((401, challenge)))

    assert caught.value.server == "srv"
    assert "mcp-actors login srv" in str(caught.value)
    assert house.world.log == []


async def test_a_refused_server_is_remembered_across_runs(tmp_path):
    """Within 15 minutes it is not asked again; a sign-in clears that (S250, S254)."""
    with pytest.raises(AuthRequired):
        await send(House(has_person=False, state_dir=tmp_path).auth, Server())
    later = House(has_person=False, state_dir=tmp_path)

    with pytest.raises(AuthRequired, match="a moment ago"):
        await send(later.auth, server := Server())
    assert server.seen == []

    await later.desk.log_in(SPEC, later.world.prompter)
    assert await send(later.auth, server) == 200


async def test_a_stream_that_is_refused_to_a_served_client_shuts_nobody_out(tmp_path):
    """A 401 to the optional GET, after POSTs were served, is not remembered: calls go on (fault 33, S254)."""
    house = House(has_person=False, state_dir=tmp_path)
    server = Server((200, []), (401, [META]), (200, []))

    assert await send(house.auth, server) == 200
    with pytest.raises(AuthRequired):
        await send(house.auth, server, method="GET")

    assert await send(house.auth, server) == 200


async def test_a_stream_that_is_refused_first_is_remembered(tmp_path):
    """The older SSE transport begins with a GET: its 401 counts as any other (S254)."""
    house = House(has_person=False, state_dir=tmp_path)
    with pytest.raises(AuthRequired):
        await send(house.auth, Server(), method="GET")

    with pytest.raises(AuthRequired, match="a moment ago"):
        await send(house.auth, Server(), method="GET")


@pytest.mark.parametrize(
    ("headers", "challenge", "is_passed_on"),
    [
        ({"mcp-session-id": "s"}, [], True),
        ({"mcp-session-id": "s"}, [META], False),
        ({}, [], False),
    ],
)
async def test_a_401_amid_a_session_that_asks_for_nothing_is_passed_on(headers, challenge, is_passed_on):
    """Field 25: servers answer so when they forgot a session; only a challenge, or a handshake refused, shuts out."""
    house = House(has_person=False)
    server = Server((200, []), (401, challenge), (200, []))
    await send(house.auth, server)

    if is_passed_on:
        assert await send(house.auth, server, **headers) == 401
        assert await send(house.auth, server) == 200
    else:
        with pytest.raises(AuthRequired):
            await send(house.auth, server, **headers)


OWN = [
    RemoteTarget(MCP, headers={"authorization": "Bearer mine"}),
    RemoteTarget(MCP, headers_helper="helper"),
    RemoteTarget("https://u:p@mcp.example.com/mcp"),
]


@pytest.mark.parametrize("target", OWN)
def test_configured_credentials_have_no_auth_of_ours(target):
    """Static headers and helpers bypass all of this (S255)."""
    assert House(spec=ServerSpec("srv", target)).auth is None


@pytest.mark.parametrize(
    ("url", "is_ours"),
    [
        (MCP, True),
        ("https://mcp.example.com/other", True),
        ("https://evil.example.com/mcp", False),
        ("https://mcp.example.com:8443/mcp", False),
        ("http://mcp.example.com/mcp", False),
    ],
)
async def test_another_origin_gets_no_token(url, is_ours):
    """D14."""
    house = House()
    await send(house.auth, Server())

    await send(house.auth, server := Server((200, [])), url)

    assert (server.seen[0][0] is not None) is is_ours


async def test_a_refused_token_is_renewed_before_anybody_is_asked():
    """401 with a token: one renewal, one try (S206, D15)."""
    house, server = House(), Server()
    await send(house.auth, server)
    house.world.pages[f"{AS}/token"] = answer({"access_token": "access-2"})
    server.token = "access-2"

    assert await send(house.auth, server) == 200

    assert house.world.forms()[-1]["grant_type"] == "refresh_token"
    assert house.world.forms()[-1]["resource"] == MCP
    assert len(house.world.visits) == 1


async def test_a_server_that_refuses_every_token_is_given_up():
    """No loop: a renewal, then at most three sign-ins, then an error (fault 51)."""
    house = House()
    counter = iter(range(1000))
    house.world.pages[f"{AS}/token"] = lambda _request: answer({"access_token": f"t{next(counter)}"})

    with pytest.raises(AuthFailed, match="in a row"):
        await send(house.auth, server := Server(token="never"))

    assert len(house.world.visits) <= 3
    assert len(server.seen) < 10


async def test_an_outage_of_the_issuer_is_weather_and_keeps_the_login():
    """The call fails, the login stays (fault 59)."""
    house, server = House(), Server()
    await send(house.auth, server)
    house.world.pages[f"{AS}/token"] = answer({}, status=503)
    house.clock.now += 7200

    with pytest.raises(ConnectFailed):
        await send(house.auth, server)

    assert house.auth.keeper.held.tokens.refresh_token == "refresh-1"


async def test_a_new_authorization_server_means_a_new_registration():
    """The resource names another issuer: nothing of the old one is used there (D11)."""
    house, server = House(), Server()
    await send(house.auth, server)
    other = "https://as2.example.com"
    from oauth_peer import server_document

    house.world.pages |= {
        PRM: answer(resource_document(issuer=other)),
        f"{other}/.well-known/oauth-authorization-server": answer(server_document(other)),
        f"{other}/register": answer({"client_id": "second"}, status=201),
        f"{other}/token": answer({"access_token": "second-token"}),
    }
    server.token = "second-token"

    assert await send(house.auth, server) == 200

    sent = [request for request in house.world.log if request.url.startswith(other)]
    assert not any(b"registered-client" in request.body or b"refresh-1" in request.body for request in sent)


async def test_a_rotating_server_that_refuses_every_token_is_given_up():
    """New refresh tokens with each answer make no endless loop either."""
    house = House()
    counter = iter(range(1000))

    def give(_request):
        number = next(counter)
        return answer({"access_token": f"t{number}", "refresh_token": f"r{number}"})

    house.world.pages[f"{AS}/token"] = give

    with pytest.raises(AuthFailed, match="in a row"):
        await send(house.auth, server := Server(token="never"))

    assert len(server.seen) < 10


STEP = (403, ['Bearer error="insufficient_scope", scope="write"'])


async def test_a_step_up_signs_in_for_both_scopes_once():
    """403 insufficient_scope: union, one retry, no refresh (D13, fault 66)."""
    house = House(World({PRM: answer(resource_document(scopes_supported=["read"]))}))
    await send(house.auth, Server())

    assert await send(house.auth, Server(STEP)) == 200

    assert [query_of(url)["scope"] for url in house.world.visits] == ["read", "read write"]
    assert [form["grant_type"] for form in house.world.forms()] == ["authorization_code"] * 2


async def test_a_second_demand_for_the_same_scope_is_an_error():
    """And the failure is remembered: the next call does not send anybody anywhere (S263, fault 66)."""
    house = House()
    await send(house.auth, Server())

    for _ in range(2):
        with pytest.raises(AuthFailed, match="asked for already"):
            await send(house.auth, Server(*[STEP] * 9))

    assert len(house.world.visits) == 2


async def test_ever_new_scopes_end():
    """At most three authorizations for one operation (D13)."""
    house = House()
    await send(house.auth, Server())
    steps = [(403, [f'Bearer error="insufficient_scope", scope="s{number}"']) for number in range(9)]

    with pytest.raises(AuthFailed):
        await send(house.auth, Server(*steps))

    assert len(house.world.visits) == 4


async def test_a_step_up_without_a_person_fails_typed():
    """Unattended: needs-auth, no browser (fault 66)."""
    house = House()
    await send(house.auth, Server())
    house.auth.prompter = None

    with pytest.raises(AuthRequired, match="wants more: write"):
        await send(house.auth, Server(STEP))


async def test_the_command_that_helps_with_a_step_up_is_named_whole():
    """All scopes, those that are held too; they are a server's words, so quoted for a shell (D13)."""
    house = House()
    await send(house.auth, Server())
    house.auth.prompter = None
    greedy = (403, ['Bearer error="insufficient_scope", scope="write $(reboot)"'])

    with pytest.raises(AuthRequired) as caught:
        await send(house.auth, Server(greedy))

    assert caught.value.remedy == "sign in with: mcp-actors login srv --scopes 'write $(reboot)'"


ORIGIN = "https://mcp.example.com"


@pytest.mark.parametrize(("method", "is_guessed"), [("server/discover", True), ("tools/list", False)])
async def test_the_question_for_the_era_is_no_sign_of_a_modern_server(method, is_guessed):
    """A server of 2025-03-26 that publishes nothing is asked for its era as well, and signed in to at the paths of its
    time; one that was found to be modern is not guessed at (D21)."""
    given = answer({"access_token": "access-1", "token_type": "Bearer"})
    pages = {PRM: NOT_FOUND, f"{ORIGIN}/token": given, f"{ORIGIN}/register": answer({"client_id": "c"}, status=201)}
    house = House(World(pages))
    headers = {"mcp-protocol-version": "2026-07-28", "mcp-method": method}

    if is_guessed:
        assert await send(house.auth, Server((401, [])), **headers) == 200
        assert house.world.visits[0].startswith(f"{ORIGIN}/authorize?")
    else:
        with pytest.raises(AuthFailed, match="publishes no metadata"):
            await send(house.auth, Server((401, [])), **headers)


async def test_pinned_scopes_stay_pinned():
    """The setting is named instead (S263)."""
    house = House(oauth={"scopes": ["read"]})
    await send(house.auth, Server())

    with pytest.raises(AuthFailed, match=r"oauth\.scopes"):
        await send(house.auth, Server(STEP))

    assert len(house.world.visits) == 1


@pytest.mark.parametrize("challenges", [[], ['Basic realm="firewall"'], ['Bearer error="invalid_token"']])
async def test_a_bare_403_is_passed_on(challenges):
    """A firewall's refusal is not about us."""
    house = House()
    await send(house.auth, Server())

    assert await send(house.auth, Server((403, challenges))) == 403

    assert len(house.world.visits) == 1


async def test_bound_tokens_get_a_fresh_proof_and_nonce_for_each_attempt():
    """DPoP scheme, ath, another jti; a demanded nonce is used at once and kept (D19)."""
    token = answer({"access_token": "bound", "token_type": "DPoP"})
    nonce = answer({"error": "use_dpop_nonce"}, status=400, dpop_nonce="as-nonce")
    house = House(World({f"{AS}/token": [nonce, token]}))
    wants_dpop = (401, [META.replace("Bearer", "DPoP")])
    wants_nonce = (401, ['DPoP error="use_dpop_nonce"'], ("DPoP-Nonce", "rs-nonce"))
    server = Server(wants_dpop, wants_nonce, token="bound", scheme="DPoP")

    assert await send(house.auth, server) == 200
    assert await send(house.auth, server) == 200

    assert [sent for sent, _ in server.seen] == [None, *["DPoP bound"] * 3]
    proofs = [read_claims(proof) for _, proof in server.seen if proof]
    assert len({proof["jti"] for proof in proofs}) == 3
    assert [proof.get("nonce") for proof in proofs] == [None, "rs-nonce", "rs-nonce"]
    first, second = (dict(request.headers)["DPoP"] for request in house.world.log if request.url == f"{AS}/token")
    assert (read_claims(first).get("nonce"), read_claims(second)["nonce"]) == (None, "as-nonce")


async def test_endless_nonces_end():
    """A server that never takes one is not asked for ever."""
    house = House()
    wants = [(401, ['DPoP error="use_dpop_nonce"'], ("DPoP-Nonce", f"n{number}")) for number in range(50)]

    with pytest.raises(AuthFailed):
        await send(house.auth, server := Server(*wants))

    assert len(server.seen) < 20


CREDENTIALS = {"grant": "client_credentials", "clientId": "id", "clientSecret": "secret-1"}


async def test_client_credentials_need_nobody():
    """Minted when the server wants a token, kept, minted anew before its end (D17)."""
    house, server = House(has_person=False, oauth=CREDENTIALS), Server()

    assert await send(house.auth, server) == 200
    assert await send(house.auth, server) == 200
    assert len(house.world.forms()) == 1
    form = house.world.forms()[0]
    assert (form["grant_type"], form["resource"]) == ("client_credentials", MCP)

    house.clock.now += 3590
    assert await send(house.auth, server) == 200
    assert len(house.world.forms()) == 2


async def test_a_minted_token_that_is_refused_is_minted_once_more():
    """Then it is an error, not a loop."""
    house = House(has_person=False, oauth=CREDENTIALS)
    await send(house.auth, Server())
    counter = iter(range(100))
    house.world.pages[f"{AS}/token"] = lambda _request: answer({"access_token": f"t{next(counter)}"})

    with pytest.raises(AuthFailed):
        await send(house.auth, Server(token="never"))

    assert len(house.world.forms()) <= 4


async def test_a_silent_step_up_is_minted():
    """With the union of scopes, without a person."""
    house = House(has_person=False, oauth=CREDENTIALS)
    await send(house.auth, Server())

    assert await send(house.auth, Server(STEP)) == 200

    assert house.world.forms()[-1]["scope"] == "write"


def jwt(number):
    return ".".join(base64.urlsafe_b64encode(b'{"n":%d}' % number).decode().rstrip("=") for _ in range(3))


async def test_a_file_that_holds_no_token_is_not_sent_anywhere(tmp_path):
    """A configuration that names some other secret file as an assertion gets nothing of it."""
    file = tmp_path / "id_rsa"
    file.write_text("-----BEGIN PRIVATE KEY----- SECRET")
    house = House(has_person=False, oauth={"grant": "workload_identity", "assertionFile": str(file)})

    with pytest.raises(ConfigError, match="no JWT"):
        await send(house.auth, Server())

    assert house.world.log == []


async def test_a_workload_shows_its_platforms_token_and_never_tries_twice(tmp_path):
    """The file is read anew each time; a refusal is final, and no other grant is tried (D20)."""
    file = tmp_path / "token"
    file.write_text(f"{jwt(1)}\n")
    house = House(has_person=False, oauth={"grant": "workload_identity", "assertionFile": str(file)})
    assert await send(house.auth, Server()) == 200
    file.write_text(jwt(2))
    house.clock.now += 4000
    house.world.pages[f"{AS}/token"] = answer({"error": "invalid_grant"}, status=400)

    with pytest.raises(AuthFailed, match="invalid_grant"):
        await send(house.auth, Server())

    forms = house.world.forms()
    assert [form["assertion"] for form in forms] == [jwt(1), jwt(2)]
    assert {form["grant_type"] for form in forms} == {"urn:ietf:params:oauth:grant-type:jwt-bearer"}
    assert all("client_id" not in form for form in forms)


async def test_no_secret_is_shown_anywhere(caplog, tmp_path):
    """Tokens, secrets and codes are in no log, repr, error or status of a whole life (E07, fault 102)."""
    caplog.set_level(logging.DEBUG)
    secrets = ("CANARY-access", "CANARY-refresh", "CANARY-secret", "CANARY-code", "CANARY-header")
    tokens = {"access_token": "CANARY-access", "refresh_token": "CANARY-refresh", "expires_in": 60}
    world = World(
        {
            f"{AS}/register": answer({"client_id": "c", "client_secret": "CANARY-secret"}, status=201),
            f"{AS}/token": [
                answer(tokens),
                answer({"error": "invalid_grant", "error_description": "CANARY-refresh is dead"}, status=400),
            ],
        },
        landing=lambda back: {**back, "code": "CANARY-code"},
    )
    spec = ServerSpec("srv", RemoteTarget(MCP, headers={"X-Api-Key": "CANARY-header"}))
    house = House(world, state_dir=tmp_path, spec=spec)
    server = Server(token="CANARY-access")
    await send(house.auth, server)
    shown = [repr(house.desk), repr(house.auth), repr(house.auth.keeper.held), repr(await house.desk.status(spec))]
    house.auth.prompter = None
    house.clock.now += 100
    with pytest.raises(AuthRequired) as caught:
        await send(house.auth, server)
    shown += [str(caught.value), repr(caught.value), repr(world.log), caplog.text]

    for secret in secrets:
        assert not any(secret in text for text in shown), secret
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert files
    assert not any(secret.encode() in path.read_bytes() for secret in secrets for path in files)
