"""Tests of `auth.presentation` and of the signing beneath it (`auth.jwt`)."""

from __future__ import annotations

import base64
import hashlib

import pytest
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding, rsa, utils
from oauth_peer import Clock

from mcp_actors.auth.jwt import SigningKey, read_claims, read_header
from mcp_actors.auth.presentation import Bearer, Dpop, make_presentation
from mcp_actors.auth.tokens import Tokens
from mcp_actors.errors import ConfigError

BOUND = Tokens("token-1", "DPoP")


def dpop():
    return Dpop(SigningKey.generate(), Clock().sources)


def proof_of(headers):
    return dict(headers)["DPoP"]


@pytest.mark.parametrize("kind", ["Bearer", "bearer", "user", "bot"])
def test_odd_token_types_are_bearers(kind):
    """Whatever it is called, it is sent as Bearer (S264)."""
    assert Bearer().headers(Tokens("a", kind), "POST", "https://h") == [("Authorization", "Bearer a")]


def test_a_bound_token_goes_with_a_fresh_proof():
    """Scheme DPoP, ath of the token, htu without query, another jti each time (D19)."""
    presentation = dpop()

    headers = presentation.headers(BOUND, "POST", "https://h:8443/mcp?secret=1#f")
    again = presentation.headers(BOUND, "POST", "https://h:8443/mcp?secret=1#f")

    assert dict(headers)["Authorization"] == "DPoP token-1"
    header, claims = read_header(proof_of(headers)), read_claims(proof_of(headers))
    assert (header["typ"], header["alg"], header["jwk"]["kty"]) == ("dpop+jwt", "ES256", "EC")
    assert set(header["jwk"]) == {"crv", "kty", "x", "y"}
    assert (claims["htm"], claims["htu"]) == ("POST", "https://h:8443/mcp")
    digest = hashlib.sha256(b"token-1").digest()
    assert claims["ath"] == base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
    assert claims["jti"] != read_claims(proof_of(again))["jti"]


def test_a_token_request_has_a_proof_without_token():
    """RFC 9449, section 5."""
    assert "ath" not in read_claims(proof_of(dpop().token_request("https://as/token")))


def test_a_server_that_bound_nothing_gets_a_bearer():
    """The answer's token_type decides the scheme."""
    assert dpop().headers(Tokens("a"), "POST", "https://h") == [("Authorization", "Bearer a")]


def test_nonces_are_kept_per_origin():
    """The newest of each origin; the authorization server's does not reach the MCP server."""
    presentation = dpop()

    assert presentation.take_nonce("https://as/token", {"dpop-nonce": "n1"})
    assert not presentation.take_nonce("https://as/other", {"dpop-nonce": "n1"})
    assert presentation.take_nonce("https://as/other", {"dpop-nonce": "n2"})

    assert read_claims(proof_of(presentation.token_request("https://as/token")))["nonce"] == "n2"
    assert "nonce" not in read_claims(proof_of(presentation.headers(BOUND, "POST", "https://h/mcp")))


@pytest.mark.parametrize("nonce", [None, "", "a\r\nb", "x" * 5000, "é"])
def test_unusable_nonces_are_ignored(nonce):
    """Nothing that cannot be sent is kept."""
    assert not dpop().take_nonce("https://h", {"dpop-nonce": nonce})


def test_nonces_are_bounded():
    """A hundred origins do not fill the memory."""
    presentation = dpop()
    for number in range(100):
        presentation.take_nonce(f"https://h{number}", {"dpop-nonce": "n"})

    assert len(presentation._nonces) <= 8


def test_a_stored_key_presents_again():
    """The key of a stored login makes proofs with the same public key."""
    key = SigningKey.generate()

    again = make_presentation(key.pem(), Clock().sources)

    assert read_header(proof_of(again.headers(BOUND, "GET", "https://h")))["jwk"] == key.public_jwk()
    assert isinstance(make_presentation(None, Clock().sources), Bearer)


def pem(key):
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    ).decode()


RSA_KEY = rsa.generate_private_key(65537, 2048)
KEYS = [
    (ec.generate_private_key(ec.SECP256R1()), "ES256"),
    (ec.generate_private_key(ec.SECP384R1()), "ES384"),
    (RSA_KEY, "RS256"),
    (RSA_KEY, "RS512"),
    (RSA_KEY, "PS256"),
    (ed25519.Ed25519PrivateKey.generate(), "EdDSA"),
]


def is_verified(key, algorithm, token):
    text, _, signature = token.rpartition(".")
    raw = base64.urlsafe_b64decode(signature + "==")
    public, data = key.public_key(), text.encode()
    digest = {"256": hashes.SHA256, "384": hashes.SHA384, "512": hashes.SHA512}.get(algorithm[2:], hashes.SHA256)()
    if algorithm == "EdDSA":
        public.verify(raw, data)
    elif algorithm.startswith("ES"):
        half = len(raw) // 2
        der = utils.encode_dss_signature(int.from_bytes(raw[:half], "big"), int.from_bytes(raw[half:], "big"))
        public.verify(der, data, ec.ECDSA(digest))
    elif algorithm.startswith("PS"):
        public.verify(raw, data, padding.PSS(padding.MGF1(digest), digest.digest_size), digest)
    else:
        public.verify(raw, data, padding.PKCS1v15(), digest)
    return True


@pytest.mark.parametrize(("key", "algorithm"), KEYS)
def test_signatures_are_verified_by_the_library(key, algorithm):
    """Each algorithm that we offer signs what others can check."""
    ours = SigningKey.load(pem(key), algorithm)

    token = ours.sign({"typ": "JWT"}, {"sub": "x"})

    assert read_header(token) == {"alg": algorithm, "typ": "JWT"}
    assert is_verified(key, algorithm, token)


@pytest.mark.parametrize(
    ("text", "algorithm"),
    [
        ("no key", None),
        (pem(RSA_KEY), "ES256"),
        (pem(ec.generate_private_key(ec.SECP256K1())), None),
        (pem(RSA_KEY), "HS256"),
        (pem(RSA_KEY), "none"),
    ],
)
def test_unusable_keys_are_errors_without_their_text(text, algorithm):
    """No symmetric algorithm, no foreign curve, and nothing of the key in the error."""
    with pytest.raises(ConfigError) as caught:
        SigningKey.load(text, algorithm)

    assert text.splitlines()[-1] not in str(caught.value)


@pytest.mark.parametrize("token", ["", "a.b", "a.b.c", "é.é.é", "e30.W10.x", "." * 2, "x" * 100_000])
def test_what_is_no_jwt_has_no_claims(token):
    """Looking into foreign tokens never fails."""
    assert read_claims(token) in (None, {})
