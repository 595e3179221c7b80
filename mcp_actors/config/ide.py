"""Owns what the lock file of an editor's extension says: where its MCP server listens, for which folders, its token.

What this is not: finding those files, or whether their editor still runs (`files.ide`).

Rules.

1. The address is made here, on loopback: a lock file names a port, never a host.
2. A file that is not understood is no editor; nobody is told of it, for they are another program's.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Final

from attrs import field

from mcp_actors.config.jsonc import decode_text, parse_json
from mcp_actors.config.specs import RemoteTarget, Scope, ServerSpec, TransportName
from mcp_actors.errors import ConfigError
from mcp_actors.values import frozen

if TYPE_CHECKING:
    from mcp_actors.jsontypes import Json

__all__ = ["CREDENTIAL_HEADER", "IDE_NAME", "IdeLock", "choose_ide", "parse_lock", "spec_of_ide"]

# The editor's server has this name, and no other server may (S033).
IDE_NAME: Final = "ide"
CREDENTIAL_HEADER: Final = "X-Claude-Code-Ide-Authorization"
MAX_PORT: Final = 65535


@frozen
class IdeLock:
    """An editor that waits for us. `folders` are absolute, as it wrote them, without a slash at the end."""

    file: str
    port: int
    folders: tuple[str, ...] = ()
    transport: TransportName = TransportName.WS_IDE
    token: str | None = field(default=None, repr=False)
    # Process id of the editor; None: it did not say.
    pid: int | None = None


def parse_lock(data: bytes, file: str, port: str) -> IdeLock | None:
    """Read a lock file; None when it is none.

    Args:
        data: its bytes.
        file: its path, for messages.
        port: what stands before ``.lock`` in its name.

    Source:
        S086.
    """
    if not (port.isascii() and port.isdigit() and 0 < int(port) <= MAX_PORT):
        return None
    try:
        value = parse_json(decode_text(data, file), file).value
    except ConfigError:
        return None
    if not isinstance(value, Mapping):
        return None
    token, pid = value.get("authToken"), value.get("pid")
    return IdeLock(
        file,
        int(port),
        _folders(value.get("workspaceFolders")),
        TransportName.WS_IDE if value.get("transport") == "ws" else TransportName.SSE_IDE,
        token if isinstance(token, str) and token.isascii() and token.isprintable() and token else None,
        pid if isinstance(pid, int) and not isinstance(pid, bool) and pid > 0 else None,
    )


def _folders(value: Json) -> tuple[str, ...]:
    named = value if isinstance(value, list) else []
    return tuple(folder.rstrip("/") or "/" for folder in named if isinstance(folder, str) and folder.startswith("/"))


def choose_ide(locks: Iterable[IdeLock], directories: Iterable[str]) -> IdeLock | None:
    """The editor that has the working directory open; of several the one with the nearest folder, then the first.

    Args:
        locks: of editors that run, the preferred ones first.
        directories: the working directory and those above it, nearest first.
    """
    known = tuple(locks)
    for directory in directories:
        found = next((lock for lock in known if directory in lock.folders), None)
        if found is not None:
            return found
    return None


def spec_of_ide(lock: IdeLock) -> ServerSpec:
    """How to reach the editor's server (rule 1)."""
    is_socket = lock.transport is TransportName.WS_IDE
    url = f"ws://127.0.0.1:{lock.port}" if is_socket else f"http://127.0.0.1:{lock.port}/sse"
    headers = {} if lock.token is None else {CREDENTIAL_HEADER: lock.token}
    return ServerSpec(
        IDE_NAME,
        RemoteTarget(url, lock.transport, headers),
        scope=Scope.DYNAMIC,
        source=lock.file,
        raw={"type": str(lock.transport), "url": url},
    )
