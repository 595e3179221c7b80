"""Tests of `auth.urls`."""

from __future__ import annotations

import pytest

from mcp_actors.auth.urls import (
    canonical_resource,
    check_url,
    covers,
    host_of,
    is_same_origin,
    place_of,
    same_issuer,
)
from mcp_actors.errors import AuthFailed


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("https://h/secret", "https://h"),
        (
            "https://h/.well-known/oauth-protected-resource/secret?secret",
            "https://h/.well-known/oauth-protected-resource",
        ),
        ("https://h/secret/.well-known/openid-configuration", "https://h/.well-known/openid-configuration"),
        ("https://[bad/secret", "<unusable URL>"),
    ],
)
def test_a_well_known_document_is_named(url, expected):
    """Beside the origin, which of the documents it is: its name is no secret (S030)."""
    assert place_of(url) == expected


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("https://Api.Example.com", "https://api.example.com"),
        ("https://api.example.com/", "https://api.example.com"),
        ("https://api.example.com/mcp/?k=v#f", "https://api.example.com/mcp"),
        ("https://api.example.com/MCP", "https://api.example.com/MCP"),
    ],
)
def test_the_canonical_resource_has_no_trailing_slash(url, expected):
    """Host in lower case, path as it is, no slash, query or fragment (D06)."""
    assert canonical_resource(url) == expected


@pytest.mark.parametrize(
    ("resource", "server", "expected"),
    [
        ("https://h", "https://h/mcp", True),
        ("https://h/", "https://h/mcp", True),
        ("https://h/mcp", "https://h/mcp", True),
        ("https://h/mcp/", "https://h/mcp", True),
        ("https://H:443/mcp", "https://h/mcp/sub", True),
        ("https://h/mc", "https://h/mcp", False),
        ("https://h/other", "https://h/mcp", False),
        ("https://evil/mcp", "https://h/mcp", False),
        ("http://h/mcp", "https://h/mcp", False),
        ("https://h:8443/mcp", "https://h/mcp", False),
        ("", "https://h/mcp", False),
        ("https://[bad", "https://h/mcp", False),
    ],
)
def test_a_resource_covers_its_origin_and_path(resource, server, expected):
    """Only the same origin and a path that leads to ours (D04)."""
    assert covers(resource, server) is expected


GOOD = ["https://as.example.com/a?b=c", "http://localhost:3000/x", "http://127.0.0.1/", "http://[::1]:1/"]
BAD = [
    "http://as.example.com/",
    "file:///c:/x.exe",
    "javascript:alert(1)",
    "data:text/html,x",
    "vbscript:x",
    "a:$(calc)",
    "ftp://h/",
    "//h/path",
    "/relative",
    "",
    "https://",
    "https://u:p@h/",
    "https://h/#f",
    "https://h/a b",
    "https://h/\n",
    "https://h:0/",
    "https://h:99999/",
    "https://h/\u202e",
    "http://127.0.0.1.evil.com/",
]


@pytest.mark.parametrize("url", GOOD)
def test_https_and_loopback_are_usable(url):
    """https anywhere, http on this machine."""
    assert check_url(url, "it") == url


@pytest.mark.parametrize("url", BAD)
def test_everything_else_is_refused(url):
    """Other schemes, relative URLs, credentials and odd characters are errors (fault 105, E02)."""
    with pytest.raises(AuthFailed, match="it "):
        check_url(url, "it")


def test_percent_and_ampersand_are_no_harm_to_an_argument_list():
    """A URL that a shell would expand is just a URL here: nothing is passed through a shell (fault 105)."""
    assert check_url("https://h/%USERPROFILE%&calc", "it")


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ("https://a", "https://a", True),
        ("https://a", "https://a/", True),
        ("https://a/", "https://a", True),
        ("https://a/t", "https://a/t/", False),
        ("https://a", "https://A", False),
        ("https://a", "https://a:443", False),
        ("https://a", "https://b", False),
    ],
)
def test_issuers_are_compared_as_texts(one, other, expected):
    """Only the slash of a bare origin is forgiven (D03, fault 54)."""
    assert same_issuer(one, other) is expected


def test_odd_urls_have_no_origin_in_common():
    """What is no URL is the same as nothing."""
    assert not is_same_origin("https://[x", "https://[x")
    assert host_of("https://[x") == ""
