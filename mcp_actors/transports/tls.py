"""Owns whom TLS trusts and by which certificate we are known, as environment variables say (S093).

What this is not: a connection, nor a choice for one server: the variables hold for all that goes over a network,
signing in included, as the clients that made them known have it.

::

    SSL_CERT_FILE                        authorities to trust instead of the shipped ones
    SSL_CERT_DIR                         the same, a directory of OpenSSL's kind; SSL_CERT_FILE wins
    NODE_EXTRA_CA_CERTS                  authorities to trust besides
    CLAUDE_CODE_CLIENT_CERT              our certificate, shown to servers that ask for one (mTLS)
    CLAUDE_CODE_CLIENT_KEY               its key, where the certificate's file does not hold it
    CLAUDE_CODE_CLIENT_KEY_PASSPHRASE    what that is encrypted with
"""

from __future__ import annotations

import ssl
import stat
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Self

from attrs import field

from mcp_actors.errors import ConnectFailed
from mcp_actors.values import frozen

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

__all__ = ["TlsChoice"]

CERT_FILE, CERT_DIR, EXTRA = "SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS"
CLIENT_CERT, CLIENT_KEY = "CLAUDE_CODE_CLIENT_CERT", "CLAUDE_CODE_CLIENT_KEY"
PASSPHRASE = "CLAUDE_CODE_CLIENT_KEY_PASSPHRASE"  # noqa: S105 - the variable's name


@frozen
class TlsChoice:
    """What the variables say; an empty one is an absent one."""

    cert_file: str = ""
    cert_dir: str = ""
    extra: str = ""
    client_cert: str = ""
    client_key: str = ""
    passphrase: str = field(default="", repr=False)

    @classmethod
    def of(cls, environ: Mapping[str, str]) -> Self:
        """Read it; `environ` maps variable name -> text."""
        names = (CERT_FILE, CERT_DIR, EXTRA, CLIENT_CERT, CLIENT_KEY, PASSPHRASE)
        return cls(*(environ.get(name, "") for name in names))

    def make_context(self, make_default: Callable[[], ssl.SSLContext]) -> ssl.SSLContext:
        """Make the context of this choice. Reads files.

        Args:
            make_default: makes the context that trusts the shipped authorities.

        Raises:
            ConnectFailed: a file cannot be used; names its variable.
        """
        paths = (self.cert_file, self.extra, self.client_cert, self.client_key)
        for variable, path in zip((CERT_FILE, EXTRA, CLIENT_CERT, CLIENT_KEY), paths, strict=True):
            _refuse_pipe(variable, path)
        if self.cert_file:
            with _naming(CERT_FILE):
                context = ssl.create_default_context(cafile=self.cert_file)
        elif self.cert_dir:
            with _naming(CERT_DIR):
                context = ssl.create_default_context(capath=self.cert_dir)
        else:
            context = make_default()
        if self.extra:
            with _naming(EXTRA):
                context.load_verify_locations(cafile=self.extra)
        if self.client_cert:
            with _naming(CLIENT_CERT):
                # Without a password OpenSSL would ask at the terminal for the one of an encrypted key, and wait.
                context.load_cert_chain(self.client_cert, self.client_key or None, password=self.passphrase)
        elif self.client_key:
            raise ConnectFailed(reason=f"{CLIENT_KEY} is set without {CLIENT_CERT}", can_retry=False)
        return context


def _refuse_pipe(variable: str, path: str) -> None:
    """What is there and no file is not opened: the library would wait for a writer, and everybody with it."""
    with suppress(OSError):
        if path and not stat.S_ISREG(Path(path).stat().st_mode):
            raise ConnectFailed(reason=f"{variable} cannot be used: it names no regular file", can_retry=False)


@contextmanager
def _naming(variable: str) -> Iterator[None]:
    try:
        yield
    except (OSError, ValueError) as exc:  # of files and of TLS; of a passphrase that is too long
        why = exc.reason if isinstance(exc, ssl.SSLError) else exc.strerror if isinstance(exc, OSError) else str(exc)
        raise ConnectFailed(
            reason=f"{variable} cannot be used: {why or 'not PEM, or encrypted with other words'}", can_retry=False
        ) from exc
