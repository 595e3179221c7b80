"""Tests of `auth.tokens`."""

from __future__ import annotations

import pytest
from oauth_peer import answer

from mcp_actors.auth.jwt import b64url
from mcp_actors.auth.tokens import Refused, Tokens, read_token_answer

NOW = 1000.0


def jwt(claims):
    return f"{b64url(b'{}')}.{b64url(claims)}.{b64url(b's')}"


ACCEPTED = [
    ({"access_token": "a"}, Tokens("a", issued_at=NOW)),
    ({"access_token": "a", "token_type": "user"}, Tokens("a", "user", issued_at=NOW)),
    ({"access_token": "a", "expires_in": 60}, Tokens("a", expires_at=1060.0, issued_at=NOW)),
    ({"access_token": "a", "expires_in": "60"}, Tokens("a", expires_at=1060.0, issued_at=NOW)),
    ({"access_token": "a", "expires_in": 0}, Tokens("a", issued_at=NOW)),
    ({"access_token": "a", "expires_in": None}, Tokens("a", issued_at=NOW)),
    ({"access_token": "a", "expires_in": True}, Tokens("a", issued_at=NOW)),
    ({"access_token": "a", "expires_in": "soon"}, Tokens("a", issued_at=NOW)),
    ({"access_token": "a", "scope": "x y"}, Tokens("a", issued_at=NOW, scope=("x", "y"))),
    ({"access_token": "a", "scope": ["x", "y"]}, Tokens("a", issued_at=NOW, scope=("x", "y"))),
    ({"access_token": "a", "scope": ""}, Tokens("a", issued_at=NOW)),
    ({"access_token": "a", "refresh_token": ""}, Tokens("a", issued_at=NOW)),
    ({"access_token": "a", "refresh_token": "r"}, Tokens("a", issued_at=NOW, refresh_token="r")),
    ({"ok": True, "access_token": "a"}, Tokens("a", issued_at=NOW)),
]


@pytest.mark.parametrize(("document", "expected"), ACCEPTED)
def test_token_answers_are_read_with_their_oddities(document, expected):
    """Missing lifetimes stay unknown, scopes come as texts or lists (faults 56 and 63, S264)."""
    assert read_token_answer(answer(document), now=NOW, secrets=()) == expected


def test_the_end_of_a_jwt_is_a_hint():
    """Without `expires_in` the token's own `exp` counts, if it lies ahead (fault 56)."""
    ahead, behind = jwt(b'{"exp": 2000}'), jwt(b'{"exp": 5}')

    assert read_token_answer(answer({"access_token": ahead}), now=NOW, secrets=()).expires_at == 2000
    assert read_token_answer(answer({"access_token": behind}), now=NOW, secrets=()).expires_at is None


@pytest.mark.parametrize(
    ("status", "body", "told"),
    [
        (400, b"<html>Bad\x1b[31m request</html>", "the answer is no JSON object: <html>Bad request</html> (HTTP 400)"),
        (502, b"you sent refresh-1 twice", "the answer is no JSON object: you sent *** twice (HTTP 502)"),
        (500, b"x" * 5000, f"the answer is no JSON object: {'x' * 199}\u2026 (HTTP 500)"),
        (400, b"", "the answer is no JSON object (HTTP 400)"),
        (200, b"token=secret", "the answer is no JSON object"),
    ],
)
def test_an_answer_that_is_no_json_is_shown_in_short(status, body, told):
    """Status and a cleaned excerpt, without what was sent; nothing of a success, which may hold a token (fault 55)."""
    refused = read_token_answer(answer(status=status, body=body), now=NOW, secrets=("refresh-1",))

    assert str(refused) == told


REFUSED = [
    (answer({"error": "bad_verification_code", "error_description": "expired"}), "bad_verification_code", False, False),
    (answer({"ok": False, "error": "invalid_refresh_token"}), "invalid_refresh_token", False, True),
    (answer({"error": "invalid_grant"}, status=400), "invalid_grant", False, True),
    (answer({"error": "invalid_grant"}, status=500), "invalid_grant", False, True),
    (answer({"error": "server_error"}, status=400), "server_error", True, False),
    (answer({}, status=429), "", True, False),
    (answer(status=503, body=b"<html>down"), "", True, False),
    (answer(status=400, body=b"<html>no"), "", False, False),
    (answer(status=200, body=b""), "", False, False),
    (answer({}), "", False, False),
    (answer({"access_token": "a\r\nX: y"}), "", False, False),
    (answer({"access_token": ""}), "", False, False),
    (answer({"access_token": 7}), "", False, False),
    (answer([1]), "", False, False),
    (answer(body=b"a=1&" * 99, content_type="application/x-www-form-urlencoded"), "", False, False),
]


@pytest.mark.parametrize(("said", "code", "is_passing", "is_dead"), REFUSED)
def test_refusals_are_recognised_whatever_the_status(said, code, is_passing, is_dead):
    """An error with status 200 is an error; weather and death are told apart (faults 55 and 59, S264)."""
    refused = read_token_answer(said, now=NOW, secrets=())

    assert isinstance(refused, Refused)
    assert (refused.code, refused.is_passing, refused.is_grant_dead) == (code, is_passing, is_dead)
    assert str(refused)


def test_form_encoded_answers_are_understood():
    """Some servers answer so whatever was accepted."""
    said = answer(body=b"access_token=a&scope=x", content_type="application/x-www-form-urlencoded")

    assert read_token_answer(said, now=NOW, secrets=()).access_token == "a"


def test_a_renewal_keeps_what_it_does_not_bring():
    """Refresh token and scope stay (fault 57)."""
    before = Tokens("a", refresh_token="r", scope=("s",))

    after = read_token_answer(answer({"access_token": "b", "expires_in": 60}), now=NOW, secrets=(), previous=before)

    assert (after.access_token, after.refresh_token, after.scope) == ("b", "r", ("s",))


def test_a_rotated_refresh_token_replaces_the_old_one():
    """The newest counts."""
    after = read_token_answer(
        answer({"access_token": "b", "refresh_token": "r2"}),
        now=NOW,
        secrets=(),
        previous=Tokens("a", refresh_token="r1"),
    )

    assert after.refresh_token == "r2"


def test_a_server_cannot_make_us_show_our_secrets():
    """Secrets that an error text repeats are starred; controls are blanked (fault 102)."""
    said = answer({"error": "x", "error_description": "code SECRET123 \x1b[31m" + "y" * 999}, status=400)

    text = str(read_token_answer(said, now=NOW, secrets=("SECRET123",)))

    assert "SECRET123" not in text
    assert "\x1b" not in text
    assert len(text) < 300


@pytest.mark.parametrize(
    ("life", "age", "is_fresh", "is_alive"),
    [
        (3600, 0, True, True),
        (3600, 3539, True, True),
        (3600, 3541, False, True),
        (3600, 3600, False, False),
        (20, 14, True, True),
        (20, 16, False, True),
    ],
)
def test_tokens_are_renewed_a_little_before_their_end(life, age, is_fresh, is_alive):
    """Sixty seconds before, or a quarter of a short life (S252)."""
    tokens = Tokens("a", expires_at=NOW + life, issued_at=NOW)

    assert (tokens.is_fresh(NOW + age), tokens.is_alive(NOW + age)) == (is_fresh, is_alive)


def test_an_unknown_lifetime_lasts_until_a_refusal():
    """No year, no hour is invented (fault 56)."""
    assert Tokens("a").is_fresh(1e12)
