"""Owns the verbs about prompts: ``prompts`` lists them, ``prompt`` fills one.

What this is not: the dialogs with a person (`prompter`).

Rule 1: what a prompt needs and did not get is told, with its usage, before the server is asked (S334).
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from mcp_actors.cli import arguments, exits, output
from mcp_actors.cli.exits import Refused, UsageError
from mcp_actors.cli.listing import ListVerb, Part, add_server, row_of

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from mcp_actors.cli.fleet import Plan
    from mcp_actors.cli.options import GlobalOptions
    from mcp_actors.fleet.server import Server
    from mcp_actors.jsontypes import JsonObject
    from mcp_actors.tools.items import Prompt

__all__ = ["configure_prompt", "configure_prompts", "run_prompt", "run_prompts"]


# ── prompts ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def configure_prompts(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``prompts``."""
    add_server(parser, "prompts")


async def _offered(server: Server) -> Sequence[Prompt]:
    return server.prompts


def _cells(prompt: Prompt) -> Sequence[str]:
    from mcp_actors.cli.render import clean_line
    from mcp_actors.tools.mentions import usage_of

    return usage_of(prompt), clean_line(prompt.description, 100)


def _row(prompt: Prompt) -> JsonObject:
    return row_of(prompt.definition, command=f"/{prompt.callable_name}", server=prompt.server)


run_prompts = ListVerb("prompts", [Part("prompts", _offered, _cells, _row)]).run


# ── prompt ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def configure_prompt(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``prompt``."""
    parser.add_argument("prompt", metavar="SERVER.PROMPT", help="or its command, /mcp__server__prompt")
    parser.add_argument(
        "words",
        nargs="*",
        default=[],  # as in `call`
        metavar="key=text",
        help="arguments by name; after a command: its words, in order",
    )
    parser.add_argument("--output", choices=("text", "json"), default="text", help="json: as the server sent it")


def run_prompt(shared: GlobalOptions, own: argparse.Namespace) -> int:
    """Fill a prompt; 0 when the server gave its messages."""
    from mcp_actors.cli.fleet import load_plan
    from mcp_actors.cli.signals import run_interruptibly

    asked, words, is_command = _understand(own.prompt, own.words)
    plan = load_plan(shared)
    server, rest = plan.server_of(asked, "prompt", "prompts")
    return run_interruptibly(
        partial(_prompt, plan.only(server), server, rest, asked, words, is_command=is_command, form=own.output)
    )


def _understand(text: str, words: Sequence[str]) -> tuple[str, tuple[str, ...], bool]:
    """Tell a command from a name: what is meant, its words, and whether they stand in order instead of by name."""
    if not text.lstrip().startswith("/"):
        return text, tuple(words), False
    from mcp_actors.tools.mentions import parse_command

    # Quoted as one word it is split here, as a chat would; else the shell has split it.
    command = parse_command(text)
    if command is None:
        raise UsageError(f"{text!r} is no command: write /mcp__server__prompt")
    return command.name, (*command.words, *words), True


def _which_prompt(prompts: Sequence[Prompt], server: str, rest: str, asked: str) -> Prompt:
    for prompt in prompts:
        if prompt.key == rest or prompt.callable_name == asked:
            return prompt
    offered = ", ".join(prompt.shown_key for prompt in prompts)
    raise Refused(f"{server} has no prompt {rest!r}; it offers: {offered or 'none'}")


def _fill(prompt: Prompt, words: Sequence[str], *, is_command: bool) -> dict[str, str]:
    from mcp_actors.cli.calling import read_text
    from mcp_actors.tools.mentions import MissingArguments, fill_arguments, usage_of

    if is_command:
        filled = fill_arguments(prompt, words)
        if isinstance(filled, MissingArguments):
            raise UsageError(filled.describe())
        return filled
    given = {word.key: word.value for word in arguments.parse_words(words, read_text)}
    missing = [each.shown_name for each in prompt.arguments if each.is_required and each.name not in given]
    if missing:
        raise UsageError(MissingArguments(tuple(missing), usage_of(prompt)).describe())
    texts = {key: value for key, value in given.items() if isinstance(value, str)}
    if len(texts) != len(given):
        raise UsageError("arguments of a prompt are texts: write key=text")
    return texts


async def _prompt(
    plan: Plan, server: str, rest: str, asked: str, words: Sequence[str], *, is_command: bool, form: str
) -> int:
    from mcp_actors.cli.fleet import open_fleet, refuse, settle
    from mcp_actors.cli.render import json_text
    from mcp_actors.cli.showing import Style, messages_text

    async with open_fleet(plan.once()) as runtime:
        await settle(runtime)
        status = runtime.status()[server]
        if not status.is_connected:
            return refuse(status)
        offered = runtime.server(server)
        prompt = _which_prompt(offered.prompts, server, rest, asked)
        filled = _fill(prompt, words, is_command=is_command)
        result = await offered.get_prompt(prompt.key, filled)
    output.emit(json_text(result) if form == "json" else messages_text(result, Style(output.width())))
    return exits.OK
