"""Owns the dialogs of a terminal: forms filled in line by line and reviewed, pages opened after consent.

What this is not: the queue (`questions.elicitor`), the judging of values (`elicitation.answers`), or the choice of who
answers (`elicitation.policy`).

Rule 1: the person sees who asks, and can decline or cancel at every prompt (E04). The end of input cancels.
Rule 2: every line of a server's text stands behind a bar, so that no message can pass for a prompt of ours.
Rule 3: nothing is sent before it was shown as a whole and confirmed (E04).
Rule 4: a field that asks for a secret is not asked for: what is typed here may be logged on its way (spec_client 12).
Rule 5: a page is opened after consent to its whole URL, through an argument list; nothing is fetched before (E03).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mcp_actors.cli.render import clean, clean_line
from mcp_actors.elicitation.answers import NotRead, fill_form, read_text
from mcp_actors.elicitation.fields import FieldType
from mcp_actors.elicitation.requests import CANCELLED, DECLINED, Action, Answer, Kind, Stage
from mcp_actors.values import define

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from mcp_actors.elicitation.fields import Field, Form
    from mcp_actors.elicitation.requests import InputRequest
    from mcp_actors.jsontypes import Json

__all__ = ["TerminalPrompter"]

BAR: Final = "│ "
HELP: Final = "Enter takes the default or leaves it out; /back, /decline and /cancel work everywhere."


class _Left(Exception):
    """The person left the dialog; never leaves this file."""

    def __init__(self, answer: Answer) -> None:
        self.answer = answer


class _Back(Exception):
    """The person wants the field before; never leaves this file."""


@define(eq=False)
class TerminalPrompter:
    """Asks the person at a terminal."""

    # Gives the next line without its end; None at the end of input.
    read_line: Callable[[], Awaitable[str | None]]
    # Shows a text; no line end is added.
    write: Callable[[str], None]
    # Opens a page in the browser; False when that cannot be done.
    open_url: Callable[[str], Awaitable[bool]]

    async def ask(self, request: InputRequest) -> Answer:
        """Show one question and wait for its answer. Cancellation: safe; the dialog ends where it is."""
        self._head(request)
        try:
            if request.kind is Kind.URL:
                return await self._ask_url(request)
            return await self._ask_form(request)
        except _Left as left:
            self._say("declined" if left.answer.action is Action.DECLINE else "cancelled")
            return left.answer

    def _head(self, request: InputRequest) -> None:
        done = request.stage is Stage.COMPLETION
        self._say(f"\nThe server {clean_line(request.server)!r} {'sent you to a page' if done else 'asks'}:")
        self._quote(request.message)

    def _say(self, text: str) -> None:
        self.write(text + "\n")

    def _quote(self, text: str) -> None:
        for line in clean(text).splitlines():
            self._say(BAR + line)

    async def _read(self, prompt: str) -> str:
        self.write(prompt)
        line = await self.read_line()
        if line is None:
            raise _Left(CANCELLED)
        match line.strip():
            case "/decline":
                raise _Left(DECLINED)
            case "/cancel":
                raise _Left(CANCELLED)
            case "/back":
                raise _Back
        # A text that begins with a slash is written with two.
        return line[1:] if line.startswith("//") else line

    # ── pages ────────────────────────────────────────────────────────────────────────────────────────────────────────

    async def _ask_url(self, request: InputRequest) -> Answer:
        assert request.url is not None
        self._say(f"It wants you to open a page of {request.url.host}:")
        self._quote(request.url.text)
        for warning in request.url.warnings:
            self._say(f"Warning: {warning}")
        if request.stage is Stage.COMPLETION:
            await self._choose("Are you done there? [y]es, [d]ecline, [c]ancel: ", "y")
            return Answer(Action.ACCEPT)
        await self._choose("Open it in your browser? [y]es, [d]ecline, [c]ancel: ", "y")
        if not await self.open_url(request.url.text):
            self._say("No browser could be started: open the page yourself.")
        return Answer(Action.ACCEPT)

    async def _choose(self, prompt: str, letters: str) -> str:
        """Ask until one of the letters is typed; d and c leave the dialog."""
        while True:
            try:
                word = (await self._read(prompt)).strip().lower()
            except _Back:
                word = "e" if "e" in letters else ""
            if word in ("d", "decline", "n", "no"):
                raise _Left(DECLINED)
            if word in ("c", "cancel"):
                raise _Left(CANCELLED)
            if word and word[0] in letters and word in ("y", "yes", "e", "edit"):
                return word[0]

    # ── forms ────────────────────────────────────────────────────────────────────────────────────────────────────────

    async def _ask_form(self, request: InputRequest) -> Answer:
        assert request.form is not None
        form = self._without_secrets(request.form)
        self._complain(form, request.problems)
        if form.fields:
            self._say(HELP)
        values: dict[str, Json] = {}
        while True:
            await self._fill(form, values)
            filled = fill_form(form, values)
            if filled.problems:
                self._complain(form, filled.problems)
                continue
            self._review(form, dict(filled.content))
            if await self._choose("Send this? [y]es, [e]dit, [d]ecline, [c]ancel: ", "ye") == "y":
                return Answer(Action.ACCEPT, filled.content)

    def _complain(self, form: Form, problems: Mapping[str, str]) -> None:
        titles = {item.name: item.title for item in form.fields}
        for name, problem in problems.items():
            self._say(f"! {clean_line(titles.get(name, name))} {problem}")

    def _without_secrets(self, form: Form) -> Form:
        """Refuse to ask for secrets; one that is required ends the dialog."""
        for item in form.secret_fields:
            self._say(
                f"Warning: {clean_line(item.title)!r} seems to ask for a secret. A form must not: it is not asked for."
            )
            if item.is_required:
                raise _Left(DECLINED)
        return type(form)(tuple(item for item in form.fields if not item.asks_secret))

    async def _fill(self, form: Form, values: dict[str, Json]) -> None:
        at = 0
        while at < len(form.fields):
            try:
                await self._fill_field(form.fields[at], values)
                at += 1
            except _Back:
                at = max(0, at - 1)

    async def _fill_field(self, item: Field, values: dict[str, Json]) -> None:
        self._say("")
        if item.description:
            self._quote(item.description)
        for number, choice in enumerate(item.choices, 1):
            self._say(f"{BAR}{number}. {clean_line(choice.title)}")
        standing = values.get(item.name, item.default)
        while True:
            text = await self._read(_prompt(item, standing))
            if text.strip() or (text and item.type is FieldType.STRING):
                value = read_text(item, text)
                if isinstance(value, NotRead):
                    self._say(f"! {value.problem}")
                    continue
                values[item.name] = value
                return
            if standing is None and item.is_required:
                self._say("! is required")
                continue
            if standing is not None:
                values[item.name] = standing
            return

    def _review(self, form: Form, content: dict[str, Json]) -> None:
        self._say("\nThis will be sent:")
        for item in form.fields:
            shown = "(left out)" if item.name not in content else _show(item, content[item.name])
            self._say(f"  {clean_line(item.title)}: {shown}")


_HINTS: Final = {
    FieldType.STRING: "",
    FieldType.NUMBER: "a number",
    FieldType.INTEGER: "a whole number",
    FieldType.BOOLEAN: "yes or no",
    FieldType.CHOICE: "choose one",
    FieldType.CHOICES: "choose some, with commas",
}


def _prompt(item: Field, standing: Json) -> str:
    hints = [item.format or _HINTS[item.type], "required" if item.is_required and standing is None else ""]
    if standing is not None:
        hints.append(f"default {_show(item, standing)}")
    told = ", ".join(clean_line(hint) for hint in hints if hint)
    return f"{clean_line(item.title)}{f' ({told})' if told else ''}: "


def _show(item: Field, value: Json) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list | tuple):
        return ", ".join(_show(item, inner) for inner in value) or "none"
    for choice in item.choices:
        if choice.value == value:
            return clean_line(choice.title)
    return clean_line(str(value), 2000)
