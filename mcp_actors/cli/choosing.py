"""Owns the verbs by which a person chooses: ``enable``, ``disable``, ``approve``, ``reset-project-choices``.

What this is not: a change of any configuration file. All choices are kept in our own state directory, where no
repository can write (`config.remembered`).

Rule 1: heavy imports stand inside functions (``--help`` stays fast).
Rule 2: what is approved is what was shown: the exact text of the definition, and its hash (fault 109).
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from mcp_actors.cli import output
from mcp_actors.cli.exits import FAILED, OK, Refused

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable

    from mcp_actors.cli.options import GlobalOptions
    from mcp_actors.config.specs import ServerSpec
    from mcp_actors.files.loading import LoadedConfig
    from mcp_actors.files.places import Places

__all__ = [
    "configure_approve",
    "configure_disable",
    "configure_enable",
    "configure_reset_project_choices",
    "project_definitions",
    "run_approve",
    "run_disable",
    "run_enable",
    "run_reset_project_choices",
]


def _change_choices(places: Places, change: Callable[[str | None, str], str]) -> None:
    """Change what is remembered; `change` takes the file's text and its name."""
    from mcp_actors.files.places import CHOICES_FILE
    from mcp_actors.files.writing import change_file

    file = places.state_dir / CHOICES_FILE
    change_file(file, lambda text: change(text, str(file)), places.state_dir)


# ── enable, disable ──────────────────────────────────────────────────────────────────────────────────────────────────


def configure_enable(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``enable``."""
    parser.add_argument("name", metavar="NAME", help="a configured server")


def configure_disable(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``disable``."""
    parser.add_argument("name", metavar="NAME", help="a configured server")


def run_enable(shared: GlobalOptions, own: argparse.Namespace) -> int:
    """Switch a server on in this project; 1 when it does not run all the same, with the reason."""
    from mcp_actors.cli.configured import find_spec, places_of, read_configuration, refuse_when_managed
    from mcp_actors.config.remembering import switch

    places = places_of()
    refuse_when_managed(places)
    loaded = read_configuration(shared)
    find_spec(loaded, own.name)
    project = str(places.project)
    _change_choices(places, lambda text, file: switch(text, project, own.name, file, is_on=True))
    spec = find_spec(read_configuration(shared), own.name)
    if not spec.is_enabled and spec.disabled_reason == "user":
        # Its definition or another program's list says off: our own choice is the last word.
        _change_choices(places, lambda text, file: switch(text, project, own.name, file, is_on=True, overrides=True))
        spec = find_spec(read_configuration(shared), own.name)
    if spec.is_enabled:
        output.note(f"{own.name} is switched on in {project}", prefix="")
        return OK
    output.note(f"{own.name} is switched on in {project}, and still does not run: {spec.disabled_reason}")
    output.note(f"mcp-actors why {own.name} says more", prefix="  -> ")
    return FAILED


def run_disable(shared: GlobalOptions, own: argparse.Namespace) -> int:
    """Switch a server off in this project."""
    from mcp_actors.cli.configured import find_spec, places_of, read_configuration, refuse_when_managed
    from mcp_actors.config.remembering import switch

    places = places_of()
    refuse_when_managed(places)
    find_spec(read_configuration(shared), own.name)
    project = str(places.project)
    _change_choices(places, lambda text, file: switch(text, project, own.name, file, is_on=False))
    output.note(f"{own.name} is switched off in {project}", prefix="")
    return OK


# ── approve ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def configure_approve(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``approve``."""
    parser.add_argument("name", metavar="NAME", nargs="?", help="one server; without it, each that waits")
    parser.add_argument("--yes", action="store_true", help="do not ask; what is approved is still shown")


def project_definitions(loaded: LoadedConfig) -> dict[str, ServerSpec]:
    """The definitions of project files by name, the nearest one of each, before anybody decided anything."""
    from mcp_actors.config.specs import Scope

    readings = sorted(
        (reading for reading in loaded.readings if reading.scope is Scope.PROJECT), key=lambda reading: reading.rank
    )
    return {spec.name: spec for reading in readings for spec in reading.specs}


def run_approve(shared: GlobalOptions, own: argparse.Namespace) -> int:
    """Show what project files want to start, and allow it; 1 when something was not approved."""
    from mcp_actors.cli.configured import find_spec, places_of, read_configuration, refuse_when_managed
    from mcp_actors.config.approvals import Approval, approval_of
    from mcp_actors.config.policy import decide

    places = places_of()
    refuse_when_managed(places)
    loaded = read_configuration(shared)
    definitions = project_definitions(loaded)
    if own.name is not None and own.name not in definitions:
        spec = find_spec(loaded, own.name)
        output.note(f"{own.name} comes from {spec.source} ({spec.scope}) and needs no approval", prefix="")
        return OK
    code = OK
    asked = [definitions[own.name]] if own.name is not None else list(definitions.values())
    for spec in asked:
        verdict = decide(spec, loaded.choices.policy)
        state = approval_of(spec, loaded.choices.approvals)
        if state is Approval.APPROVED:
            if own.name is not None:
                output.note(f"{spec.name} is approved already", prefix="")
        elif not verdict.is_allowed:
            raise verdict.error(spec.name)
        elif state is Approval.REJECTED:
            code = _tell_rejected(spec)
        elif _agrees(spec, is_asked=not own.yes):
            _approve(spec, places)
            output.note(f"approved {spec.name}", prefix="")
        else:
            output.note(f"{spec.name} is not approved", prefix="")
            code = FAILED
    if own.name is None and not any(approval_of(spec, loaded.choices.approvals) is Approval.PENDING for spec in asked):
        output.note("no server waits for approval", prefix="")
    return code


def _approve(spec: ServerSpec, places: Places) -> None:
    from mcp_actors.config.remembering import remember

    _change_choices(places, lambda text, file: remember(text, spec, file))


def _tell_rejected(spec: ServerSpec) -> int:
    output.note(
        f"{spec.name} is rejected by a settings file (disabledMcpjsonServers), which outweighs every approval: take "
        "the name out there first"
    )
    return FAILED


def _agrees(spec: ServerSpec, *, is_asked: bool) -> bool:
    """Show the definition, whole and exact, and ask.

    Raises:
        Refused: there is nobody to ask.
    """
    from mcp_actors.cli.render import clean_line
    from mcp_actors.config.approvals import describe_definition

    output.note(f"{clean_line(spec.name)}, from {clean_line(spec.source, 4096)}, wants to run:", prefix="")
    for line in describe_definition(spec):
        output.note(line, prefix="  ")
    if not is_asked:
        return True
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise Refused(f"{spec.name} is not approved: there is no terminal to ask on (--yes approves what is shown)")
    output.draw("Run this here from now on? A changed definition asks again. [y/N] ")
    return sys.stdin.readline().strip().lower() in ("y", "yes")


# ── reset-project-choices ────────────────────────────────────────────────────────────────────────────────────────────


def configure_reset_project_choices(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``reset-project-choices``: it has none of its own."""
    del parser


def run_reset_project_choices(shared: GlobalOptions, own: argparse.Namespace) -> int:
    """Forget what was approved of this project's files, and what was switched in it."""
    del own
    from mcp_actors.cli.configured import places_of, read_configuration
    from mcp_actors.config.remembering import forget_project
    from mcp_actors.files.places import PROJECT_FILE

    places = places_of()
    project = str(places.project)
    files = frozenset(str(directory / PROJECT_FILE) for directory in places.upward())
    _change_choices(places, lambda text, file: forget_project(text, project, files, file))
    output.note(f"forgot what was approved and switched in {project}", prefix="")
    held = read_configuration(shared).choices
    if held.approvals.enabled or held.approvals.disabled or held.approvals.is_all_enabled or held.switched_off:
        output.note("settings files of Claude Code hold choices too; they are not ours and stay as they are", prefix="")
    return OK
