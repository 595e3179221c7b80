"""Owns signing of the JWTs that we make: DPoP proofs and client assertions; and a look into those of others.

What this is not: verification. We are never the party that trusts a JWT; what is read here is a hint.

`cryptography` is imported when the first key is made or read: it comes with the extra ``jwt``.
"""

from __future__ import annotations

import base64
import binascii
from typing import TYPE_CHECKING, Any, Final

from attrs import field

from mcp_actors.auth.pkce import b64url
from mcp_actors.errors import ConfigError, RemoteProtocolError
from mcp_actors.protocol.jsonrpc import decode_object, encode
from mcp_actors.values import frozen

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mcp_actors.jsontypes import Json

__all__ = ["OWN_ALGORITHMS", "SigningKey", "read_claims", "read_header"]

# Maps the curve's name -> its algorithm; the others are by kind of key.
_CURVES: Final = {"secp256r1": ("ES256", "P-256", 32), "secp384r1": ("ES384", "P-384", 48)}
# What a key of our own making may sign with, what most servers know first.
OWN_ALGORITHMS: Final = ("ES256", "ES384", "EdDSA")
_RSA: Final = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512")


def _crypto() -> Any:
    try:
        from cryptography.hazmat.primitives import serialization
    except ImportError as exc:
        raise ConfigError(
            reason="signing needs the package cryptography", remedy="install mcp-actors[jwt]", key="oauth"
        ) from exc
    return serialization


@frozen
class SigningKey:
    """A private key and the algorithm that it signs with."""

    algorithm: str
    _key: Any = field(repr=False)

    @classmethod
    def generate(cls, algorithm: str = OWN_ALGORITHMS[0]) -> SigningKey:
        """A new key for one of `OWN_ALGORITHMS`. Raises `ConfigError` without the package."""
        _crypto()
        from cryptography.hazmat.primitives.asymmetric import ec, ed25519

        if algorithm == "EdDSA":
            return cls(algorithm, ed25519.Ed25519PrivateKey.generate())
        curve = {"ES256": ec.SECP256R1, "ES384": ec.SECP384R1}[algorithm]
        return cls(algorithm, ec.generate_private_key(curve()))

    @classmethod
    def load(cls, pem: str, algorithm: str | None = None) -> SigningKey:
        """Read a private key from PEM.

        Raises:
            ConfigError: it is no key that we can use, or not for that algorithm. Says nothing of its text.
        """
        serialization = _crypto()
        from cryptography.exceptions import UnsupportedAlgorithm
        from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa

        try:
            key = serialization.load_pem_private_key(pem.encode(), password=None)
        except (ValueError, TypeError, UnsupportedAlgorithm):
            raise ConfigError(reason="the private key cannot be read as PEM without a password", key="oauth") from None
        if isinstance(key, ec.EllipticCurvePrivateKey) and key.curve.name in _CURVES:
            fitting: tuple[str, ...] = (_CURVES[key.curve.name][0],)
        elif isinstance(key, rsa.RSAPrivateKey):
            fitting = _RSA
        elif isinstance(key, ed25519.Ed25519PrivateKey):
            fitting = ("EdDSA",)
        else:
            raise ConfigError(reason="the private key is of a kind that is not supported", key="oauth")
        if algorithm is not None and algorithm not in fitting:
            raise ConfigError(reason=f"the private key does not sign with {algorithm}", key="oauth.signingAlgorithm")
        return cls(algorithm or fitting[0], key)

    def pem(self) -> str:
        """The private key as text, to be stored: a secret."""
        serialization = _crypto()
        text: bytes = self._key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        return text.decode()

    def public_jwk(self) -> dict[str, str]:
        """The public key as a JWK, its members in the order of RFC 7638."""
        numbers = getattr(self._key.public_key(), "public_numbers", None)
        if numbers is None:
            raw: bytes = self._key.public_key().public_bytes_raw()
            return {"crv": "Ed25519", "kty": "OKP", "x": b64url(raw)}
        public = numbers()
        if hasattr(public, "n"):
            return {"e": _integer(public.e), "kty": "RSA", "n": _integer(public.n)}
        _, name, size = _CURVES[public.curve.name]
        x, y = public.x.to_bytes(size, "big"), public.y.to_bytes(size, "big")
        return {"crv": name, "kty": "EC", "x": b64url(x), "y": b64url(y)}

    def sign(self, header: Mapping[str, Json], claims: Mapping[str, Json]) -> str:
        """Write a signed JWT; `alg` is added to the header. About 0.1 ms with ES256."""
        text = f"{b64url(encode({'alg': self.algorithm, **header}))}.{b64url(encode(claims))}"
        return f"{text}.{b64url(self._signature(text.encode()))}"

    def _signature(self, data: bytes) -> bytes:
        from cryptography.hazmat.primitives import hashes
        from cryptography.hazmat.primitives.asymmetric import ec, padding, utils

        if self.algorithm == "EdDSA":
            signature: bytes = self._key.sign(data)
            return signature
        digests: dict[str, type[Any]] = {"256": hashes.SHA256, "384": hashes.SHA384, "512": hashes.SHA512}
        digest = digests[self.algorithm[2:]]()
        if self.algorithm.startswith("ES"):
            size = _CURVES[self._key.curve.name][2]
            r, s = utils.decode_dss_signature(self._key.sign(data, ec.ECDSA(digest)))
            return r.to_bytes(size, "big") + s.to_bytes(size, "big")
        pads: Any = padding.PKCS1v15()
        if self.algorithm.startswith("PS"):
            pads = padding.PSS(padding.MGF1(digest), digest.digest_size)
        signature = self._key.sign(data, pads, digest)
        return signature


def _integer(number: int) -> str:
    return b64url(number.to_bytes((number.bit_length() + 7) // 8, "big"))


def read_claims(token: str) -> dict[str, Json] | None:
    """The claims of a JWT, unverified; None when it is none."""
    return _part(token, 1)


def read_header(token: str) -> dict[str, Json] | None:
    """The header of a JWT, unverified; None when it is none."""
    return _part(token, 0)


def _part(token: str, index: int) -> dict[str, Json] | None:
    parts = token.split(".")
    if len(parts) != 3 or len(token) > 64 * 1024:
        return None
    try:
        return decode_object(base64.urlsafe_b64decode(parts[index] + "=" * (-len(parts[index]) % 4)))
    except (ValueError, binascii.Error, RemoteProtocolError):
        return None
