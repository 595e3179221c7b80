"""Owns the secrets of configured clients that do not stand in their entries: in a file, from systemd, kept by ``add``.

What this is not: the store itself (`store`), nor which client we are (`identity`).

A kept secret belongs to the server's URL, the client's id and the authorization server that the entry names, not to the
server's name: an entry that sends the same client elsewhere does not find it.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

import trio
from attrs import evolve, field

from mcp_actors.auth.credentials import slot_of
from mcp_actors.auth.options import GrantKind
from mcp_actors.auth.store import system_credential
from mcp_actors.errors import ConfigError
from mcp_actors.values import define

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mcp_actors.auth.options import AuthOptions
    from mcp_actors.auth.store import CredentialStore

__all__ = ["ClientSecrets", "read_secret_file"]

PREFIX: Final = "client-secret"
MAX_FILE_BYTES: Final = 64 * 1024


@define(eq=False)
class ClientSecrets:
    """Finds what a client proves itself with, when it is used."""

    _store: CredentialStore = field(repr=False)
    # Variable name -> text: says where systemd's credentials lie.
    _environ: Mapping[str, str] = field(repr=False)

    async def complete(self, options: AuthOptions, url: str, name: str) -> AuthOptions:
        """Fill in the key or the secret of the configured client; what the entry says goes first.

        Args:
            options: as configured.
            url: of the MCP server.
            name: of the server, as systemd's credentials are named after it.

        Raises:
            ConfigError: the file of the key cannot be read.
            AuthFailed: the store cannot be read.

        Cancellation:
            Safe.

        Source:
            S261, S361.
        """
        if options.private_key is None and options.private_key_file is not None:
            text = await trio.to_thread.run_sync(read_secret_file, options.private_key_file, "oauth.privateKeyFile")
            options = evolve(options, private_key=text)
        if options.client_id is None or options.client_secret is not None or options.private_key is not None:
            return options
        secret = await trio.to_thread.run_sync(system_credential, self._environ, f"{name}.client-secret")
        if secret is None and options.auth_method != "none":
            kept = await self._store.load(_slot(url, options))
            secret = None if kept is None else kept.decode()
        return evolve(options, client_secret=secret)

    async def keep(self, options: AuthOptions, url: str, secret: str) -> str:
        """Keep the secret for all runs; returns the kind of the store. Raises `AuthFailed`. Cancellation: shielded."""
        return await self._store.save(_slot(url, options), secret.encode())

    async def forget(self, options: AuthOptions, url: str) -> None:
        """Remove a kept secret, if there is one. Cancellation: safe."""
        await self._store.erase(_slot(url, options))


def _slot(url: str, options: AuthOptions) -> str:
    # However the person signs in (``login --code``), it is the same client.
    return f"{PREFIX}.{slot_of(url, evolve(options, grant=GrantKind.AUTHORIZATION_CODE))}"


def read_secret_file(path: str, key: str) -> str:
    """Read a small file of a secret. Blocks. Raises `ConfigError`, which names `key`."""
    try:
        with Path(path).expanduser().open("rb") as file:
            return file.read(MAX_FILE_BYTES).decode().strip()
    except (OSError, UnicodeDecodeError, RuntimeError):
        raise ConfigError(reason="the file cannot be read", key=key) from None
