"""Owns the last step: readings of all sources become the one configuration that runs.

What this is not: reading files (`files.loading`); the steps themselves are in `approvals`, `policy`, `dedup` and
`merge`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING

from attrs import evolve

from mcp_actors.config.approvals import apply_approvals, apply_trust
from mcp_actors.config.choices import OPEN_CHOICES, Choices
from mcp_actors.config.dedup import deduplicate
from mcp_actors.config.documents import Document
from mcp_actors.config.merge import merge
from mcp_actors.config.notes import ConfigNote, Shadowed
from mcp_actors.config.policy import apply_policy
from mcp_actors.config.sources import SourceReading, SourceText, Surroundings, read_document
from mcp_actors.config.specs import InProcessTarget, Scope, ServerSpec
from mcp_actors.values import frozen

if TYPE_CHECKING:
    from mcp_actors.errors import ConfigError
    from mcp_actors.jsontypes import Json

__all__ = ["APPROVE_PROJECT", "LoadedConfig", "assemble", "read_mapping"]

# Variable that says yes to every project server, for scripts and headless runs.
APPROVE_PROJECT = "MCP_ACTORS_APPROVE_PROJECT"


@frozen
class LoadedConfig:
    """What should run, and everything there is to say about it.

    `specs`: one per name, stable order (by scope, lowest precedence first, then file order). `problems`: entries and
    files that could not be used. `shadowed`: definitions that lost to another.
    """

    specs: tuple[ServerSpec, ...] = ()
    problems: tuple[ConfigError, ...] = ()
    notes: tuple[ConfigNote, ...] = ()
    shadowed: tuple[Shadowed, ...] = ()
    # Paths and labels that were read, in the order of reading.
    files: tuple[str, ...] = ()
    # What was chosen and allowed: whoever adds a server later asks `policy.decide(spec, choices.policy)` first (S060).
    choices: Choices = OPEN_CHOICES
    # What every source defines, before approval, policy and merge: a late source joins by `given.with_readings`.
    readings: tuple[SourceReading, ...] = ()
    # A managed file is in charge: nobody else adds servers (S025, S026).
    is_exclusive: bool = False


def assemble(
    readings: Sequence[SourceReading],
    choices: Choices,
    normalise: Callable[[str], str],
    *,
    needs_auth: Collection[str] = (),
    is_exclusive: bool = False,
) -> LoadedConfig:
    """Approve, filter, de-duplicate, merge, and look at the whole.

    Args:
        readings: of all sources, in any order.
        choices: approvals and policy.
        normalise: turns a server's name into the one that tool names hold.
        needs_auth: names of servers that wait for a login (S022).
        is_exclusive: the readings come from a managed file.

    Source:
        S020-S025, S043, S045; faults 28-30.
    """

    def switched(spec: ServerSpec) -> ServerSpec:
        """The user's own switch has the last word on what is on, not on what may be (S037)."""
        is_on = spec.name in choices.switched_on
        if spec.is_enabled and spec.name in choices.switched_off and not is_on:
            return evolve(spec, is_enabled=False, disabled_reason="user")
        if not spec.is_enabled and spec.disabled_reason == "user" and is_on:
            return evolve(spec, is_enabled=True)
        return spec

    def filtered(reading: SourceReading) -> SourceReading:
        specs = apply_approvals(map(switched, reading.specs), choices.approvals)
        specs = apply_trust(specs, choices.approvals, is_trusted=choices.is_trusted)
        return evolve(reading, specs=apply_policy(specs, choices.policy))

    left, suppressed = deduplicate(map(filtered, readings), needs_auth)
    merged = merge(left)
    shadowed = (*merged.shadowed, *suppressed)
    notes = [note for reading in readings for note in reading.notes]
    return LoadedConfig(
        specs=merged.specs,
        problems=(*choices.problems, *(problem for reading in readings for problem in reading.problems)),
        notes=(*choices.notes, *notes, *_notes_on_whole(merged.specs, shadowed, normalise)),
        shadowed=shadowed,
        files=tuple(reading.file for reading in readings),
        choices=choices,
        readings=tuple(readings),
        is_exclusive=is_exclusive,
    )


def read_mapping(
    mapping: Mapping[str, object], environ: Mapping[str, str], source: str, scope: Scope, *, is_unset_fatal: bool
) -> SourceReading:
    """Read a configuration that a program holds in its hands.

    Args:
        mapping: ``{"mcpServers": {name: entry}}``; an entry as in a file, a `ServerSpec`, or an `InProcessTarget`.
        environ: environment for the variables.
        source: what to call it in messages.
        scope: scope of the specs.
        is_unset_fatal: an unset variable without default keeps its entry from running.

    Returns:
        The reading, servers in the order of the mapping.

    Source:
        S016, S087.
    """
    table = mapping.get("mcpServers")
    objects = {str(name): entry for name, entry in table.items()} if isinstance(table, Mapping) else {}
    made: dict[str, ServerSpec] = {}
    for name, entry in objects.items():
        if isinstance(entry, ServerSpec):
            made[name] = evolve(entry, name=name)
        elif isinstance(entry, InProcessTarget):
            made[name] = ServerSpec(name=name, target=entry, scope=scope, source=source)
    plain = {str(key): _plain(value) for key, value in mapping.items() if key != "mcpServers"}
    if isinstance(table, Mapping):
        plain["mcpServers"] = {name: _plain(entry) for name, entry in objects.items() if name not in made}
    elif table is not None:
        plain["mcpServers"] = _plain(table)
    around = Surroundings(environ, is_unset_fatal=is_unset_fatal)
    reading = read_document(Document(plain, ""), SourceText(b"", source, scope), around)
    read = {spec.name: spec for spec in reading.specs} | made
    return evolve(reading, specs=tuple(read[name] for name in objects if name in read))


def _plain(value: object) -> Json:
    """Tuples and mappings of a program as lists and objects of JSON; what JSON has no word for becomes a list."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if hasattr(value, "__fspath__"):
        return str(value)
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return [type(value).__name__]  # no field takes such a list, so it is reported with its key


def _notes_on_whole(
    specs: Sequence[ServerSpec], shadowed: Sequence[Shadowed], normalise: Callable[[str], str]
) -> list[ConfigNote]:
    """What only shows when everything is together: what waits or is blocked, names that collide, what lost."""
    notes: list[ConfigNote] = []

    def note(code: str, text: str, spec: ServerSpec) -> None:
        notes.append(ConfigNote(code, text, server=spec.name, file=spec.source, key=spec.name))

    by_normal: dict[str, list[ServerSpec]] = {}
    for spec in specs:
        if not spec.is_enabled and spec.disabled_reason == "pending-approval":
            text = (
                f"the project's server waits for your approval and is not started: look at it in {spec.source}, "
                f"then run mcp-actors approve {spec.name}, pass --approve-project or set {APPROVE_PROJECT}=1"
            )
            note("pending-approval", text, spec)
        elif not spec.is_enabled and spec.disabled_reason == "policy":
            note("policy", f"is not started: {spec.disabled_detail}", spec)
        normal = normalise(spec.name)
        by_normal.setdefault(normal, []).append(spec)
        if "__" in normal:
            text = "the name holds two underscores, so that its tools' names cannot be taken apart again"
            note("double-underscore", text, spec)
    for same in by_normal.values():
        if len(same) > 1:
            names = ", ".join(spec.name for spec in same)
            text = (
                f"these names look alike in tool names: {names}; of two tools of one name a model gets that of the "
                "first, and server.tool reaches the other"
            )
            note("name-collision", text, same[-1])
    notes += [
        ConfigNote("shadowed", str(lost), server=lost.name, file=lost.source, is_warning=lost.is_different)
        for lost in shadowed
    ]
    return notes
