"""URLs of servers: what may be opened, and what is shown."""

from __future__ import annotations

from urllib.parse import urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_actors.elicitation.urls import MAX_URL_CHARS, JudgedUrl, RefusedUrl, judge_url


@pytest.mark.parametrize(
    ("url", "text", "host"),
    [
        ("https://example.com/pay?id=1#top", "https://example.com/pay?id=1#top", "example.com"),
        ("HTTPS://Example.COM", "https://Example.COM", "example.com"),
        ("http://localhost:8000/x", "http://localhost:8000/x", "localhost"),
        ("http://127.0.0.1/x", "http://127.0.0.1/x", "127.0.0.1"),
        ("http://[::1]:80/x", "http://[::1]:80/x", "::1"),
        ("https://example.com/" + "a" * 5000, "https://example.com/" + "a" * 5000, "example.com"),
        ("https://example.com/$(calc)&x", "https://example.com/$(calc)&x", "example.com"),
    ],
)
def test_https_and_loopback_may_be_opened(url, text, host):
    """https, and http to this machine, are shown whole, however long (S284, E02)."""
    assert judge_url(url) == JudgedUrl(text, host)


@pytest.mark.parametrize(
    ("url", "text", "warning"),
    [
        ("https://xn--pypal-4ve.com/", "https://xn--pypal-4ve.com/", "xn--"),
        ("https://p\u0430ypal.com/", "https://xn--pypal-4ve.com/", "xn--"),
        ("https://example.com@evil.example/", "https://example.com@evil.example/", "this leads to evil.example"),
        ("https://10.0.0.1/", "https://10.0.0.1/", "bare address"),
        ("https://2130706433/", "https://2130706433/", "address in disguise"),
        ("https://0x7f000001/", "https://0x7f000001/", "address in disguise"),
        ("https://h/%USERPROFILE%&calc", "https://h/%USERPROFILE%&calc", "unusual characters"),
        ("https://h/a\u202eb", "https://h/a%E2%80%AEb", "unusual characters"),
        ('https://h/"onload=`x`', "https://h/%22onload=%60x%60", "unusual characters"),
    ],
)
def test_odd_urls_are_shown_as_they_are_opened_with_a_warning(url, text, warning):
    """International hosts, credentials, addresses and invisible characters are pointed out (spec_client 12)."""
    judged = judge_url(url)

    assert text == judged.text
    assert any(warning in told for told in judged.warnings), judged.warnings


@pytest.mark.parametrize(
    "url",
    [
        "",
        "http://as.example.com/",
        "http://localhost.evil.example/",
        "http://127.0.0.1.evil.example/",
        "javascript:alert(1)",
        "data:text/html,x",
        "file:///c:/x.exe",
        "vbscript:x",
        "a:$(calc)",
        "ftp://example.com/",
        "ms-settings:x",
        "//example.com/",
        "https:example.com",
        "https:///example.com",
        "https://",
        "https://exa mple.com/",
        "https://example.com/a b",
        "https://evil.example\\@good.example/",
        "https://example.com/\r\nX: y",
        "\thttps://example.com/",
        "java\nscript:alert(1)",
        "https://example.com:99999/",
        "https://[bad/",
        "https://exam\u2028ple.com/",
        "https://" + "\u00e4" * 300 + ".com/",
        "https://example.com/" + "a" * MAX_URL_CHARS,
        "--help",
    ],
)
def test_everything_else_is_refused(url):
    """Other schemes, plain http, spaces, controls and hosts that are none are an error (fault 105)."""
    refused = judge_url(url)

    assert isinstance(refused, RefusedUrl)
    assert len(refused.reason) < 200


@given(st.text(max_size=60).map(lambda tail: "https://example.com/" + tail))
def test_what_is_shown_is_plain(url):
    """Nothing in what is shown and opened is invisible, a space or a quote; judging it again changes nothing."""
    judged = judge_url(url)

    if isinstance(judged, JudgedUrl):
        assert judged.text.isascii()
        assert not set(judged.text) & set(' "<>\\^`{|}\x7f')
        assert judge_url(judged.text).text == judged.text
        assert judged.host == "example.com"


@given(st.text(max_size=60))
def test_judging_never_raises(url):
    """Any text is judged: it may be opened as ASCII that leads where it says, or is refused for a reason."""
    for text in (url, "https://" + url):
        judged = judge_url(text)
        if isinstance(judged, JudgedUrl):
            assert (judged.text.isascii(), judged.host) == (True, urlsplit(judged.text).hostname)
        else:
            assert judged.reason
