"""What the suite must have looked at in each scenario of signing in: revision -> scenario -> ids of checks.

What this is not: the scenarios that need no login (`run.EXPECTED`, which these join).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["AUTH_EXPECTED", "ENDS_WITH_ERROR"]

# ── parts of a sign-in, each seen by the suite ───────────────────────────────────────────────────────────────────────

_RESOURCE: Final = ("prm-pathbased-requested",)
_FOUND: Final = (*_RESOURCE, "authorization-server-metadata")
_ASKED: Final = ("authorization-request", "pkce-code-challenge-sent", "pkce-s256-method-used")
_PROVEN: Final = ("token-request", "pkce-code-verifier-sent", "pkce-verifier-matches-challenge")
_SERVED: Final = ("valid-bearer-token",)
_REGISTERED: Final = ("client-registration",)
_INDICATED: Final = tuple(
    f"resource-parameter-{what}" for what in ("in-authorization", "in-token", "valid-uri", "consistency", "matches-prm")
)
# A token that nobody was asked for.
_SILENT: Final = (*_FOUND, "token-request", *_SERVED)
_CODE: Final = (*_FOUND, *_ASKED, *_PROVEN)
_REFUSED: Final = (*_FOUND, *_ASKED, *_REGISTERED)
_BOUND: Final = tuple(f"sep-1932-client-{what}" for what in ("dpop-auth-scheme", "fresh-proof", "token-request-proof"))
_NONCES: Final = tuple(f"sep-1932-client-{what}" for what in ("as-nonce", "rs-nonce"))


def _registering(*more: str) -> tuple[str, ...]:
    return (*_CODE, *_REGISTERED, *_SERVED, *more)


# Of both revisions; what registers says at the modern one which kind of application it is (SEP-837).
_DISCOVERED: Final = {
    f"auth/metadata-{what}": _registering(*_INDICATED) for what in ("default", "var1", "var2", "var3")
}
_SCOPES: Final = {
    f"auth/scope-{what}": _registering(f"scope-{what}")
    for what in ("from-www-authenticate", "from-scopes-supported", "omitted-when-undefined")
}
_METHODS: Final = {
    f"auth/token-endpoint-auth-{what}": _registering(*_INDICATED, "token-endpoint-auth-method")
    for what in ("basic", "post", "none")
}
_STEPS: Final = {
    "auth/scope-step-up": _registering("scope-step-up-initial", "scope-step-up-escalation"),
    "auth/scope-retry-limit": (*_CODE, *_REGISTERED, "scope-retry-limit"),
}
_DPOP: Final = {
    "auth/dpop": (*_CODE, *_REGISTERED, *_BOUND),
    "auth/dpop-nonce": (*_CODE, *_REGISTERED, *_BOUND, *_NONCES),
}
_ALL_REGISTERING: Final = {**_DISCOVERED, **_SCOPES, **_METHODS, **_STEPS, **_DPOP}
_KNOWN: Final = {
    "auth/basic-cimd": (*_CODE, *_SERVED, "cimd-client-id-used"),
    "auth/pre-registration": (*_CODE, *_SERVED, "pre-registration-auth"),
    "auth/client-credentials-jwt": (*_SILENT, "client-credentials-jwt-verified"),
    "auth/client-credentials-basic": (*_SILENT, "client-credentials-basic-auth"),
    "auth/enterprise-managed-authorization": (*_SILENT, "complete-flow-token-exchange", "complete-flow-jwt-bearer"),
    "auth/wif-jwt-bearer": (*_SILENT, "wif-assertion-verified"),
}

_APPLICATION: Final = ("sep-837-application-type-present",)
_CONFUSED: Final = {
    "auth/iss-supported-missing": "sep-2468-client-reject-missing-iss",
    "auth/iss-wrong-issuer": "sep-2468-client-compare-iss-supported",
    "auth/iss-unexpected": "sep-2468-client-compare-iss-unadvertised",
    "auth/iss-normalized": "sep-2468-client-no-normalization",
}
_MODERN: Final = {
    **{scenario: (*checks, *_APPLICATION) for scenario, checks in _ALL_REGISTERING.items()},
    "auth/scope-step-up": (*_STEPS["auth/scope-step-up"], *_APPLICATION, "sep-2350-scope-union-on-reauth"),
    "auth/authorization-server-migration": _registering(
        *_APPLICATION,
        "sep-2352-no-cross-as-credential-reuse",
        "sep-2352-no-reuse-on-as-change",
        "sep-2352-reregister-on-as-change",
    ),
    "auth/iss-supported": _registering(*_APPLICATION, "sep-2468-client-compare-iss-supported"),
    "auth/iss-not-advertised": _registering(*_APPLICATION, "sep-2468-client-proceed-no-iss"),
    **{scenario: (*_REFUSED, *_APPLICATION, check) for scenario, check in _CONFUSED.items()},
    "auth/metadata-issuer-mismatch": (*_FOUND, "sep-2468-client-validate-metadata-issuer"),
    "auth/resource-mismatch": (*_RESOURCE, "resource-mismatch-rejected"),
    # Our client document is used where the server takes one: then nothing is registered.
    "auth/offline-access-scope": (*_CODE, *_SERVED),
    "auth/offline-access-not-supported": _registering(*_APPLICATION, "sep-2207-offline-access-not-requested"),
}

AUTH_EXPECTED: Final[Mapping[str, Mapping[str, Sequence[str]]]] = {
    # Servers that publish nothing about themselves but at their origin, or nothing at all (D21).
    "2025-03-26": {
        "auth/2025-03-26-oauth-metadata-backcompat": (
            *("authorization-server-metadata", *_ASKED, *_PROVEN),
            *(*_REGISTERED, *_SERVED),
        ),
        "auth/2025-03-26-oauth-endpoint-fallback": (
            *("client-registration", "authorization-request", "token-request"),
            *_SERVED,
        ),
    },
    "2025-11-25": {**_ALL_REGISTERING, **_KNOWN},
    "2026-07-28": {**_MODERN, **_KNOWN},
}

# Scenarios whose server must not be signed in to, or not served: our driver ends with an error, as it should.
ENDS_WITH_ERROR: Final = frozenset(
    {"auth/scope-retry-limit", "auth/resource-mismatch", "auth/metadata-issuer-mismatch", *_CONFUSED}
)
