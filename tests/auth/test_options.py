"""Tests of `auth.options`."""

from __future__ import annotations

import pytest

from mcp_actors.auth.options import AuthOptions, DpopUse, GrantKind, read_options
from mcp_actors.errors import ConfigError

READ = [
    (None, {}, AuthOptions()),
    ({}, {}, AuthOptions()),
    ("text", {}, AuthOptions()),
    ({"clientId": "c", "unknown": 1}, {}, AuthOptions(client_id="c")),
    ({"clientId": "${ID}", "clientSecret": "${S:-d}"}, {"ID": "c"}, AuthOptions(client_id="c", client_secret="d")),
    ({"clientId": ""}, {}, AuthOptions()),
    ({"scopes": "a b"}, {}, AuthOptions(scopes=("a", "b"))),
    ({"scopes": ["a", "b"]}, {}, AuthOptions(scopes=("a", "b"))),
    ({"scopes": ""}, {}, AuthOptions()),
    ({"callbackPort": 8080}, {"MCP_OAUTH_CALLBACK_PORT": "9"}, AuthOptions(callback_port=8080)),
    ({}, {"MCP_OAUTH_CALLBACK_PORT": "9"}, AuthOptions(callback_port=9)),
    ({}, {"MCP_OAUTH_CALLBACK_PORT": "x"}, AuthOptions()),
    ({"xaa": True}, {}, AuthOptions(grant=GrantKind.XAA)),
    ({"grant": "client_credentials"}, {}, AuthOptions(grant=GrantKind.CLIENT_CREDENTIALS)),
    ({"dpop": "always"}, {}, AuthOptions(dpop=DpopUse.ALWAYS)),
    ({"allowMissingPkce": True}, {}, AuthOptions(needs_pkce=False)),
    ({"allowMissingPkce": "yes", "allowPrivateNetwork": 1}, {}, AuthOptions()),
    ({"redirectUri": "http://127.0.0.1:3118/cb"}, {}, AuthOptions(redirect_uri="http://127.0.0.1:3118/cb")),
]


@pytest.mark.parametrize(("raw", "environ", "expected"), READ)
def test_the_block_is_read(raw, environ, expected):
    """Unknown keys and odd truths are left alone, variables are filled in."""
    assert read_options(raw, environ) == expected


WRONG = [
    ({"clientId": 7}, "oauth.clientId"),
    ({"clientSecret": "${NOPE}"}, "NOPE is not set"),
    ({"grant": "password"}, "oauth.grant"),
    ({"callbackPort": 0}, "oauth.callbackPort"),
    ({"callbackPort": "80"}, "oauth.callbackPort"),
    ({"callbackPort": True}, "oauth.callbackPort"),
    ({"issuer": "http://as.example.com"}, "oauth.issuer"),
    ({"authServerMetadataUrl": "file:///x"}, "oauth.authServerMetadataUrl"),
    ({"clientMetadataUrl": "/x"}, "oauth.clientMetadataUrl"),
    ({"redirectUri": "https://evil.example.com/cb"}, "oauth.redirectUri"),
    ({"redirectUri": "http://localhost:1/cb?x"}, "oauth.redirectUri"),
    ({"tokenEndpointAuthMethod": "magic"}, "oauth.tokenEndpointAuthMethod"),
]


@pytest.mark.parametrize(("raw", "text"), WRONG)
def test_a_wrong_value_names_its_key(raw, text):
    """And never the value of a secret."""
    with pytest.raises(ConfigError, match=text) as caught:
        read_options(raw, {}, server="srv")

    assert caught.value.server == "srv"


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (AuthOptions(), None),
        (AuthOptions(callback_port=8080), "http://localhost:8080/callback"),
        (AuthOptions(callback_port=8080, redirect_uri="http://localhost:3118/x"), "http://localhost:3118/x"),
    ],
)
def test_the_redirect_is_exactly_what_is_configured(options, expected):
    """Host, port and path (fault 65)."""
    assert options.fixed_redirect_uri == expected


def test_another_identity_is_another_login():
    """Client, issuer and grant tell logins apart; a secret or a port does not (S251)."""
    base = AuthOptions()
    others = [AuthOptions(client_id="c"), AuthOptions(issuer="https://a"), AuthOptions(grant=GrantKind.DEVICE_CODE)]

    assert len({each.identity_hash() for each in [base, *others]}) == 4
    assert AuthOptions(callback_port=1, scopes=("s",)).identity_hash() == base.identity_hash()


def test_secrets_are_not_in_the_repr():
    """S354."""
    assert "CANARY" not in repr(AuthOptions(client_secret="CANARY", private_key="CANARY"))
