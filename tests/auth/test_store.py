"""Tests of `auth.store`."""

from __future__ import annotations

import logging
import sys
import threading
import types

import pytest
import trio

from mcp_actors.auth.store import (
    CredentialStore,
    FileStore,
    KeyringStore,
    StoreChoice,
    is_safe_backend,
    system_credential,
)
from mcp_actors.errors import AuthFailed, ConfigError


class Keyring:
    """A backend in memory."""

    def __init__(self):
        self.values = {}
        self.fails = False

    def set_password(self, service, name, value):
        if self.fails:
            raise RuntimeError("a foreign exception with SECRET in it")
        self.values[service, name] = value

    def get_password(self, service, name):
        if self.fails:
            raise RuntimeError("locked")
        return self.values.get((service, name))

    def delete_password(self, service, name):
        del self.values[service, name]


def broken():
    raise RuntimeError("no D-Bus, and SECRET")


def keyring(backend):
    return KeyringStore(lambda: backend)


async def test_the_keyring_is_probed_once_and_used(tmp_path):
    """A canary goes in, comes out and is gone; then logins go there (fault 68)."""
    backend = Keyring()
    store = CredentialStore(StoreChoice.AUTO, tmp_path / "c", keyring(backend))

    assert await store.save("slot", b"data") == "keyring"

    assert await store.load("slot") == b"data"
    assert list(backend.values) == [("mcp-actors", "slot")]
    assert not (tmp_path / "c" / "slot.json").exists()


@pytest.mark.parametrize("find", [broken, lambda: None])
async def test_without_a_keyring_files_are_used(tmp_path, caplog, find):
    """Whatever class of exception it fails with, one notice and private files (fault 68)."""
    caplog.set_level(logging.DEBUG)
    store = CredentialStore(StoreChoice.AUTO, tmp_path / "c", KeyringStore(find))

    assert await store.save("slot", b"data") == "file"
    assert await store.load("slot") == b"data"

    assert len([record for record in caplog.records if "private files" in record.getMessage()]) == 1
    assert "SECRET" not in caplog.text


async def test_without_keyring_and_place_memory_is_used():
    """Logins end with the process, which is said."""
    store = CredentialStore(StoreChoice.AUTO, None, KeyringStore(broken))

    assert await store.save("slot", b"data") == "memory"
    assert not await store.is_shared()


async def test_a_keyring_that_forgets_is_not_trusted(tmp_path):
    """What comes out must be what went in."""
    backend = Keyring()
    backend.get_password = lambda service, name: None

    assert await CredentialStore(StoreChoice.AUTO, tmp_path / "c", keyring(backend)).kind() == "file"


async def test_a_keyring_that_blocks_is_left(tmp_path):
    """A locked keyring waits for a prompt; we do not (fault 68)."""
    release = threading.Event()

    def blocks():
        release.wait(20)

    store = CredentialStore(StoreChoice.AUTO, tmp_path / "c", KeyringStore(blocks, timeout=0.05))
    try:
        with trio.fail_after(5):
            assert await store.kind() == "file"
    finally:
        release.set()


@pytest.mark.parametrize(("choice", "error"), [(StoreChoice.KEYRING, AuthFailed), (StoreChoice.FILE, ConfigError)])
async def test_a_store_that_was_asked_for_does_not_fall_back(choice, error):
    """It says what is wrong."""
    with pytest.raises(error):
        await CredentialStore(choice, None, KeyringStore(broken)).save("slot", b"x")


async def test_a_keyring_that_fails_later_falls_back_and_leaves_nothing_old(tmp_path):
    """The login moves to a file; once the keyring works again, the file goes."""
    backend = Keyring()
    store = CredentialStore(StoreChoice.AUTO, tmp_path / "c", keyring(backend))
    await store.save("slot", b"one")
    backend.fails = True

    assert await store.save("slot", b"two") == "file"
    assert await store.load("slot") == b"two"
    backend.fails = False
    assert await store.save("slot", b"three") == "keyring"

    assert not (tmp_path / "c" / "slot.json").exists()
    assert await store.load("slot") == b"three"


async def test_erasing_removes_it_everywhere(tmp_path):
    """From the keyring and from files of an earlier run."""
    backend = Keyring()
    await FileStore(tmp_path / "c").save("slot", b"old")
    store = CredentialStore(StoreChoice.AUTO, tmp_path / "c", keyring(backend))
    assert await store.load("slot") == b"old"
    await store.save("slot", b"new")

    await store.erase("slot")

    assert await store.load("slot") is None


@pytest.mark.parametrize(
    ("module", "expected"),
    [
        ("keyrings.alt.file", False),
        ("keyring.backends.fail", False),
        ("keyring.backends.null", False),
        ("keyring.backends.SecretService", True),
        ("keyring.backends.macOS", True),
    ],
)
def test_plaintext_backends_are_refused(module, expected):
    """keyrings.alt keeps plain text and wins silently when it is installed (fault 68)."""
    backend = type("Keyring", (), {"__module__": module})()

    assert is_safe_backend(backend) is expected


def test_a_chain_of_backends_is_searched_for_a_safe_one(monkeypatch):
    """keyring's own choice may hide a plaintext backend inside a chain."""
    from mcp_actors.auth.store import _system_keyring

    plain = type("Plain", (), {"__module__": "keyrings.alt.file", "priority": 9})()
    safe = type("Safe", (), {"__module__": "keyring.backends.SecretService", "priority": 1})()
    chain = type("Chain", (), {"__module__": "keyring.backends.chainer", "backends": [plain, safe], "priority": 10})()
    fake, backend = types.ModuleType("keyring"), types.ModuleType("keyring.backend")
    fake.get_keyring, fake.backend, backend.get_all_keyring = lambda: chain, backend, lambda: [plain, chain]
    monkeypatch.setitem(sys.modules, "keyring", fake)
    monkeypatch.setitem(sys.modules, "keyring.backend", backend)

    assert _system_keyring() is safe

    chain.backends = [plain]
    with pytest.raises(OSError, match="keeps secrets"):
        _system_keyring()
    fake.get_keyring = lambda: plain
    with pytest.raises(OSError, match="no keyring"):
        _system_keyring()


def test_systemd_credentials_are_read_only_files(tmp_path):
    """`LoadCredential=mcp-actors.NAME:...`."""
    (tmp_path / "mcp-actors.github.client-secret").write_text("s3cret\n")
    environ = {"CREDENTIALS_DIRECTORY": str(tmp_path)}

    assert system_credential(environ, "github.client-secret") == "s3cret"
    assert system_credential(environ, "other.client-secret") is None
    assert system_credential(environ, "../x") is None
    assert system_credential({}, "github.client-secret") is None


def test_no_value_is_in_a_repr(tmp_path):
    """A store shows where it is, never what it holds."""
    store = CredentialStore(StoreChoice.MEMORY)
    trio.run(store.save, "slot", b"CANARY")

    assert "CANARY" not in repr(store)


async def test_where_nothing_can_be_written_memory_is_used(tmp_path, caplog):
    """A file in the way of the directory: the login works for this process, with a notice."""
    (tmp_path / "c").write_text("")
    store = CredentialStore(StoreChoice.AUTO, tmp_path / "c", KeyringStore(broken))

    assert await store.save("slot", b"x") == "memory"

    assert await store.load("slot") == b"x"
    assert "Failed to keep a login in the file" in caplog.text
