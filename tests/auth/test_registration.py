"""Tests of `auth.registration`."""

from __future__ import annotations

import json

import pytest
from oauth_peer import AS, World, answer

from mcp_actors.auth.discovery import AuthServer
from mcp_actors.auth.registration import register
from mcp_actors.errors import AuthFailed, ConnectFailed

SERVER = AuthServer(AS, f"{AS}/token", registration_endpoint=f"{AS}/register")


def play(said, **options):
    world = World({f"{AS}/register": said})
    identity = world.play(register(SERVER, redirect_uri="http://localhost:1/callback", now=5.0, **options))
    return identity, json.loads(world.log[0].body)


def test_what_we_say_of_ourselves():
    """application_type, grant types with refresh_token, nothing empty (D10, fault 63)."""
    _, document = play(answer({"client_id": "c"}))

    assert document["application_type"] == "native"
    assert document["grant_types"] == ["authorization_code", "refresh_token"]
    assert document["redirect_uris"] == ["http://localhost:1/callback"]
    assert "scope" not in document
    assert all(value not in ("", None, []) for value in document.values())


def test_scopes_are_one_text():
    """Never a list, never `scopes` (fault 63)."""
    _, document = play(answer({"client_id": "c"}), scope=("a", "b"))

    assert document["scope"] == "a b"


ODD = {
    "client_id": "c",
    "logo_uri": "",
    "contacts": None,
    "grant_types": None,
    "token_endpoint_auth_method": "",
    "client_secret_expires_at": 0,
}


@pytest.mark.parametrize("status", [200, 201])
def test_null_and_empty_members_mean_absent(status):
    """And 0 never expires (fault 62)."""
    identity, _ = play(answer(ODD, status=status))

    assert (identity.client_id, identity.client_secret, identity.auth_method) == ("c", None, None)
    assert identity.secret_expires_at is None
    assert identity.issuer == AS


@pytest.mark.parametrize(
    ("said", "error"),
    [
        (answer({"error": "invalid_redirect_uri"}, status=400), AuthFailed),
        (answer({"error": "x", "client_id": "c"}), AuthFailed),
        (answer({}), AuthFailed),
        (answer(status=403, body=b"<html>"), AuthFailed),
        (answer({"client_id": "c", "token_endpoint_auth_method": "client_secret_basic"}), AuthFailed),
        (answer({}, status=502), ConnectFailed),
    ],
)
def test_refused_registrations_are_errors(said, error):
    """With the server's reason, and weather apart."""
    with pytest.raises(error):
        play(said)
