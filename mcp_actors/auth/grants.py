"""Owns what is asked for at a token endpoint: one form per grant, and the exchange that takes it there. Pure.

What this is not: proving which client we are (`client_auth`), nor what the token will be bound to (`presentation`);
`ask_token` puts the three together.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mcp_actors.auth.client_auth import authenticate
from mcp_actors.auth.messages import Purpose, form_request, number_in, text_in
from mcp_actors.auth.tokens import Refused, Tokens, read_token_answer
from mcp_actors.auth.urls import check_url, place_of
from mcp_actors.sent_secrets import longest_first, starred
from mcp_actors.shown import one_line
from mcp_actors.values import frozen

if TYPE_CHECKING:
    from mcp_actors.auth.discovery import AuthServer
    from mcp_actors.auth.identity import ClientIdentity
    from mcp_actors.auth.messages import Asking, Sources
    from mcp_actors.auth.presentation import Presentation

from attrs import field

__all__ = [
    "DEVICE_GRANT",
    "JWT_BEARER",
    "TOKEN_EXCHANGE",
    "DeviceCode",
    "ask_device_code",
    "ask_token",
    "client_credentials_form",
    "code_form",
    "device_form",
    "jwt_bearer_form",
    "refresh_form",
    "token_exchange_form",
]

JWT_BEARER: Final = "urn:ietf:params:oauth:grant-type:jwt-bearer"
TOKEN_EXCHANGE: Final = "urn:ietf:params:oauth:grant-type:token-exchange"  # noqa: S105 - a name
DEVICE_GRANT: Final = "urn:ietf:params:oauth:grant-type:device_code"
NONCE_ERROR: Final = "use_dpop_nonce"

Form = dict[str, str | None]


def _scope(scope: tuple[str, ...] | None) -> str | None:
    return " ".join(scope) if scope else None


def code_form(code: str, *, verifier: str, redirect_uri: str, resource: str) -> Form:
    """The code that a person's visit brought (RFC 6749, section 4.1.3; RFC 7636; RFC 8707)."""
    return {
        "grant_type": "authorization_code",
        "code": code,
        "redirect_uri": redirect_uri,
        "code_verifier": verifier,
        "resource": resource,
    }


def refresh_form(refresh_token: str, *, resource: str) -> Form:
    """A refresh token; the scope stays as it was (RFC 6749, section 6; D06)."""
    return {"grant_type": "refresh_token", "refresh_token": refresh_token, "resource": resource}


def client_credentials_form(*, resource: str, scope: tuple[str, ...] | None) -> Form:
    """Nothing but who we are (RFC 6749, section 4.4; D17)."""
    return {"grant_type": "client_credentials", "scope": _scope(scope), "resource": resource}


def jwt_bearer_form(assertion: str, *, resource: str, scope: tuple[str, ...] | None) -> Form:
    """Somebody vouches for us: an ID-JAG, or a workload's platform token (RFC 7523, section 2.1; D18, D20)."""
    return {"grant_type": JWT_BEARER, "assertion": assertion, "scope": _scope(scope), "resource": resource}


def token_exchange_form(
    subject_token: str, *, subject_type: str, audience: str, resource: str, scope: tuple[str, ...] | None
) -> Form:
    """A company's ID token for an ID-JAG (RFC 8693; S273)."""
    return {
        "grant_type": TOKEN_EXCHANGE,
        "requested_token_type": "urn:ietf:params:oauth:token-type:id-jag",
        "audience": audience,
        "resource": resource,
        "scope": _scope(scope),
        "subject_token": subject_token,
        "subject_token_type": subject_type,
    }


def device_form(device_code: str, *, resource: str) -> Form:
    """A code that a person types in elsewhere (RFC 8628, section 3.4)."""
    return {"grant_type": DEVICE_GRANT, "device_code": device_code, "resource": resource}


def ask_token(
    server: AuthServer,
    form: Form,
    *,
    identity: ClientIdentity | None,
    presentation: Presentation,
    sources: Sources,
    previous: Tokens | None = None,
) -> Asking[Tokens | Refused]:
    """Ask a token endpoint once, and once more where it wants its nonce in the proof.

    Args:
        server: whose endpoint.
        form: one of the forms above.
        identity: which client asks; None: nobody in particular (workload identity has no client).
        presentation: what the token shall be bound to.
        sources: time and chance.
        previous: the tokens that are renewed.

    Source:
        RFC 9449, section 8: "the client ... uses the nonce in a new request"; D16, D19.
    """
    url = server.token_endpoint
    for attempt in (1, 2):
        headers, extra = authenticate(identity, server, sources) if identity else ((), {})
        request = form_request(Purpose.TOKEN, url, {**form, **extra}, (*headers, *presentation.token_request(url)))
        answer = yield request
        presentation.take_nonce(url, answer.headers)
        # An access token that is renewed was given by the same server, which may repeat it as well.
        known = () if previous is None else (previous.access_token, previous.id_token or "")
        secrets = longest_first((*request.secrets, *known))
        result = read_token_answer(answer, now=sources.now(), previous=previous, secrets=secrets)
        if attempt == 2 or isinstance(result, Tokens) or result.code != NONCE_ERROR:
            return result
    raise AssertionError


@frozen
class DeviceCode:
    """What a person types in, and where."""

    device_code: str = field(repr=False)
    user_code: str
    verification_uri: str
    # The same with the code in it; None where the server gives none.
    complete_uri: str | None
    # Seconds between two looks, and until it is void.
    interval: float
    expires_in: float


def ask_device_code(
    server: AuthServer, *, identity: ClientIdentity, scope: tuple[str, ...] | None, resource: str, sources: Sources
) -> Asking[DeviceCode | Refused]:
    """Ask for a code to show to a person (RFC 8628, section 3.1)."""
    url = server.device_endpoint or ""
    headers, extra = authenticate(identity, server, sources)
    form = {"client_id": identity.client_id, "scope": _scope(scope), "resource": resource, **extra}
    request = form_request(Purpose.DEVICE, url, form, headers)
    answer = yield request
    document = answer.json() or {}
    code, user_code = text_in(document, "device_code"), text_in(document, "user_code")
    uri = text_in(document, "verification_uri") or text_in(document, "verification_url")
    if not answer.is_success or code is None or user_code is None or uri is None:
        refused = read_token_answer(answer, now=sources.now(), secrets=request.secrets)
        return refused if isinstance(refused, Refused) else Refused("", "the answer has no device code")
    complete = text_in(document, "verification_uri_complete")
    return DeviceCode(
        device_code=code,
        user_code=one_line(starred(user_code, request.secrets), 40),
        verification_uri=check_url(uri, f"verification_uri of {place_of(url)}"),
        complete_uri=None if complete is None else check_url(complete, f"verification_uri of {place_of(url)}"),
        interval=min(max(number_in(document, "interval") or 5.0, 1.0), 60.0),
        expires_in=min(max(number_in(document, "expires_in") or 600.0, 10.0), 3600.0),
    )
