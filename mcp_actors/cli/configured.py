"""Owns what the verbs that change or explain the configuration share: reading it, names, and who may change anything.

What this is not: a running fleet (`fleet`). Nothing here imports trio, so that these verbs are quick.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Final

from mcp_actors.errors import ConfigError, ServerNotAllowed
from mcp_actors.files.loading import load_config
from mcp_actors.files.places import MANAGED_FILE, Places, is_missing
from mcp_actors.tools.naming import unknown_server

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mcp_actors.cli.fleet import Plan
    from mcp_actors.cli.options import GlobalOptions
    from mcp_actors.config.specs import ServerSpec
    from mcp_actors.errors import UnknownServer
    from mcp_actors.files.loading import LoadedConfig

__all__ = ["check_name", "find_spec", "no_such_server", "places_of", "read_configuration", "refuse_when_managed"]

# S033: what `add` takes. Files may hold others.
_NAME: Final = re.compile(r"[A-Za-z0-9_-]+")


def places_of(environ: Mapping[str, str] = os.environ) -> Places:
    """Where this person's files are, seen from the working directory."""
    return Places.of(environ)


def read_configuration(shared: GlobalOptions, environ: Mapping[str, str] = os.environ) -> LoadedConfig:
    """Read and decide everything that the options and the files say."""
    places = places_of(environ)
    return load_config(
        cwd=places.cwd,
        home=places.home,
        environ=environ,
        configs=shared.configs,
        strict=shared.is_strict,
        approve_project=shared.approves_project,
        ide=shared.has_ide,
        settings=shared.settings,
    )


def refuse_when_managed(places: Places) -> None:
    """Nobody but the administrator changes what runs while a managed file is in charge (S026).

    Raises:
        ServerNotAllowed: it is.
    """
    managed = places.managed_dir / MANAGED_FILE
    if not is_missing(managed):
        raise ServerNotAllowed(
            file=str(managed),
            reason="an administrator has exclusive control of MCP servers",
            remedy="ask the administrator",
            category="not_allowed",
        )


def check_name(name: str) -> None:
    """Take only names that tool names can hold as they are.

    Raises:
        ConfigError: it has other characters.
    """
    if not _NAME.fullmatch(name):
        raise ConfigError(
            reason=f"the name {name!r} is not usable",
            file="<command line>",
            remedy="use letters, digits, underscores and hyphens",
            category="reserved_name",
        )


def find_spec(known: LoadedConfig | Plan, name: str) -> ServerSpec:
    """Find one entry.

    Raises:
        ConfigError: it exists and cannot be used.
        UnknownServer: there is none of that name.
    """
    for spec in known.specs:
        if spec.name == name:
            return spec
    for problem in known.problems:
        if problem.server == name:
            raise problem
    raise no_such_server(name, [spec.name for spec in known.specs])


def no_such_server(name: str, names: Sequence[str]) -> UnknownServer:
    """Make the error for a name that nothing answers to; it lists what exists."""
    error = unknown_server(name, names)
    error.add_note(f"configured: {', '.join(names)}" if names else "no server is configured")
    return error
