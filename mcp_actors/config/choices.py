"""Owns what settings files say about servers and their tools: approvals, allow and deny lists, switches, permissions.

What this is not: finding those files (`files.settings_files`), reading them (`settings_texts`), nor the servers
themselves (`sources`).
"""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, NamedTuple

from attrs import field

from mcp_actors.config.approvals import Approvals
from mcp_actors.config.policy import OPEN_POLICY
from mcp_actors.values import frozen

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mcp_actors.config.notes import ConfigNote
    from mcp_actors.config.policy import Policy
    from mcp_actors.errors import ConfigError
    from mcp_actors.jsontypes import Json

__all__ = [
    "OPEN_CHOICES",
    "Choices",
    "RuleText",
    "SettingsLayer",
    "SettingsText",
    "choices_of_environment",
]


class SettingsLayer(enum.IntEnum):
    """Whose settings, the strongest last (S063)."""

    USER = 1
    PROJECT = 2
    LOCAL = 3
    COMMAND_LINE = 4
    MANAGED = 5


class RuleText(NamedTuple):
    """A rule as it was written, and whose it is; `origin` is for messages, such as a file's name."""

    text: str
    origin: str = ""
    # False for allow rules of a repository whose folder nobody trusts (S240).
    is_trusted: bool = True


@frozen
class SettingsText:
    """One settings file."""

    # None: it is there and cannot be read; whoever looked has reported that.
    data: bytes | None = field(repr=False)
    file: str
    layer: SettingsLayer


@frozen
class Choices:
    """All of it together."""

    approvals: Approvals = field(factory=Approvals)
    policy: Policy = OPEN_POLICY
    # Names that the user switched off in this project, of whatever scope (S037).
    switched_off: frozenset[str] = frozenset()
    # Names that run in this project although their definition, or another program's list, says off.
    switched_on: frozenset[str] = frozenset()
    # Connectors of a claude.ai account are not loaded (S057).
    are_connectors_off: bool = False
    # The managed file by which ``--config`` is refused (S064).
    sideloads_off_by: str | None = None
    # Connectors are loaded beside an exclusive managed file (S056).
    are_connectors_managed: bool = False
    # The user trusts the folder that the project's files lie in, or said yes to all of them for this run (S024).
    is_trusted: bool = False
    # The values of ``hooks`` that count, the weakest file first; `elicitation.hooks.read_hooks` reads them.
    hooks: tuple[Json, ...] = field(default=(), repr=False)
    # The lists of ``permissions``, the weakest file first: list -> rules; `tools.permissions.read_rules` reads them.
    permissions: Mapping[str, tuple[RuleText, ...]] = field(factory=dict)
    problems: tuple[ConfigError, ...] = ()
    notes: tuple[ConfigNote, ...] = ()


OPEN_CHOICES = Choices()


def choices_of_environment(environ: Mapping[str, str], *, is_trusted: bool = False) -> Choices:
    """What counts as long as no settings file says anything.

    Args:
        environ: the environment at start.
        is_trusted: the user trusts the folder that the project's files lie in.

    Source:
        S057.
    """
    are_off = environ.get("ENABLE_CLAUDEAI_MCP_SERVERS", "").strip().lower() == "false"
    return Choices(are_connectors_off=are_off, is_trusted=is_trusted)
