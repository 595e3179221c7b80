"""Tests of `auth.flow`."""

from __future__ import annotations

import base64
import hashlib

import attrs
import pytest
from oauth_peer import AS, MCP, Clock, World, answer, query_of, resource_document, server_document

from mcp_actors.auth.challenge import Demand
from mcp_actors.auth.discovery import AuthServer
from mcp_actors.auth.flow import Errand, log_in, read_landing
from mcp_actors.auth.identity import ClientIdentity
from mcp_actors.auth.jwt import SigningKey, read_header
from mcp_actors.auth.options import AuthOptions, DpopUse
from mcp_actors.errors import AuthFailed, ConnectFailed

REDIRECT = "http://localhost:7777/callback"
PRM = "https://mcp.example.com/.well-known/oauth-protected-resource/mcp"
META = f"{AS}/.well-known/oauth-authorization-server"


def errand(**changes):
    base = Errand(MCP, AuthOptions(), Clock().sources, redirect_uri=REDIRECT)
    return attrs.evolve(base, **changes)


def test_a_sign_in_makes_these_requests_in_this_order():
    """Discovery, registration, visit, token; PKCE, state and resource are right (S262, D05-D07, D10)."""
    world = World()

    credentials = world.play(log_in(errand()))

    assert world.urls == [PRM, META, f"{AS}/register", f"{AS}/token"]
    asked, form = query_of(world.visits[0]), world.forms()[0]
    assert asked["response_type"] == "code"
    assert asked["code_challenge_method"] == "S256"
    digest = hashlib.sha256(form["code_verifier"].encode()).digest()
    assert asked["code_challenge"] == base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
    assert 43 <= len(form["code_verifier"]) <= 128
    assert asked["resource"] == form["resource"] == MCP
    assert asked["redirect_uri"] == form["redirect_uri"] == REDIRECT
    assert (form["grant_type"], form["code"], form["client_id"]) == (
        "authorization_code",
        "code-1",
        "registered-client",
    )
    assert "scope" not in asked
    assert credentials.tokens.refresh_token == "refresh-1"
    assert credentials.issuer == AS


@pytest.mark.parametrize("resource", ["https://mcp.example.com", "https://mcp.example.com/", MCP])
def test_the_resource_is_sent_as_published(resource):
    """Byte for byte, in both requests (S262, fault 60)."""
    world = World({PRM: answer(resource_document(resource))})

    world.play(log_in(errand()))

    assert query_of(world.visits[0])["resource"] == world.forms()[0]["resource"] == resource


IDENTITIES = [
    # options, server's document, client id, requests to /register
    ({"client_id": "mine"}, {"client_id_metadata_document_supported": True}, "mine", 0),
    (
        {"client_metadata_url": "https://c.example/me.json"},
        {"client_id_metadata_document_supported": True},
        "https://c.example/me.json",
        0,
    ),
    (
        {"client_metadata_url": "https://c.example/"},
        {"client_id_metadata_document_supported": True},
        "registered-client",
        1,
    ),
    ({"client_metadata_url": "https://c.example/me.json"}, {}, "registered-client", 1),
    ({}, {"client_id_metadata_document_supported": True}, "registered-client", 1),
]


@pytest.mark.parametrize(("options", "document", "client_id", "registrations"), IDENTITIES)
def test_identities_are_settled_in_order(options, document, client_id, registrations):
    """Configured, then a metadata document where it is taken, then registration (S261, D09, fault 61)."""
    world = World({META: answer(server_document(**document))})

    world.play(log_in(errand(options=AuthOptions(**options))))

    assert query_of(world.visits[0])["client_id"] == client_id
    assert world.urls.count(f"{AS}/register") == registrations


def test_without_a_way_to_register_the_setting_is_named():
    """No guessing of /register when metadata exists (fault 61)."""
    world = World({META: answer(server_document(registration_endpoint=None))})

    with pytest.raises(AuthFailed, match=r"oauth\.clientId"):
        world.play(log_in(errand()))

    assert world.visits == []


@pytest.mark.parametrize("methods", [None, [], ["plain"]])
def test_without_pkce_nobody_is_sent_anywhere(methods):
    """A server that does not say S256 is refused (D05), unless configuration says otherwise (S243)."""
    document = server_document(code_challenge_methods_supported=methods)

    world = World({META: answer(document)})
    with pytest.raises(AuthFailed, match="PKCE"):
        world.play(log_in(errand()))
    assert world.visits == []

    world = World({META: answer(document)})
    world.play(log_in(errand(options=AuthOptions(needs_pkce=False))))
    assert query_of(world.visits[0])["code_challenge_method"] == "S256"


SCOPES = [
    # pinned, demanded, resource's, server's, requested
    (None, None, None, None, None),
    (None, None, [], None, None),
    (None, None, ["a", "b"], None, "a b"),
    (None, ("c",), ["a", "b"], None, "c"),
    (("p",), ("c",), ["a", "b"], None, "p"),
    (None, ("c",), None, ["c", "offline_access"], "c offline_access"),
    (("p",), None, None, ["offline_access"], "p offline_access"),
    (None, None, None, ["x", "offline_access"], None),
    (None, ("c",), None, ["x", "y"], "c"),
]


@pytest.mark.parametrize(("pinned", "demanded", "resource", "server", "expected"), SCOPES)
def test_the_first_scope_follows_the_table(pinned, demanded, resource, server, expected):
    """Pinned, challenge, resource, none; never the server's catalogue; offline_access where listed (D12, S260)."""
    pages = {
        PRM: answer(resource_document(scopes_supported=resource)),
        META: answer(server_document(scopes_supported=server)),
    }
    world = World(pages)
    demand = Demand(401, ("bearer",), scope=demanded)

    world.play(log_in(errand(options=AuthOptions(scopes=pinned), demand=demand)))

    assert query_of(world.visits[0]).get("scope") == expected


def test_a_configured_documents_scopes_are_requested():
    """`authServerMetadataUrl`: its `scopes_supported` (S259)."""
    world = World({"https://as.example.com/doc": answer(server_document(scopes_supported=["x", "y"]))})

    world.play(log_in(errand(options=AuthOptions(metadata_url="https://as.example.com/doc"))))

    assert query_of(world.visits[0])["scope"] == "x y"


def test_a_step_up_asks_for_the_union():
    """What was requested before and what is demanded now (D13, fault 66)."""
    world = World()
    first = world.play(log_in(errand(demand=Demand(401, scope=("read",)))))

    step = Demand(403, ("bearer",), error="insufficient_scope", scope=("write",))
    second = world.play(log_in(errand(demand=step, previous=first)))

    assert query_of(world.visits[1])["scope"] == "read write"
    assert second.scope == ("read", "write")
    assert world.urls.count(f"{AS}/register") == 1


def test_another_issuer_gets_nothing_of_the_old_one():
    """The registration is not reused, the scopes neither (D11, fault 67)."""
    world = World()
    first = world.play(log_in(errand(demand=Demand(401, scope=("read",)))))
    other = "https://as2.example.com"
    world.pages[PRM] = answer(resource_document(issuer=other))
    world.pages[f"{other}/.well-known/oauth-authorization-server"] = answer(server_document(other))
    world.pages[f"{other}/register"] = answer({"client_id": "second"}, status=201)
    world.pages[f"{other}/token"] = answer({"access_token": "b"})

    second = world.play(log_in(errand(previous=first, demand=Demand(403, error="insufficient_scope", scope=("w",)))))

    assert second.identity.client_id == "second"
    assert query_of(world.visits[1])["scope"] == "w"
    assert not any(b"registered-client" in request.body for request in world.log if other in request.url)


@pytest.mark.parametrize(
    ("changes", "registrations"),
    [
        ({}, 1),
        ({"redirect_uri": "http://localhost:1/callback"}, 2),
        ({"secret_expires_at": 5.0}, 2),
        ({"issuer": "https://x"}, 2),
    ],
)
def test_a_registration_is_reused_only_where_it_fits(changes, registrations):
    """Another port, an expired secret or another issuer registers anew (faults 64 and 67)."""
    world = World()
    first = world.play(log_in(errand()))
    previous = attrs.evolve(first, identity=attrs.evolve(first.identity, **changes))

    world.play(log_in(errand(previous=previous)))

    assert world.urls.count(f"{AS}/register") == registrations


def test_a_forgotten_registration_is_made_anew_once():
    """invalid_client for a remembered client: register and visit again; a second time is an error (fault 67)."""
    world = World()
    first = world.play(log_in(errand()))
    world.pages[f"{AS}/register"] = answer({"client_id": "new-client"}, status=201)
    world.pages[f"{AS}/token"] = [answer({"error": "invalid_client"}, status=401), answer({"access_token": "b"})]

    second = world.play(log_in(errand(previous=first)))

    assert second.identity.client_id == "new-client"
    world.pages[f"{AS}/token"] = answer({"error": "invalid_client"}, status=401)
    before = len(world.visits)
    with pytest.raises(AuthFailed, match="invalid_client"):
        world.play(log_in(errand(previous=second)))
    assert len(world.visits) == before + 2


SERVER = AuthServer(AS, f"{AS}/token")
PROMISING = attrs.evolve(SERVER, promises_iss=True)


class Refusal(str):
    """What the error says."""

    __slots__ = ()


LANDINGS = [
    # server, query, code or what the error says
    (SERVER, "code=c&state=s", "c"),
    (SERVER, f"code=c&state=s&iss={AS}", "c"),
    (SERVER, "code=c&state=s&iss=https%3A%2F%2Fas.example.com", "c"),
    (PROMISING, f"code=c&state=s&iss={AS}", "c"),
    (PROMISING, "code=c&state=s", Refusal("promises")),
    (SERVER, f"code=c&state=s&iss={AS}/", Refusal("is from")),
    (PROMISING, f"code=c&state=s&iss={AS}/", Refusal("is from")),
    (PROMISING, "code=c&state=s&iss=HTTPS://as.example.com", Refusal("is from")),
    (PROMISING, "code=c&state=s&iss=https://evil", Refusal("is from")),
    (SERVER, "code=c&state=s&iss=", Refusal("is from")),
    (PROMISING, "error=access_denied&error_description=EVIL&state=s&iss=https://evil", Refusal("is from")),
    (SERVER, "error=access_denied&error_description=no+way&state=s", Refusal("access_denied: no way")),
    (SERVER, "code=c", Refusal("state")),
    (SERVER, "code=c&state=other", Refusal("state")),
    (SERVER, "error=x", Refusal("state")),
    (SERVER, "state=s", Refusal("no code")),
    (SERVER, "code=&state=s", Refusal("no code")),
    (SERVER, "code=c&code=d&state=s", Refusal("repeats")),
    (SERVER, "", Refusal("state")),
    (SERVER, "state=s&" + "&".join(["x=1"] * 200), Refusal("usable")),
]


@pytest.mark.parametrize(("server", "query", "expected"), LANDINGS)
def test_a_landing_is_judged_before_its_code_is_used(server, query, expected):
    """State, then iss by the four-row table with plain comparison, then the error, then the code (S266, D07)."""
    url = f"{REDIRECT}?{query}"
    if not isinstance(expected, Refusal):
        assert read_landing(url, server, state="s") == expected
        return
    with pytest.raises(AuthFailed, match=expected) as caught:
        read_landing(url, server, state="s")
    assert "EVIL" not in str(caught.value)


def test_a_landing_that_must_not_be_used_never_reaches_the_token_endpoint():
    """No code goes anywhere before the checks have passed (D08)."""
    world = World(landing=lambda back: {**back, "iss": "https://evil.example.com"})

    with pytest.raises(AuthFailed):
        world.play(log_in(errand()))

    assert world.forms() == []


def test_a_refused_code_is_an_error_with_the_servers_words():
    """The provider's reason is shown, our code is not (fault 55)."""
    said = answer({"error": "invalid_grant", "error_description": "code-1 is spent"}, status=400)

    with pytest.raises(AuthFailed, match="invalid_grant") as caught:
        World({f"{AS}/token": said}).play(log_in(errand()))

    assert "code-1" not in str(caught.value)


def test_an_outage_at_the_token_endpoint_is_weather():
    """A 503 is not a refusal."""
    with pytest.raises(ConnectFailed):
        World({f"{AS}/token": answer({}, status=503)}).play(log_in(errand()))


@pytest.mark.parametrize(
    ("use", "schemes", "is_required", "expected"),
    [
        (DpopUse.AUTO, ("bearer",), False, False),
        (DpopUse.AUTO, ("dpop",), False, True),
        (DpopUse.AUTO, ("bearer", "dpop"), False, False),
        (DpopUse.AUTO, (), True, True),
        (DpopUse.ALWAYS, (), False, True),
        (DpopUse.NEVER, ("dpop",), True, False),
    ],
)
def test_tokens_are_bound_where_the_server_wants_it(use, schemes, is_required, expected):
    """A DPoP challenge or the resource's metadata decide, configuration above both (D19)."""
    world = World({PRM: answer(resource_document(dpop_bound_access_tokens_required=is_required))})

    credentials = world.play(log_in(errand(options=AuthOptions(dpop=use), demand=Demand(401, schemes))))

    assert (credentials.dpop_key is not None) is expected
    assert any(name == "DPoP" for name, _ in world.log[-1].headers) is expected


@pytest.mark.parametrize(
    ("taken", "algorithm"),
    [
        (None, "ES256"),
        ([], "ES256"),
        (["RS256", "ES256"], "ES256"),
        (["ES384", "RS256"], "ES384"),
        (["EdDSA"], "EdDSA"),
        (["RS256"], None),
    ],
)
def test_proofs_are_signed_as_the_server_takes_them(taken, algorithm):
    """Its metadata choose the algorithm; where none of ours will do the sign-in fails before anybody is asked (D19)."""
    document = server_document(**({} if taken is None else {"dpop_signing_alg_values_supported": taken}))
    world = World({META: answer(document)})
    signing_in = log_in(errand(options=AuthOptions(dpop=DpopUse.ALWAYS)))

    if algorithm is None:
        with pytest.raises(AuthFailed, match="DPoP"):
            world.play(signing_in)
        assert world.visits == []
    else:
        stored = world.play(signing_in).dpop_key
        [proof] = [value for name, value in world.log[-1].headers if name == "DPoP"]
        assert read_header(proof)["alg"] == algorithm == SigningKey.load(stored).algorithm


def test_authorization_endpoints_with_a_query_keep_it():
    """Parameters are added to what is there (RFC 6749, 3.1)."""
    world = World({META: answer(server_document(authorization_endpoint=f"{AS}/authorize?tenant=t"))})

    world.play(log_in(errand(options=AuthOptions(client_id="c"))))

    assert query_of(world.visits[0])["tenant"] == "t"


def test_nothing_secret_is_in_the_repr_of_a_sign_in():
    """Verifier, state, code, tokens and secrets stay out of every repr (S354)."""
    world = World({f"{AS}/register": answer({"client_id": "c", "client_secret": "SECRET-1"}, status=201)})

    credentials = world.play(log_in(errand()))

    text = repr((world.log, credentials, errand(previous=credentials)))
    for secret in ("SECRET-1", "access-1", "refresh-1", "code-1", world.forms()[0]["code_verifier"]):
        assert secret not in text


def test_a_client_with_an_unknown_method_sends_nobody_anywhere():
    """What we cannot prove is found out before the visit."""
    world = World(
        {
            f"{AS}/register": answer(
                {"client_id": "c", "client_secret": "s", "token_endpoint_auth_method": "tls_client_auth"}, status=201
            )
        }
    )

    with pytest.raises(AuthFailed, match="tls_client_auth"):
        world.play(log_in(errand()))

    assert world.visits == []


def test_a_remembered_configured_client_is_bound_to_its_issuer():
    """A configured client never counts as a registration."""
    world = World()
    previous = world.play(log_in(errand(options=AuthOptions(client_id="mine"))))
    assert previous.identity == ClientIdentity("mine", issuer=AS)

    world.play(log_in(errand(previous=previous)))

    assert query_of(world.visits[1])["client_id"] == "registered-client"
