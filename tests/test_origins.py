"""Tests of `origins`."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_actors.config.specs import RemoteTarget
from mcp_actors.origins import MAX_SHOWN_CHARS, is_loopback, origin_of, place_of

# A URL, and what is shown of it.
PLACES = [
    ("https://me:secret@h:8443/mcp?key=secret#x", "https://h:8443"),
    ("https://u:secret@h/p?token=secret#secret", "https://h"),
    ("https://h", "https://h"),
    ("HTTPS://Host.Example:443/a?b#c", "https://host.example"),
    ("http://[::1]:80/", "http://[::1]"),
    ("http://[::1]:3000/", "http://[::1]:3000"),
    ("wss://h:443/secret", "wss://h"),
    ("http://h:99999/secret", "http://h"),
    ("http://h:secret/", "http://h"),
    ("http://h\x1bc/m", "http://h\ufffdc"),
    ("https://" + "x" * 1000, "https://" + "x" * 291 + "…"),
    ("/token?x", "<relative URL>"),
    ("javascript:alert(1)", "javascript:"),
    ("https://[bad/secret", "<unusable URL>"),
]


@pytest.mark.parametrize(("url", "expected"), PLACES)
def test_what_is_shown_of_a_url_holds_no_secret(url: str, expected: str) -> None:
    """Its origin alone: credentials and query are secrets, and keys stand in paths as well (S030, fault 102)."""
    assert place_of(url) == expected
    assert repr(expected) in repr(RemoteTarget(url))


@given(st.text() | st.text("htps:/@[]?#.%\x1b", max_size=30).map("https://".__add__))
def test_any_text_has_a_place(url: str) -> None:
    """Nothing that a peer may send in place of a URL raises, is longer than a line, or steers a terminal."""
    place = place_of(url)

    assert 0 < len(place) <= MAX_SHOWN_CHARS + 1
    assert place.isprintable()


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("HTTPS://Host.Example:443/a?b#c", "https://host.example"),
        ("http://h:80", "http://h"),
        ("https://h:80", "https://h:80"),
        ("https://h:8443/x", "https://h:8443"),
        ("http://[::1]:3000/", "http://[::1]:3000"),
        ("ftp://h", "ftp://h"),
    ],
)
def test_an_origin_has_no_default_port_and_no_case(url: str, expected: str) -> None:
    """Scheme, host and port, in lower case; with the default port or without it is the same one."""
    assert str(origin_of(url)) == expected
    assert origin_of(expected) == origin_of(url)


@pytest.mark.parametrize("url", ["http://[", "http://h:99999/", "http://h:x/"])
def test_what_is_no_url_has_no_origin(url: str) -> None:
    """Whoever compares origins learns that there is none to compare."""
    with pytest.raises(ValueError, match=r"."):
        origin_of(url)


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("localhost", True),
        ("LOCALHOST.", True),
        ("a.localhost", True),
        ("127.8.8.8", True),
        ("::1", True),
        ("[::1]", True),
        ("::ffff:127.0.0.1", True),
        ("localhost.evil.com", False),
        ("notlocalhost", False),
        ("example.com", False),
        ("10.0.0.1", False),
        ("128.0.0.1", False),
        ("::2", False),
        ("", False),
    ],
)
def test_loopback_hosts(host: str, expected: bool) -> None:
    """Names and addresses of this machine."""
    assert is_loopback(host) is expected
