"""Which identity provider the company has, in this run and the next."""

from __future__ import annotations

import pytest
import trio

from mcp_actors.auth.company_desk import CompanyDesk
from mcp_actors.auth.company_file import load_company
from mcp_actors.auth.store import CredentialStore, StoreChoice
from mcp_actors.auth.xaa import Company, CompanySetup
from mcp_actors.errors import ConfigError

IDP = "https://idp.example.com"
SETUP = CompanySetup(IDP, "idp-client", client_secret="idp-secret")


def desk(store, state_dir, environ=None):
    return CompanyDesk(store, environ or {}, state_dir, lambda setup, slot: Company(setup, None, None, None))


async def test_a_company_is_remembered_without_its_secret(tmp_path):
    """The file has issuer and client; the secret is in the store (S279)."""
    store = CredentialStore(StoreChoice.MEMORY)

    await desk(store, tmp_path).set_up(SETUP)

    assert load_company(tmp_path) == CompanySetup(IDP, "idp-client")
    assert b"idp-secret" not in (tmp_path / "xaa.json").read_bytes()
    assert (await desk(store, tmp_path).current()).setup == SETUP


async def test_the_environment_may_hold_the_secret(tmp_path):
    """A secret of the environment goes before the one of the store."""
    store = CredentialStore(StoreChoice.MEMORY)
    await desk(store, tmp_path).set_up(SETUP)

    company = await desk(store, tmp_path, {"MCP_XAA_IDP_CLIENT_SECRET": "of-this-run"}).current()

    assert company.setup.client_secret == "of-this-run"


async def test_nothing_is_remembered_without_a_state_directory():
    """A company that is used counts for this run; one that cannot be remembered is refused."""
    memory = desk(CredentialStore(StoreChoice.MEMORY), None)

    with pytest.raises(ConfigError, match="state directory"):
        await memory.set_up(SETUP)

    assert await memory.current() is None
    assert memory.use(SETUP) is await memory.current()


async def test_who_asks_at_the_same_time_gets_the_same_login(tmp_path):
    """S279: two servers that come up together share the company, and do not read it twice into two."""
    store = CredentialStore(StoreChoice.MEMORY)
    await desk(store, tmp_path).set_up(SETUP)
    fresh, found = desk(store, tmp_path), []

    async def ask():
        found.append(await fresh.current())

    async with trio.open_nursery() as nursery:
        for _ in range(3):
            nursery.start_soon(ask)

    assert found == [await fresh.current()] * 3
