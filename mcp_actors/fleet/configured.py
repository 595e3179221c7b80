"""Owns what should run, and by whose word: the configuration, the program that adds servers, sources that come late.

What this is not: the reading of files (`files`), what follows from a change (`running`), or anything that runs.

A server that the program added or removed stays as the program said, whatever the files say about its name; one that
was removed comes back when its definition changes.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import trio
from attrs import evolve

from mcp_actors.config.changes import Applied, compare, is_same, keep_last_good
from mcp_actors.config.loaded import LoadedConfig
from mcp_actors.config.policy import apply_policy
from mcp_actors.config.sources import SourceReading
from mcp_actors.config.specs import Scope, ServerSpec
from mcp_actors.errors import ConfigError
from mcp_actors.files.given import ConfigLike, load_any, with_readings
from mcp_actors.tools.naming import normalise_server, server_prefix, unknown_server

if TYPE_CHECKING:
    from collections.abc import Callable


__all__ = ["Configured"]


class Configured:
    """The configuration of one runtime, as it stands. Used by one task at a time, but for `read_again`."""

    def __init__(
        self, config: ConfigLike, environ: Mapping[str, str], reread: Callable[[], LoadedConfig] | None = None
    ) -> None:
        """Read the configuration.

        Args:
            config: see `ConfigLike`.
            environ: for variables, name -> value.
            reread: reads it again; None: `config` is read again.

        Raises:
            ConfigError: nothing of it can be used.
        """
        if not isinstance(config, LoadedConfig | Mapping | str | Path | None):
            config = tuple(config)
        # What was applied last, without what the program said.
        self.loaded = load_any(config, environ)
        # Name -> spec of all that should run or is known as disabled, in order.
        self.specs = {spec.name: spec for spec in self.loaded.specs}
        self.environ = environ
        # Held while it is read again.
        self.reading = trio.Lock()
        self._reread = reread or partial(load_any, config, environ)
        # What arrived late, by source.
        self._late: dict[str, SourceReading] = {}
        # The program's own word: servers that it added, and definitions that it removed.
        self._added: dict[str, ServerSpec] = {}
        self._removed: dict[str, ServerSpec] = {}

    def admit(self, spec: ServerSpec) -> ServerSpec:
        """Give the spec back, disabled where the policy of now forbids it (S060)."""
        return apply_policy((spec,), self.loaded.choices.policy)[0]

    def find(self, name: str) -> ServerSpec:
        """Give the spec of this name. Raises `UnknownServer`, with the nearest names."""
        try:
            return self.specs[name]
        except KeyError:
            raise unknown_server(name, self.specs) from None

    def servers_of(self, tool: str) -> list[str]:
        """Servers whose tool this name may be."""
        return [server for server in self.specs if tool.startswith((server_prefix(server), f"{server}."))]

    def fault(self, error: ConfigError) -> None:
        """Learn that nothing could be read this time: all goes on as it is, and `problems` tells why."""
        self.loaded = evolve(self.loaded, problems=(error,))

    def read_again(self) -> LoadedConfig:
        """Read what should run now, with the last good word of what is broken. Blocking; changes nothing here.

        Raises:
            ConfigError: it cannot be read at all.
        """
        fresh = keep_last_good(self.loaded, self._reread(), normalise_server)
        return with_readings(fresh, tuple(self._late.values())) if self._late else fresh

    def is_stale(self) -> bool:
        """Whether reading again would change anything. Blocking; changes nothing here."""
        try:
            fresh = self.read_again()
        except ConfigError:
            return True
        old, new = ({spec.name: spec for spec in loaded.specs} for loaded in (self.loaded, fresh))
        said, says = (list(map(str, loaded.problems)) for loaded in (self.loaded, fresh))
        return compare(old, new) != Applied(unchanged=tuple(new)) or said != says

    def joined(self, reading: SourceReading, needs_auth: Collection[str] = ()) -> LoadedConfig:
        """The configuration with a source that arrived late, or anew; one that failed keeps what it said before.

        `needs_auth` are the servers that wait for a login: they hide no connector (S022).
        """
        known = self._late.get(reading.file)
        if reading.problems and not reading.specs and known is not None:
            reading = evolve(known, problems=reading.problems)
        self._late[reading.file] = reading
        base = self.loaded
        if not base.readings and base.specs:
            # A program's bare specs: it has decided about them.
            readings = (SourceReading(Scope.DYNAMIC, "<program>", specs=base.specs),)
            approvals = evolve(base.choices.approvals, is_all_enabled=True)
            base = evolve(base, readings=readings, choices=evolve(base.choices, approvals=approvals, is_trusted=True))
        local = tuple(each for each in base.readings if each.file not in self._late)
        return with_readings(evolve(base, readings=local), tuple(self._late.values()), needs_auth)

    def take(self, loaded: LoadedConfig) -> Applied:
        """Let this be what should run. Returns what changes by it."""
        self.loaded = loaded
        fresh = {spec.name: spec for spec in loaded.specs}
        self._removed = {
            name: spec for name, spec in self._removed.items() if name in fresh and is_same(spec, fresh[name])
        }
        wanted = {name: spec for name, spec in fresh.items() if name not in self._removed} | self._added
        admitted = {name: self.admit(spec) for name, spec in wanted.items()}
        changes = compare(self.specs, admitted)
        self.specs = admitted
        return changes

    def put(self, changes: Applied) -> tuple[ServerSpec, ...]:
        """The specs of what is to be started or replaced, as they are now: a later edit counts already."""
        return tuple(self.specs[name] for name in (*changes.added, *changes.changed) if name in self.specs)

    def add(self, spec: ServerSpec) -> None:
        """Run this as well, by the program's word."""
        self._added[spec.name] = spec
        self._removed.pop(spec.name, None)
        self.specs[spec.name] = self.admit(spec)

    def remove(self, name: str) -> None:
        """Forget it, by the program's word."""
        self._added.pop(name, None)
        spec = next((spec for spec in self.loaded.specs if spec.name == name), None)
        if spec is not None:
            self._removed[name] = spec
        self.specs.pop(name, None)
