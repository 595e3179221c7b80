"""Owns the building of transports for one runtime: each gets its journal, its login, and what was found out before.

What this is not: any transport (`transports.opening` has the table), nor a login (`auth`).

Signing in is loaded when the first server needs it, so that a fleet of local programs never pays for it.
"""

from __future__ import annotations

from contextlib import nullcontext
from functools import cached_property
from typing import TYPE_CHECKING

from attrs import field

from mcp_actors.config.specs import RemoteTarget
from mcp_actors.transports.found import Found
from mcp_actors.transports.ladder import Hurry
from mcp_actors.transports.opening import open_transport
from mcp_actors.values import define

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from mcp_actors.auth.desk import AuthDesk
    from mcp_actors.auth.driving import SignInPrompter, Waiting
    from mcp_actors.config.settings import Settings
    from mcp_actors.config.specs import ServerSpec
    from mcp_actors.jsontypes import JsonObject
    from mcp_actors.transports.base import Transport
    from mcp_actors.transports.leftovers import Journal
    from mcp_actors.transports.sweeping import Sweep

__all__ = ["Opener"]


@define(eq=False, slots=False)
class Opener:
    """Builds transports for one runtime. Call it with a spec; `run` of what it returns opens the wire."""

    settings: Settings
    environ: Mapping[str, str] = field(repr=False)
    # Where children, logins and locks are kept; None: nowhere.
    state_dir: Path | None = None
    # Asks a person to sign in during a call; None: such calls fail typed.
    sign_in: SignInPrompter | None = None
    # Entered with a server's name for as long as its person is asked; the runtime says what stops meanwhile.
    waiting: Waiting = nullcontext
    # Pressed by a second signal: every stop skips its waits.
    hurry: Hurry = field(factory=Hurry)
    # Which servers were found to speak HTTP+SSE.
    found: Found = field(factory=Found)
    # Server name -> extensions of signing in that are in use with it, since its transport was built (S281).
    _extensions: dict[str, Mapping[str, JsonObject]] = field(factory=dict, init=False)
    # Where living children are noted.
    _journal: Journal | None = field(default=None, init=False)

    def sweep(self) -> Sweep | None:
        """Find what an earlier run left behind, for somebody to stop, and open this run's journal (fault 4).

        None where nothing is kept.
        """
        if self.state_dir is None:
            return None
        from mcp_actors.transports.leftovers import open_journal
        from mcp_actors.transports.sweeping import find_leftovers

        directory = self.state_dir / "children"
        found = find_leftovers(directory, self.settings, self.hurry)
        self._journal = open_journal(directory)
        return found

    @cached_property
    def desk(self) -> AuthDesk:
        """Who we are towards the servers of this runtime."""
        from mcp_actors.fleet.signing import make_desk

        return make_desk(
            self.environ, state_dir=self.state_dir, prompter=self.sign_in, waiting=lambda name: self.waiting(name)
        )

    def extensions(self, server: str) -> Mapping[str, JsonObject]:
        """What is declared to a server because of how we sign in to it."""
        return self._extensions.get(server, {})

    def __call__(self, spec: ServerSpec) -> Transport:
        """Build the transport of a server.

        Raises:
            ConnectFailed, ConfigError: it cannot be built as the spec says.
        """
        auth = None
        if isinstance(spec.target, RemoteTarget):
            from mcp_actors.fleet.signing import auth_of, extensions_of

            auth = auth_of(self.desk, spec)
            self._extensions[spec.name] = extensions_of(auth)
        return open_transport(
            spec,
            self.settings,
            environ=self.environ,
            auth=auth,
            journal=self._journal,
            hurry=self.hurry,
            found=self.found,
        )
