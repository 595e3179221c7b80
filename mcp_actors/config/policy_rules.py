"""Owns the entries of allow and deny lists: which servers each of them matches.

What this is not: how they are read (`policy_lists`), nor what follows from a match (`policy`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from attrs import field

from mcp_actors.config.patterns import parse_address
from mcp_actors.config.policy import BY_COMMAND, BY_NAME, BY_URL
from mcp_actors.config.specs import RemoteTarget, StdioTarget
from mcp_actors.values import frozen

if TYPE_CHECKING:
    from mcp_actors.config.patterns import UrlPattern
    from mcp_actors.config.specs import ServerSpec

__all__ = ["CommandRule", "NameRule", "Rule", "UrlRule"]


@frozen
class NameRule:
    """Matches the configured name, literally (S049)."""

    text: str
    source: str
    name: str
    kind = BY_NAME

    def matches(self, spec: ServerSpec, *, in_every_spelling: bool) -> bool:  # noqa: ARG002 - a name has one
        """Whether it is about this server."""
        return self.name == spec.name


@frozen
class CommandRule:
    """Matches command and arguments, element by element (S050)."""

    text: str
    source: str
    command: tuple[str, ...] = field(repr=False)
    kind = BY_COMMAND

    def matches(self, spec: ServerSpec, *, in_every_spelling: bool) -> bool:  # noqa: ARG002 - a command has one
        """Whether it is about this server."""
        return isinstance(spec.target, StdioTarget) and self.command == (spec.target.command, *spec.target.args)


@frozen
class UrlRule:
    """Matches an address (S051)."""

    text: str
    source: str
    pattern: UrlPattern = field(repr=False)
    kind = BY_URL

    def matches(self, spec: ServerSpec, *, in_every_spelling: bool) -> bool:
        """Whether it is about this server, in every spelling of its address or in any."""
        if not isinstance(spec.target, RemoteTarget):
            return False
        return self.pattern.matches(parse_address(spec.target.url), in_every_spelling=in_every_spelling)


Rule: TypeAlias = NameRule | CommandRule | UrlRule
