"""Owns the verbs about skills: ``skills`` lists them, ``skill`` shows one, verified file by file.

What this is not: loading a skill into a model; here a person looks at what a server would tell one.

Rule 1: what is listed is cleaned; a skill is known by its URI, its name is a label that two may have.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from mcp_actors.cli import exits, output
from mcp_actors.cli.exits import Refused
from mcp_actors.cli.listing import ListVerb, Part, add_server, row_of

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from mcp_actors.cli.fleet import Plan
    from mcp_actors.cli.options import GlobalOptions
    from mcp_actors.fleet.server import Server
    from mcp_actors.jsontypes import JsonObject
    from mcp_actors.tools.skills import Skill

__all__ = ["configure_skill", "configure_skills", "run_skill", "run_skills"]


# ── skills ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def configure_skills(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``skills``."""
    add_server(parser, "skills")


async def _listed(server: Server) -> Sequence[Skill]:
    return await server.skills()


def _cells(skill: Skill) -> Sequence[str]:
    from mcp_actors.cli.render import clean_line

    return skill.server, skill.shown_key, _size(skill), clean_line(skill.description, 100)


def _size(skill: Skill) -> str:
    if skill.files is None:
        return "not verifiable"
    return f"{len(skill.files)} file{'' if len(skill.files) == 1 else 's'}, {skill.total_bytes} bytes"


def _row(skill: Skill) -> JsonObject:
    return row_of(skill.definition, server=skill.server)


run_skills = ListVerb("skills", [Part("skills", _listed, _cells, _row)]).run


# ── skill ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def configure_skill(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``skill``."""
    parser.add_argument("server", metavar="SERVER", help="a configured server")
    parser.add_argument("skill", metavar="SKILL", help="its name; or the URI of its SKILL.md, listed or not")
    parser.add_argument("file", metavar="FILE", nargs="?", help="a file of it instead of SKILL.md, as that names it")
    parser.add_argument("--output", choices=("text", "raw"), default="text", help="raw: byte for byte")
    parser.add_argument("--save-images", metavar="DIR", help="write pictures to files in this directory")


def run_skill(shared: GlobalOptions, own: argparse.Namespace) -> int:
    """Show a skill; 0 when it is what its entry describes."""
    from mcp_actors.cli.fleet import load_plan
    from mcp_actors.cli.signals import run_interruptibly

    return run_interruptibly(partial(_skill, load_plan(shared).only(own.server), own))


async def _skill(plan: Plan, own: argparse.Namespace) -> int:
    from mcp_actors.cli.calling import show_result
    from mcp_actors.cli.fleet import open_fleet, refuse, settle
    from mcp_actors.protocol.jsonrpc import encode
    from mcp_actors.tools.resource_tools import contents_as_blocks
    from mcp_actors.tools.results import ToolResult
    from mcp_actors.tools.skills import as_contents

    async with open_fleet(plan.once()) as runtime:
        await settle(runtime)
        status = runtime.status()[own.server]
        if not status.is_connected:
            return refuse(status)
        skill = await _find(runtime.server(own.server), own.skill)
        loaded = await runtime.server(own.server).load_skill(skill)
        content = loaded.text.encode() if own.file is None else await loaded.read(own.file)
    if skill.files is None:
        output.note("the server makes this skill up as it goes: nothing of it can be verified")
    uri = skill.uri if own.file is None else skill.resolve(own.file)
    shown = ToolResult(encode({"content": contents_as_blocks(as_contents(uri, content))}), own.server)
    await show_result(shown, own, name=f"{own.server}-skill")
    return exits.OK


async def _find(server: Server, asked: str) -> Skill:
    """The entry of a skill by URI, which need not be listed, or by its name, which must be the only one."""
    from mcp_actors.cli.render import clean_line

    if asked.endswith("/SKILL.md"):
        return await server.skill(asked)
    listed = await server.skills()
    named = [skill for skill in listed if skill.name == asked]
    if len(named) == 1:
        return named[0]
    if named:
        uris = ", ".join(clean_line(skill.uri) for skill in named)
        raise Refused(f"{server.name} has {len(named)} skills of this name; give a URI: {uris}")
    names = ", ".join(sorted({clean_line(skill.name) for skill in listed})) or "none"
    raise Refused(f"{server.name} lists no skill {clean_line(asked)!r}; it lists: {names}")
