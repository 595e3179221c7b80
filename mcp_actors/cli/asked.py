"""Owns what the command line offers to servers that ask: a person at the terminal, prepared answers, roots, a sample.

What this is not: the dialogs (`prompter`), or who answers first (`elicitation.policy`).

Rule 1: a person is asked only where one can be: standard input and standard error are both terminals. In a pipe the
answer is decline (S293), unless ``--elicit`` names another.
Rule 2: dialogs are drawn on standard error: standard output is data.
"""

from __future__ import annotations

import os
import sys
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

from mcp_actors.cli import output
from mcp_actors.cli.exits import UsageError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable

    from mcp_actors.actors.host import Host
    from mcp_actors.cli.progress import Progress
    from mcp_actors.cli.stdin_lines import StdinLines
    from mcp_actors.config.choices import Choices
    from mcp_actors.elicitation.handlers import Root, SamplingAnswer, SamplingRequest
    from mcp_actors.elicitation.hooks import Hooks
    from mcp_actors.elicitation.policy import Policy
    from mcp_actors.elicitation.requests import Answer, InputRequest
    from mcp_actors.fleet.questions import Questions
    from mcp_actors.questions.messages import ElicitorEvent
    from mcp_actors.questions.prompters import QuestionPrompter

__all__ = ["Asked", "add_asked", "can_ask", "declining_host", "read_elicit"]


def add_asked(parser: argparse.ArgumentParser) -> None:
    """Add the options that say how servers' questions are answered."""
    group = parser.add_argument_group("what the server may ask")
    group.add_argument(
        "--elicit",
        metavar="ask|accept-defaults|decline|FILE",
        help="who answers its questions; FILE: prepared answers, JSON (default: ask on a terminal, else decline)",
    )
    group.add_argument(
        "--root", action="append", default=[], metavar="DIR", help="a directory that it is told of; repeatable"
    )
    group.add_argument("--sample", metavar="TEXT|@FILE", help="answer its requests for a model's words with this text")


def can_ask() -> bool:
    """Whether there is a person at a terminal."""
    return sys.stdin is not None and sys.stderr is not None and sys.stdin.isatty() and sys.stderr.isatty()


def read_elicit(text: str, read: Callable[[str], str]) -> Policy:
    """Understand the value of ``--elicit``: ask, accept-defaults, decline, or a file with prepared answers.

    Args:
        text: the value.
        read: gives the text of a file.

    Raises:
        ConfigError: the file holds no prepared answers.
        (and what `read` raises.)
    """
    from mcp_actors.elicitation.policy import Mode, Policy, read_answers
    from mcp_actors.errors import ConfigError, RemoteProtocolError
    from mcp_actors.protocol.jsonrpc import decode

    if text in (Mode.ASK, Mode.ACCEPT_DEFAULTS, Mode.DECLINE):
        return Policy(mode=Mode(text))
    try:
        document = decode(read(text).encode())
    except RemoteProtocolError as exc:
        raise ConfigError(file=text, reason=exc.reason) from exc
    return Policy(mode=Mode.ANSWERS, answers=read_answers(document, file=text))


class Asked:
    """Who answers what servers ask of one run of a verb. Its `questions.host` goes to `open_fleet`."""

    def __init__(self, own: argparse.Namespace, choices: Choices, read: Callable[[str], str]) -> None:
        """Understand the options.

        Args:
            own: with what `add_asked` added.
            choices: for the hooks.
            read: gives the text of a file.

        Raises:
            UsageError: ``--elicit ask`` without a terminal, or a root that is no directory.
            ConfigError: the prepared answers cannot be used.
        """
        from mcp_actors.fleet.questions import Questions

        # What stands on the terminal while a person is asked is put aside.
        self._progress: Progress | None = None
        # Keeps what was typed ahead, for the next dialog.
        self._lines: StdinLines | None = None
        self._sample_text = None if own.sample is None else _text_of(own.sample, read)
        policy, prompter = self._read_elicit(own.elicit, read)
        self.questions: Questions = Questions(
            prompter,
            policy=policy,
            hooks=_hooks(choices),
            report=_report,
            sample=None if self._sample_text is None else self._sample,
            roots=[_root(name) for name in own.root] or None,
        )

    def _read_elicit(self, text: str | None, read: Callable[[str], str]) -> tuple[Policy, QuestionPrompter | None]:
        from mcp_actors.elicitation.policy import Mode

        is_there = can_ask()
        if text == Mode.ASK and not is_there:
            raise UsageError("--elicit ask needs a terminal")
        policy = read_elicit(text or (Mode.ASK if is_there else Mode.DECLINE), read)
        return policy, self if policy.mode is Mode.ASK else None

    def draws(self, progress: Progress) -> None:
        """Say what stands on the terminal from now on."""
        self._progress = progress

    async def ask(self, request: InputRequest) -> Answer:
        """Ask the person (`questions.prompters.QuestionPrompter`). Cancellation: safe, the dialog ends."""
        from mcp_actors.cli.pages import open_in_browser
        from mcp_actors.cli.prompter import TerminalPrompter
        from mcp_actors.cli.stdin_lines import StdinLines

        if self._lines is None:
            self._lines = StdinLines()
        aside: AbstractContextManager[None] = nullcontext() if self._progress is None else self._progress.aside()
        with aside:
            return await TerminalPrompter(self._lines.read_line, output.draw, open_in_browser).ask(request)

    async def _sample(self, request: SamplingRequest) -> SamplingAnswer:
        from mcp_actors.cli.render import clean_line
        from mcp_actors.elicitation.handlers import SamplingAnswer

        output.note(f"{clean_line(request.server)}: asks for a model's words; it gets the text of --sample")
        return SamplingAnswer({"type": "text", "text": self._sample_text or ""}, model="mcp-actors --sample")


def declining_host() -> Host:
    """What verbs offer that only look: servers list all that they would with a person there, and get a decline."""
    from mcp_actors.elicitation.policy import Mode, Policy
    from mcp_actors.fleet.questions import Questions

    return Questions(policy=Policy(mode=Mode.DECLINE)).host


def _text_of(word: str, read: Callable[[str], str]) -> str:
    return read(word[1:]) if word.startswith("@") else word


def _hooks(choices: Choices) -> Hooks:
    from mcp_actors.elicitation.hooks import read_hooks

    hooks = read_hooks(choices.hooks)
    for warning in hooks.warnings:
        output.note(warning)
    return hooks


def _root(name: str) -> Root:
    from mcp_actors.elicitation.handlers import Root

    path = Path(name).expanduser()
    if not path.is_dir():
        raise UsageError(f"--root {name!r} is no directory")
    return Root(path.resolve().as_uri(), path.resolve().name or os.sep)


def _report(event: ElicitorEvent) -> None:
    from mcp_actors.cli.render import clean_line
    from mcp_actors.questions.messages import QuestionWarned

    if isinstance(event, QuestionWarned):
        output.note(f"{clean_line(event.server)}: {clean_line(event.text, 400)}")
