"""Tests of `config.patterns`."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_actors.config.patterns import glob, parse_address, parse_pattern

MATCHES = [
    ("https://h.example.com/mcp", "https://h.example.com/mcp", True),
    ("https://h.example.com/mcp", "https://h.example.com/mcp/x", False),
    ("https://h.example.com/mcp", "https://h.example.com/MCP", False),
    ("HTTPS://H.Example.com/mcp", "https://h.example.COM/mcp", True),
    ("https://h.example.com./mcp", "https://h.example.com/mcp", True),
    ("https://h.example.com/mcp", "https://h.example.com./mcp", True),
    # Without path any path, without query any query.
    ("https://h", "https://h", True),
    ("https://h", "https://h/a/b?c", True),
    ("https://h/mcp", "https://h/mcp?token=x#y", True),
    ("https://h/mcp?a=*", "https://h/mcp?a=1", True),
    ("https://h/mcp?a=*", "https://h/mcp", False),
    ("https://h/", "https://h", True),
    ("https://h/", "https://h/x", False),
    # A wildcard stays in its part.
    ("https://*.example.com/*", "https://a.b.example.com/x", True),
    ("https://*.example.com/*", "https://example.com/x", False),
    ("https://*.example.com/*", "https://evil.com/x.example.com/", False),
    ("https://*.example.com/*", "https://evil.com#.example.com/", False),
    ("https://*.example.com/*", "https://evil.com?.example.com/", False),
    ("https://*.example.com/*", "https://evil.com\\.example.com/", False),
    ("https://*.example.com/*", "https://a.example.com@evil.com/", False),
    ("https://*.example.com/*", "https://evil.com/@a.example.com/", False),
    ("https://h.example.com*/x", "https://h.example.com.evil.com/x", True),
    ("*://h/*", "ws://h/x", True),
    ("http*://h/*", "https://h/x", True),
    ("http*://h/*", "wss://h/x", False),
    ("h/mcp", "https://h/mcp", True),
    ("*", "wss://any.host:99/x?y", True),
    # Ports.
    ("https://h/*", "https://h:443/x", True),
    ("https://h:443/*", "https://h/x", True),
    ("https://h/*", "https://h:8443/x", False),
    ("http://localhost:*/*", "http://localhost:8080/x", True),
    ("http://localhost:*/*", "http://localhost/x", True),
    ("http://localhost:80*/*", "http://localhost:8080/x", True),
    ("http://localhost:80*/*", "http://localhost:9080/x", False),
    ("http://[::1]:8080/*", "http://[::1]:8080/x", True),
    ("http://[::1]/*", "http://[::1]:8080/x", False),
    # One port and one host in many spellings.
    ("http://h:9/*", "http://h:0009/x", True),
    ("https://h/*", "https://h:0443/x", True),
    ("http://h:09/*", "http://h:9/x", True),
    ("http://h:0*/*", "http://h:9/x", False),
    ("http://h.example.com/*", "http://h%2eexample.com/x", True),
    ("http://127.0.0.1/*", "http://127.1/x", True),
    ("http://127.0.0.1/*", "http://0x7f.0.0.01/x", True),
    ("http://127.0.0.1/*", "http://2130706433/x", True),
    ("http://2130706433/*", "http://127.0.0.1/x", True),
    ("http://127.0.0.1/*", "http://[::ffff:127.0.0.1]/x", True),
    ("http://[::1]/*", "http://[0:0:0:0::0001]/x", True),
    ("http://10.*/*", "http://10.0.0.5/x", True),
    ("http://10.0.0.8/*", "http://10.0.0.08/x", False),
    ("http://10.0.0.8/*", "http://10.0.0.2056/x", False),
    ("http://1.2.3.4/*", "http://1.2.3.4.5/x", False),
    ("http://" + "9" * 5000, "http://h/", False),
    # Nothing else is special.
    ("https://a.c/*", "https://abc/x", False),
    ("https://h/a+b(c)?[d]", "https://h/a+b(c)?[d]", True),
    ("https://h/a?b", "https://h/aXb", False),
    # One path in many spellings.
    ("https://h/mcp", "https://h/%6dcp", True),
    ("https://h/mcp", "https://h/./x/../mcp", True),
    ("https://h/a%2fb", "https://h/a/b", False),
    ("https://münchen.example/*", "https://xn--mnchen-3ya.example/x", True),
    ("https://evil.com/*", "https://ｅvil.com/x", True),
]


@pytest.mark.parametrize(("pattern", "url", "expected"), MATCHES)
def test_denied_patterns_follow_the_table(pattern: str, url: str, expected: bool) -> None:
    """Each part of an address is matched by itself (S051)."""
    assert parse_pattern(pattern).matches(parse_address(url), in_every_spelling=False) == expected


@pytest.mark.parametrize(
    ("pattern", "url", "expected"),
    [
        ("https://h/ok/*", "https://h/ok/x", True),
        ("https://h/ok/*", "https://h/ok/../secret", False),
        ("https://h/ok/*", "https://h/ok/%2e%2e/secret", False),
        ("https://h/ok/*", "https://h/ok\\..\\secret", False),
        ("https://h/ok", "https://h/%6fk", False),
    ],
)
def test_allowed_patterns_hold_for_every_spelling(pattern: str, url: str, expected: bool) -> None:
    """No way to write a path leads out of what is allowed."""
    assert parse_pattern(pattern).matches(parse_address(url), in_every_spelling=True) == expected


@given(st.text(alphabet="ab*", max_size=8), st.text(alphabet="ab", max_size=12))
def test_glob_agrees_with_a_regular_expression(pattern: str, text: str) -> None:
    """A star is any run of characters, also an empty one."""
    expression = ".*".join(re.escape(piece) for piece in pattern.split("*"))

    assert glob(pattern, text) == (re.fullmatch(expression, text) is not None)


def test_glob_takes_no_exponential_time() -> None:
    """Many stars over a long text end at once."""
    assert not glob("*a" * 500 + "b", "a" * 50_000)


@given(st.text(max_size=30))
def test_any_text_can_be_taken_apart(text: str) -> None:
    """Neither patterns nor addresses raise, and an address without stars matches itself."""
    pattern, address = parse_pattern(text), parse_address(text)

    assert isinstance(pattern.matches(address, in_every_spelling=True), bool)
