"""Owns where logins are kept: the system's keyring, else private files, else memory. The only doorway of `keyring`.

What this is not: what a login is (`credentials`), nor who may renew it (`refreshing`).

Rules.

1. `keyring` blocks, may ask a person, and may raise anything: it is used in a thread, with a time limit, and probed
   once with a canary before anything is trusted to it. Backends that keep plain text are refused (fault 68).
2. `auto` falls back from keyring to files to memory, each time with one notice; a store that was asked for by name does
   not fall back but says what is wrong.
3. A login is looked for in the keyring, then in the files: an earlier run may have had no keyring.
"""

from __future__ import annotations

import enum
import logging
import secrets
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar

import trio
from attrs import field

from mcp_actors.errors import AuthFailed, ConfigError
from mcp_actors.files.private import read_private, write_private
from mcp_actors.values import define

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

__all__ = [
    "CredentialStore",
    "FileStore",
    "KeyringStore",
    "MemoryStore",
    "Store",
    "StoreChoice",
    "is_safe_backend",
    "system_credential",
]

log = logging.getLogger("mcp_actors.auth")

T = TypeVar("T")

SERVICE: Final = "mcp-actors"
# Seconds for one call; a locked keyring waits for a person.
KEYRING_TIMEOUT: Final = 5.0
CANARY: Final = "mcp-actors.canary"
# Modules of backends that keep no secret secret, or keep nothing.
_REFUSED: Final = ("keyrings.alt", "keyring.backends.fail", "keyring.backends.null")


class StoreChoice(enum.StrEnum):
    """What configuration may ask for: `credentials_store`."""

    AUTO = "auto"
    KEYRING = "keyring"
    FILE = "file"
    MEMORY = "memory"


class Store(Protocol):
    """Keeps one value per slot. Values are secrets. Every method is safe to cancel."""

    kind: str

    async def load(self, slot: str) -> bytes | None:
        """The value; None when there is none. Raises OSError."""
        ...

    async def save(self, slot: str, data: bytes) -> None:
        """Replace the value whole. Raises OSError."""
        ...

    async def erase(self, slot: str) -> None:
        """Remove the value, if there is one. Raises OSError."""
        ...


@define(eq=False)
class MemoryStore:
    """Keeps logins for as long as the process lives."""

    kind = "memory"
    _values: dict[str, bytes] = field(factory=dict, repr=False)

    async def load(self, slot: str) -> bytes | None:
        """See `Store`."""
        return self._values.get(slot)

    async def save(self, slot: str, data: bytes) -> None:
        """See `Store`."""
        self._values[slot] = data

    async def erase(self, slot: str) -> None:
        """See `Store`."""
        self._values.pop(slot, None)


@define(eq=False)
class FileStore:
    """One file of mode 0600 per login, in a directory of mode 0700."""

    _directory: Path
    kind = "file"

    async def load(self, slot: str) -> bytes | None:
        """See `Store`."""
        return await trio.to_thread.run_sync(read_private, self._path(slot))

    async def save(self, slot: str, data: bytes) -> None:
        """See `Store`. Cancellation: shielded; a write takes milliseconds."""
        with trio.CancelScope(shield=True):
            await trio.to_thread.run_sync(write_private, self._path(slot), data)

    async def erase(self, slot: str) -> None:
        """See `Store`."""
        await trio.to_thread.run_sync(lambda: self._path(slot).unlink(missing_ok=True))

    def _path(self, slot: str) -> Path:
        return self._directory / f"{slot}.json"


def is_safe_backend(backend: object) -> bool:
    """Whether a keyring backend keeps secrets secret."""
    module = type(backend).__module__
    return not module.startswith(_REFUSED)


def _system_keyring() -> Any:
    """The best backend that keeps secrets secret. Blocks. Raises anything."""
    import keyring
    import keyring.backend

    chosen = keyring.get_keyring()
    inner = getattr(chosen, "backends", None)
    if type(chosen).__module__ == "keyring.backends.chainer" and inner:
        chosen = next((each for each in inner if is_safe_backend(each)), chosen)
        if not is_safe_backend(chosen) or type(chosen).__module__ == "keyring.backends.chainer":
            raise OSError(0, "no keyring keeps secrets secret")
    elif not is_safe_backend(chosen):
        safe = [each for each in keyring.backend.get_all_keyring() if is_safe_backend(each)]
        usable = [each for each in safe if type(each).__module__ != "keyring.backends.chainer"]
        if not usable:
            raise OSError(0, "there is no keyring")
        chosen = max(usable, key=lambda each: float(each.priority))
    return chosen


@define(eq=False)
class KeyringStore:
    """The system's keyring, in a thread, with a time limit."""

    kind = "keyring"
    # Finds the backend; blocks and may raise anything.
    _find: Callable[[], Any] = field(default=_system_keyring, repr=False)
    _timeout: float = KEYRING_TIMEOUT
    # The backend, once it was found.
    _backend: Any = field(default=None, init=False, repr=False)

    async def probe(self) -> None:
        """Write a canary, read it back, remove it. Raises OSError: this keyring cannot be trusted with anything."""
        canary = secrets.token_hex(8)
        await self._call(lambda backend: backend.set_password(SERVICE, CANARY, canary))
        found = await self._call(lambda backend: backend.get_password(SERVICE, CANARY))
        await self._call(lambda backend: backend.delete_password(SERVICE, CANARY))
        if found != canary:
            raise OSError(0, "the keyring forgot what it was given")

    async def load(self, slot: str) -> bytes | None:
        """See `Store`."""
        text = await self._call(lambda backend: backend.get_password(SERVICE, slot))
        return text.encode() if isinstance(text, str) else None

    async def save(self, slot: str, data: bytes) -> None:
        """See `Store`. Cancellation: shielded, for at most the time limit."""
        with trio.CancelScope(shield=True):
            await self._call(lambda backend: backend.set_password(SERVICE, slot, data.decode()))

    async def erase(self, slot: str) -> None:
        """See `Store`."""

        def remove(backend: Any) -> None:
            if backend.get_password(SERVICE, slot) is not None:
                backend.delete_password(SERVICE, slot)

        await self._call(remove)

    async def _call(self, use: Callable[[Any], T]) -> T:
        def work() -> T | OSError:
            try:
                if self._backend is None:
                    self._backend = self._find()
                return use(self._backend)
            except Exception as exc:  # noqa: BLE001 - backends raise what they like (fault 68)
                return OSError(0, f"the keyring failed: {type(exc).__name__}")

        with trio.move_on_after(self._timeout):
            # Abandoned: a thread that waits for a person cannot be stopped.
            result = await trio.to_thread.run_sync(work, abandon_on_cancel=True)
            if isinstance(result, OSError):
                raise result
            return result
        raise OSError(0, f"the keyring did not answer within {self._timeout:g} s (is it locked?)")


@define(eq=False)
class CredentialStore:
    """The store that configuration asks for; decided when it is first used."""

    _choice: StoreChoice = StoreChoice.AUTO
    # For files; None: there is no place for them.
    _directory: Path | None = None
    _keyring: KeyringStore = field(factory=KeyringStore)
    # Best first; None until it is decided.
    _stores: tuple[Store, ...] | None = field(default=None, init=False)
    _lock: trio.Lock = field(factory=trio.Lock, init=False, repr=False)

    async def kind(self) -> str:
        """Where new logins go: "keyring", "file" or "memory"."""
        return (await self._decided())[0].kind

    async def is_shared(self) -> bool:
        """Whether other processes see the same logins."""
        return await self.kind() != "memory"

    async def load(self, slot: str) -> bytes | None:
        """The value of a slot; None when there is none.

        Raises:
            AuthFailed: no store could be read.

        Cancellation:
            Safe.
        """
        failure: OSError | None = None
        for store in await self._decided():
            try:
                data = await store.load(slot)
            except OSError as exc:
                failure = exc
                log.warning("Failed to read a login from the %s: %s", store.kind, _why(exc))
            else:
                if data is not None:
                    return data
        if failure is not None and self._choice is not StoreChoice.AUTO:
            raise AuthFailed(reason=f"the credential store {self._choice} cannot be read: {_why(failure)}")
        return None

    async def save(self, slot: str, data: bytes) -> str:
        """Replace the value of a slot; returns the kind of the store that took it.

        Raises:
            AuthFailed: no store took it.

        Cancellation:
            Shielded until it is written, for at most a few seconds.
        """
        stores = await self._decided()
        for position, store in enumerate(stores):
            try:
                await store.save(slot, data)
            except OSError as exc:
                log.warning("Failed to keep a login in the %s: %s", store.kind, _why(exc))
            else:
                await self._forget(stores[:position] + stores[position + 1 :], slot)
                return store.kind
        raise AuthFailed(reason=f"the login cannot be kept: credentials_store is {self._choice}")

    async def erase(self, slot: str) -> None:
        """Remove the value of a slot from every store. Cancellation: safe."""
        await self._forget(await self._decided(), slot)

    async def _forget(self, stores: tuple[Store, ...], slot: str) -> None:
        """An old value elsewhere would come back to life."""
        for store in stores:
            try:
                await store.erase(slot)
            except OSError as exc:
                log.warning("Failed to remove a login from the %s: %s", store.kind, _why(exc))

    async def _decided(self) -> tuple[Store, ...]:
        async with self._lock:
            if self._stores is None:
                self._stores = await self._decide()
            return self._stores

    async def _decide(self) -> tuple[Store, ...]:
        if self._choice is StoreChoice.MEMORY:
            return (MemoryStore(),)
        files: tuple[Store, ...] = () if self._directory is None else (FileStore(self._directory),)
        if self._choice is StoreChoice.FILE:
            if not files:
                raise ConfigError(key="credentials_store", reason="file needs a state directory")
            return files
        try:
            await self._keyring.probe()
        except OSError as exc:
            if self._choice is StoreChoice.KEYRING:
                raise AuthFailed(reason=f"credentials_store is keyring, but {_why(exc)}") from exc
            fallback = "private files" if files else "memory only, so logins end with this process"
            log.info("Kept logins in %s: %s", fallback, _why(exc))
            return (*files, MemoryStore())
        return (self._keyring, *files, MemoryStore()) if self._choice is StoreChoice.AUTO else (self._keyring,)


def _why(exc: OSError) -> str:
    return (exc.strerror or type(exc).__name__).lower()


def system_credential(environ: Mapping[str, str], name: str) -> str | None:
    """Read a credential that systemd passed to us (``LoadCredential=mcp-actors.NAME:...``). Blocks, read-only.

    Args:
        environ: variable name -> text; ``CREDENTIALS_DIRECTORY`` is looked at.
        name: what follows ``mcp-actors.``, such as ``github.client-secret``.

    Returns:
        The text without blanks around it; None when there is none.
    """
    from pathlib import Path

    directory = environ.get("CREDENTIALS_DIRECTORY")
    if not directory or "/" in name or "\0" in name:
        return None
    try:
        text = (Path(directory) / f"mcp-actors.{name}").read_bytes()[: 64 * 1024].decode()
    except (OSError, UnicodeDecodeError):
        return None
    return text.strip() or None
