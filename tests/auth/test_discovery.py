"""Tests of `auth.discovery`."""

from __future__ import annotations

import pytest
from oauth_peer import AS, MCP, NOT_FOUND, World, answer, resource_document, server_document

from mcp_actors.auth.discovery import discover, read_server, resource_metadata_urls, server_metadata_urls
from mcp_actors.errors import AuthFailed, ConnectFailed

PATH_PRM = "https://mcp.example.com/.well-known/oauth-protected-resource/mcp"
ROOT_PRM = "https://mcp.example.com/.well-known/oauth-protected-resource"
ROOT_AS = f"{AS}/.well-known/oauth-authorization-server"


@pytest.mark.parametrize(
    ("server", "announced", "expected"),
    [
        (
            "https://h/mcp",
            None,
            ["https://h/.well-known/oauth-protected-resource/mcp", "https://h/.well-known/oauth-protected-resource"],
        ),
        ("https://h/", None, ["https://h/.well-known/oauth-protected-resource"]),
        ("https://h", None, ["https://h/.well-known/oauth-protected-resource"]),
        (
            "https://h/a/b?q=1",
            None,
            ["https://h/.well-known/oauth-protected-resource/a/b", "https://h/.well-known/oauth-protected-resource"],
        ),
        (
            "https://h/mcp",
            "https://h/.well-known/oauth-protected-resource/mcp",
            ["https://h/.well-known/oauth-protected-resource/mcp", "https://h/.well-known/oauth-protected-resource"],
        ),
        ("https://h", "https://h/odd", ["https://h/odd", "https://h/.well-known/oauth-protected-resource"]),
    ],
)
def test_resource_metadata_is_looked_for_in_order(server, announced, expected):
    """The announced URL exactly, then path, then root (S258, D01, faults 51 and 52)."""
    assert list(resource_metadata_urls(server, announced)) == expected


@pytest.mark.parametrize(
    ("issuer", "expected"),
    [
        (
            "https://a",
            ["https://a/.well-known/oauth-authorization-server", "https://a/.well-known/openid-configuration"],
        ),
        (
            "https://a/",
            ["https://a/.well-known/oauth-authorization-server", "https://a/.well-known/openid-configuration"],
        ),
        (
            "https://a/t1",
            [
                "https://a/.well-known/oauth-authorization-server/t1",
                "https://a/.well-known/openid-configuration/t1",
                "https://a/t1/.well-known/openid-configuration",
            ],
        ),
    ],
)
def test_server_metadata_is_looked_for_in_order(issuer, expected):
    """Three forms with a path, two without; a pathed issuer never asks the root (S258, D02, fault 53)."""
    assert list(server_metadata_urls(issuer)) == expected


@pytest.mark.parametrize("place", range(3))
def test_each_place_of_a_pathed_issuer_is_found(place):
    """Metadata at any of the three places is found, and later places are not asked (fault 53)."""
    issuer = f"{AS}/t1"
    urls = server_metadata_urls(issuer)
    world = World({PATH_PRM: answer(resource_document(issuer=issuer)), urls[place]: answer(server_document(issuer))})

    found = world.play(discover(MCP))

    assert found.server.issuer == issuer
    assert world.urls == [PATH_PRM, *urls[: place + 1]]


@pytest.mark.parametrize(
    "resource", ["https://mcp.example.com", "https://mcp.example.com/", "https://mcp.example.com/mcp"]
)
def test_the_resource_is_kept_byte_for_byte(resource):
    """What was published is what will be sent, slash or not (fault 60)."""
    world = World({PATH_PRM: answer(resource_document(resource))})

    assert world.play(discover(MCP)).resource == resource


def test_the_announced_document_is_fetched_exactly():
    """`resource_metadata` is a URL, not a base (fault 52)."""
    world = World({"https://mcp.example.com/odd": answer(resource_document(scopes_supported=["a"]))})

    found = world.play(discover(MCP, announced="https://mcp.example.com/odd"))

    assert world.urls == ["https://mcp.example.com/odd", ROOT_AS]
    assert found.scopes == ("a",)


def test_root_metadata_is_found_when_the_path_has_none():
    """A page for every path is no metadata (fault 51)."""
    html = answer(status=200, body=b"<html>")
    world = World({PATH_PRM: html, ROOT_PRM: answer(resource_document("https://mcp.example.com"))})

    assert world.play(discover(MCP)).resource == "https://mcp.example.com"


REFUSED = [
    ({PATH_PRM: answer(resource_document("https://evil.example.com/mcp"))}, {}, "another resource"),
    ({PATH_PRM: answer(resource_document("https://mcp.example.com/other"))}, {}, "another resource"),
    ({PATH_PRM: answer({"authorization_servers": [AS]})}, {}, "another resource"),
    ({ROOT_AS: answer(server_document("https://attacker.example.com"))}, {}, "says that it is of"),
    ({ROOT_AS: NOT_FOUND}, {}, "no metadata of the authorization server"),
    ({ROOT_AS: answer({"issuer": AS})}, {}, "has no token_endpoint"),
    ({ROOT_AS: answer({**server_document(), "token_endpoint": "/token"})}, {}, "token_endpoint of"),
    (
        {ROOT_AS: answer({**server_document(), "authorization_endpoint": "javascript:x"})},
        {},
        "authorization_endpoint of",
    ),
    ({PATH_PRM: answer(resource_document(issuer="http://as.example.com"))}, {}, "must be an https URL"),
    ({}, {"announced": "http://10.0.0.1/x"}, "must be an https URL"),
    ({}, {"issuer": "https://other.example.com"}, "is configured"),
    ({PATH_PRM: NOT_FOUND}, {"is_modern": True}, "publishes no metadata"),
    ({PATH_PRM: NOT_FOUND}, {"issuer": AS}, "is configured"),
]


@pytest.mark.parametrize(("pages", "options", "text"), REFUSED)
def test_what_must_not_be_believed_is_refused(pages, options, text):
    """Wrong resource, wrong issuer, odd endpoints: an error that says which (D03, D04, faults 53, 54)."""
    world = World(pages)

    with pytest.raises(AuthFailed, match=text):
        world.play(discover(MCP, **options))

    assert not any(url.startswith(f"{AS}/token") for url in world.urls)


@pytest.mark.parametrize("page", [PATH_PRM, ROOT_AS])
def test_an_outage_is_weather(page):
    """A server that is out of order is no reason to ask a person."""
    with pytest.raises(ConnectFailed):
        World({page: answer({}, status=503)}).play(discover(MCP))


def test_without_metadata_the_origin_is_the_server():
    """Servers of 2025-03-26: metadata at the origin, told the revision (D21, fault 53 d)."""
    origin = "https://mcp.example.com"
    place = f"{origin}/.well-known/oauth-authorization-server"
    world = World({PATH_PRM: NOT_FOUND, place: answer(server_document(origin))})

    found = world.play(discover(MCP, revision="2025-03-26"))

    assert found.server.issuer == origin
    assert ("MCP-Protocol-Version", "2025-03-26") in world.log[-1].headers


def test_without_any_metadata_the_old_paths_are_guessed():
    """Only in the legacy era (D21)."""
    found = World({PATH_PRM: NOT_FOUND}).play(discover(MCP))

    assert found.server.is_guess
    assert found.server.token_endpoint == "https://mcp.example.com/token"


def test_a_configured_document_bypasses_discovery():
    """`authServerMetadataUrl` is fetched and nothing else; its scopes are those to request (S259)."""
    world = World({"https://as.example.com/doc": answer(server_document(scopes_supported=["x"]))})

    found = world.play(discover(MCP, metadata_url="https://as.example.com/doc"))

    assert world.urls == ["https://as.example.com/doc"]
    assert (found.resource, found.scopes, found.is_configured) == (MCP, ("x",), True)


def test_the_next_server_is_taken_when_the_first_has_no_metadata():
    """A resource may name several."""
    document = {"resource": MCP, "authorization_servers": ["https://gone.example.com", AS]}

    assert World({PATH_PRM: answer(document)}).play(discover(MCP)).server.issuer == AS


def test_a_server_document_is_read_with_its_oddities():
    """Null and empty members are absent (fault 62)."""
    server = read_server(
        server_document(registration_endpoint=None, revocation_endpoint="", scopes_supported="a b"), "u"
    )

    assert (server.registration_endpoint, server.revocation_endpoint, server.scopes) == (None, None, ("a", "b"))
