"""Owns tokens, the reading of what a token endpoint answers, and when a token is too old to use. Pure.

What this is not: asking for them (`grants`), nor keeping them (`store`, `refreshing`).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final
from urllib.parse import parse_qsl

from attrs import evolve, field

from mcp_actors.auth.messages import number_in, text_in, texts_in
from mcp_actors.sent_secrets import longest_first, starred
from mcp_actors.shown import one_line, visible
from mcp_actors.values import frozen

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from mcp_actors.auth.messages import WebAnswer
    from mcp_actors.jsontypes import Json

__all__ = ["Refused", "Tokens", "jwt_expiry", "read_token_answer"]

# Seconds before its end at which a token is renewed (S252), but never more than a quarter of its life.
SKEW: Final = 60.0
# What may stand in a header, whatever a server sends (header injection).
_SENDABLE: Final = re.compile(r"[\x21-\x7e]{1,65536}")
# What odd servers call invalid_grant (S264).
_DEAD_GRANTS: Final = frozenset(
    {
        "invalid_grant",
        "invalid_refresh_token",
        "bad_refresh_token",
        "expired_refresh_token",
        "refresh_token_expired",
        "invalid_code",
        "expired_token",
        "token_expired",
        "token_revoked",
    }
)
_PASSING: Final = frozenset({"temporarily_unavailable", "server_error", "slow_down", "rate_limited", "ratelimited"})


@frozen
class Tokens:
    """What a token endpoint gave. Moments are seconds since the epoch; every token is a secret."""

    access_token: str = field(repr=False)
    # As sent: "Bearer", "DPoP", or something odd ("user") that is used as Bearer.
    token_type: str = "Bearer"  # noqa: S105 - a scheme
    # None: the server did not say; used until it is refused (fault 56).
    expires_at: float | None = None
    issued_at: float = 0.0
    refresh_token: str | None = field(default=None, repr=False)
    # What was granted; None: not said, which means what was asked for.
    scope: tuple[str, ...] | None = None
    id_token: str | None = field(default=None, repr=False)

    def is_fresh(self, now: float) -> bool:
        """Whether it may be used without renewing it first."""
        return self.expires_at is None or now < self.expires_at - self._skew

    def is_alive(self, now: float) -> bool:
        """Whether it still may work, although it should be renewed."""
        return self.expires_at is None or now < self.expires_at

    @property
    def _skew(self) -> float:
        life = SKEW if self.expires_at is None else self.expires_at - self.issued_at
        return min(SKEW, max(life, 0.0) / 4)


@frozen
class Refused:
    """A token endpoint said no. `description` is its own text, cleaned and cut, without our secrets."""

    code: str
    description: str | None = None
    status: int = 0
    # It may do another time: nothing is dropped (fault 59).
    is_passing: bool = False

    @property
    def is_grant_dead(self) -> bool:
        """Whether the code, assertion or refresh token is used up or revoked."""
        return self.code in _DEAD_GRANTS

    @property
    def is_client_unknown(self) -> bool:
        """Whether the server does not know our client id or secret (fault 67)."""
        return self.code in ("invalid_client", "unauthorized_client")

    def __str__(self) -> str:
        status = f"HTTP {self.status}" if self.status and not 200 <= self.status < 300 else ""
        text = ": ".join(part for part in (self.code, self.description) if part)
        return f"{text} ({status})" if text and status else text or status


# What an answer may bring along that is as secret as what it was sent for.
_GIVEN: Final = (
    "access_token",
    "refresh_token",
    "id_token",
    "client_secret",
    "device_code",
    "registration_access_token",
)
# The same in an answer that cannot be read: then none of it is shown.
_GIVEN_AT: Final = re.compile(rf"(?:{'|'.join(_GIVEN)})[\"'\\]*\s*[=:>]")


def read_token_answer(
    answer: WebAnswer, *, now: float, secrets: Collection[str], previous: Tokens | None = None
) -> Tokens | Refused:
    """Read the answer of a token endpoint.

    Args:
        answer: whatever came; an error with status 200 is an error (S264, fault 55).
        now: seconds since the epoch.
        secrets: what was sent, longest first (`WebRequest.secrets`): the server's words repeat it to nobody.
        previous: what is renewed; its refresh token and scope stay where the answer has none (fault 57).

    Returns:
        New tokens, or why there are none.

    Source:
        RFC 6749, sections 5.1 and 5.2.
    """
    document = answer.json()
    if document is None and "form-urlencoded" in answer.headers.get("content-type", ""):
        document = _form(answer.body)
    if document is None:
        # Of a success nothing is shown: whatever its form, it may hold a token.
        shown = "" if answer.is_success else answer.body.decode("utf-8", "replace")
        if _GIVEN_AT.search(shown):
            shown = ""
        text = ": ".join(filter(None, ("the answer is no JSON object", _clean(shown, secrets))))
        return Refused("", text, answer.status, is_passing=answer.is_outage)
    code = text_in(document, "error")
    access_token = text_in(document, "access_token")
    if code is not None or not answer.is_success or document.get("ok") is False:
        code = code or ""
        said = text_in(document, "error_description") or text_in(document, "message")
        secrets = (*longest_first(value for name in _GIVEN if (value := text_in(document, name))), *secrets)
        is_passing = (answer.is_outage and code not in _DEAD_GRANTS) or code in _PASSING
        return Refused(_clean(code, secrets) or "", _clean(said, secrets), answer.status, is_passing=is_passing)
    if access_token is None:
        return Refused("", "the answer has no access_token", answer.status)
    if _SENDABLE.fullmatch(access_token) is None:
        return Refused("", "the access token has characters that cannot be sent", answer.status)
    tokens = Tokens(
        access_token=access_token,
        token_type=text_in(document, "token_type") or "Bearer",
        expires_at=_expiry(document, access_token, now),
        issued_at=now,
        refresh_token=text_in(document, "refresh_token"),
        scope=texts_in(document, "scope") or None,
        id_token=text_in(document, "id_token"),
    )
    if previous is None:
        return tokens
    return evolve(
        tokens,
        refresh_token=tokens.refresh_token or previous.refresh_token,
        scope=tokens.scope or previous.scope,
        id_token=tokens.id_token or previous.id_token,
    )


def _form(body: bytes) -> dict[str, Json] | None:
    try:
        return dict(parse_qsl(body.decode("utf-8", "replace"), max_num_fields=50))
    except ValueError:
        return None


def _expiry(document: Mapping[str, Json], access_token: str, now: float) -> float | None:
    seconds = number_in(document, "expires_in")
    if seconds is not None and seconds > 0:
        return now + seconds
    hint = jwt_expiry(access_token)
    return hint if hint is not None and hint > now else None


def jwt_expiry(token: str) -> float | None:
    """The moment at which a JWT says it ends; None when it is no JWT or does not say. A hint: nothing is verified."""
    from mcp_actors.auth.jwt import read_claims

    claims = read_claims(token)
    return None if claims is None else number_in(claims, "exp")


def _clean(text: str | None, secrets: Collection[str]) -> str | None:
    if text is None:
        return None
    # First what is unseen: it may hide a secret from us. The cut comes last: a part of one would be none any more.
    return one_line(starred(visible(text), secrets)) or None
