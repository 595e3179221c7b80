"""Tests of `auth.client_auth`."""

from __future__ import annotations

import base64

import attrs
import pytest
from oauth_peer import AS, Clock

from mcp_actors.auth.client_auth import ASSERTION_TYPE, authenticate, choose_method
from mcp_actors.auth.discovery import AuthServer
from mcp_actors.auth.identity import ClientIdentity
from mcp_actors.auth.jwt import SigningKey, read_claims
from mcp_actors.errors import AuthFailed

SERVER = AuthServer(AS, f"{AS}/token")
PUBLIC = ClientIdentity("id")
SECRET = ClientIdentity("id", client_secret="s")
SIGNED = ClientIdentity("id", private_key=SigningKey.generate().pem())

CHOICES = [
    (PUBLIC, None, "none"),
    (SECRET, None, "client_secret_basic"),
    (SECRET, ("client_secret_post",), "client_secret_post"),
    (SECRET, ("client_secret_post", "client_secret_basic"), "client_secret_basic"),
    (SECRET, ("none",), "client_secret_post"),
    (attrs.evolve(SECRET, auth_method="client_secret_post"), ("client_secret_basic",), "client_secret_post"),
    (attrs.evolve(SECRET, auth_method="none"), None, "none"),
    (SIGNED, ("client_secret_basic",), "private_key_jwt"),
]


@pytest.mark.parametrize(("identity", "taken", "expected"), CHOICES)
def test_the_method_is_as_registered_else_the_best(identity, taken, expected):
    """Registered, then signed, then basic before post (D16)."""
    assert choose_method(identity, attrs.evolve(SERVER, auth_methods=taken)) == expected


def test_an_unknown_method_is_an_error():
    """Nothing is sent where the client cannot be proved."""
    with pytest.raises(AuthFailed, match="tls_client_auth"):
        choose_method(attrs.evolve(SECRET, auth_method="tls_client_auth"), SERVER)


def test_basic_encodes_both_parts_first():
    """Colons and percent signs in id or secret survive (RFC 6749, 2.3.1)."""
    headers, form = authenticate(ClientIdentity("a:b", client_secret="c%d é"), SERVER, Clock().sources)

    assert form == {"client_id": "a:b"}
    scheme, value = dict(headers)["Authorization"].split()
    assert (scheme, base64.b64decode(value)) == ("Basic", b"a%3Ab:c%25d%20%C3%A9")


def test_post_and_none_go_into_the_form():
    """The secret is in the body, never in the URL."""
    post = attrs.evolve(SECRET, auth_method="client_secret_post")

    assert authenticate(post, SERVER, Clock().sources) == ((), {"client_id": "id", "client_secret": "s"})
    assert authenticate(PUBLIC, SERVER, Clock().sources) == ((), {"client_id": "id"})


def test_an_assertion_is_for_the_issuer_and_short_lived():
    """iss = sub = client_id, aud = issuer, a new jti each time; client_id is left out (D17)."""
    clock = Clock()

    _, form = authenticate(SIGNED, SERVER, clock.sources)
    _, again = authenticate(SIGNED, SERVER, clock.sources)

    claims = read_claims(form["client_assertion"])
    assert (claims["iss"], claims["sub"], claims["aud"]) == ("id", "id", AS)
    assert 0 < claims["exp"] - claims["iat"] <= 300
    assert claims["jti"] != read_claims(again["client_assertion"])["jti"]
    assert form["client_assertion_type"] == ASSERTION_TYPE
    assert "client_id" not in form
