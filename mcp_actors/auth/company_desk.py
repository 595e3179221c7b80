"""Owns which identity provider the company has: as set up in this run, or remembered from an earlier one.

What this is not: the company's login (`xaa`), nor the file that remembers it (`company_file`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import trio
from attrs import evolve, field

from mcp_actors.auth.company_file import load_company, save_company
from mcp_actors.auth.credentials import slot_of
from mcp_actors.auth.options import AuthOptions, GrantKind
from mcp_actors.errors import ConfigError
from mcp_actors.values import define

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from mcp_actors.auth.store import CredentialStore
    from mcp_actors.auth.xaa import Company, CompanySetup

__all__ = ["CompanyDesk"]

COMPANY_SECRET: Final = "xaa-client-secret"  # noqa: S105 - a name
SECRET_VARIABLE: Final = "MCP_XAA_IDP_CLIENT_SECRET"  # noqa: S105 - a name


@define(eq=False)
class CompanyDesk:
    """One per runtime, at its `AuthDesk`."""

    _store: CredentialStore = field(repr=False)
    _environ: Mapping[str, str] = field(repr=False)
    # Where the setup is kept between runs; None: nowhere.
    _state_dir: Path | None
    # Makes the company's login, which is kept under the given slot.
    _open: Callable[[CompanySetup, str], Company] = field(repr=False)
    # Where it was set up, or read; None: not yet, or there is none, and no XAA.
    _current: Company | None = field(default=None, init=False)

    def use(self, setup: CompanySetup) -> Company:
        """Use this identity provider from now on."""
        self._current = self._open(setup, _slot_of(setup))
        return self._current

    async def current(self) -> Company | None:
        """The identity provider that was set up; None: none was. Cancellation: safe.

        Raises:
            ConfigError: the file that ``xaa setup`` wrote cannot be used.
        """
        if self._current is None and self._state_dir is not None:
            setup = await trio.to_thread.run_sync(load_company, self._state_dir)
            if setup is not None:
                secret = self._environ.get(SECRET_VARIABLE)
                if not secret:
                    stored = await self._store.load(f"{COMPANY_SECRET}.{_slot_of(setup)}")
                    secret = None if stored is None else stored.decode()
                if self._current is None:  # nobody else has read it meanwhile: one company has one login
                    self.use(evolve(setup, client_secret=secret or None))
        return self._current

    async def set_up(self, setup: CompanySetup) -> str | None:
        """Remember the identity provider for all runs; returns the kind of store of its secret. Cancellation: safe."""
        if self._state_dir is None:
            raise ConfigError(reason="there is no state directory to remember the company in", key="xaa")
        kind = None
        if setup.client_secret is not None:
            kind = await self._store.save(f"{COMPANY_SECRET}.{_slot_of(setup)}", setup.client_secret.encode())
        await trio.to_thread.run_sync(save_company, self._state_dir, setup)
        self.use(setup)
        return kind


def _slot_of(setup: CompanySetup) -> str:
    return slot_of(setup.issuer, AuthOptions(client_id=setup.client_id, issuer=setup.issuer, grant=GrantKind.XAA))
