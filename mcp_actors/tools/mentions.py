"""Owns how a person writes resources and prompts of servers: ``@server:uri`` and ``/mcp__server__prompt "words" more``.

What this is not: fetching them; names and URIs found here are looked up and sent as the server wrote them.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

from mcp_actors.tools.naming import parse

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from mcp_actors.tools.items import Prompt

__all__ = [
    "Command",
    "Mention",
    "MissingArguments",
    "complete_mention",
    "complete_words",
    "fill_arguments",
    "parse_command",
    "parse_mentions",
    "split_words",
    "usage_of",
]

MAX_MENTIONS: Final = 100
# An at sign within a word is an address of electronic mail.
_MENTION: Final = re.compile(r"(?<![\w.@])@([^\s:@]+):(\S+)")
_COMMAND: Final = re.compile(r"\s*/(mcp__\S+)(?:\s+(.*))?\Z", re.DOTALL)
_WORD: Final = re.compile(r"\S")


class Mention(NamedTuple):
    """A resource that a person named; `start` and `end` are its place in the text."""

    server: str
    uri: str
    start: int
    end: int


def parse_mentions(text: str) -> tuple[Mention, ...]:
    """Find the resources that a text mentions: an at sign, a server up to the first colon, a URI up to a blank.

    At most 100, in order. Whether the servers exist is for whoever reads them to say (S327).

    Source:
        S324.
    """
    found = (Mention(match[1], match[2], match.start(), match.end()) for match in _MENTION.finditer(text))
    return tuple(mention for mention, _ in zip(found, range(MAX_MENTIONS), strict=False))


def complete_mention(fragment: str, candidates: Iterable[tuple[str, str]], limit: int = 10) -> tuple[str, ...]:
    """Complete what was typed after an at sign.

    Args:
        fragment: typed so far, without the at sign.
        candidates: (server, URI) of all resources, in order.
        limit: at most so many.

    Returns:
        ``server:uri``, best first: beginnings, then parts, then letters in their order with gaps.

    Source:
        S324.
    """
    return complete_words(fragment, (f"{server}:{uri}" for server, uri in candidates), limit)


def complete_words(fragment: str, candidates: Iterable[str], limit: int = 10) -> tuple[str, ...]:
    """Complete what was typed, as `complete_mention` does, to any of these words."""
    wanted = fragment.casefold()
    ranked: list[tuple[int, int, str]] = []
    for order, whole in enumerate(candidates):
        rank = _rank(wanted, whole.casefold())
        if rank is not None:
            ranked.append((rank, order, whole))
    return tuple(whole for _, _, whole in sorted(ranked)[:limit])


def _rank(wanted: str, whole: str) -> int | None:
    if whole.startswith(wanted):
        return 0
    if wanted in whole:
        return 1
    at = 0
    for sign in wanted:
        at = whole.find(sign, at) + 1
        if not at:
            return None
    return 2


class Command(NamedTuple):
    """A prompt that a person asked for: its callable name, and the words after it."""

    name: str
    words: tuple[str, ...]


def parse_command(text: str) -> Command | None:
    """Read ``/mcp__server__prompt words``; None when the text is no such command (S332, S333)."""
    match = _COMMAND.match(text)
    if match is None:
        return None
    parsed = parse(match[1])
    if parsed is None or not parsed.tool:
        return None
    return Command(match[1], split_words(match[2] or ""))


def split_words(text: str) -> tuple[str, ...]:
    """Split words as a shell does: blanks separate, quotes hold together, a backslash takes the next sign as it is.

    A quote that is never closed is a sign like any other, so that ``don't`` needs no care (S333).
    """
    words: list[str] = []
    word: list[str] | None = None
    at = 0
    closing = {quote: text.rfind(quote) for quote in "'\""}
    while at < len(text):
        sign = text[at]
        if sign.isspace():
            if word is not None:
                words.append("".join(word))
            word = None
            at += 1
            continue
        word = [] if word is None else word
        if sign == "\\" and at + 1 < len(text):
            # Before anything but a quote, a blank or itself it is a sign: paths of Windows are written with it.
            following = text[at + 1]
            word.append(following if following in "'\"\\" or following.isspace() else sign + following)
            at += 2
        elif sign in closing and at < closing[sign] and (end := text.find(sign, at + 1)) > at:
            word.append(text[at + 1 : end])
            at = end + 1
        else:
            word.append(sign)
            at += 1
    return (*words, "".join(word)) if word is not None else tuple(words)


class MissingArguments(NamedTuple):
    """Arguments that a prompt needs and did not get, and how to write the command (S334)."""

    names: tuple[str, ...]
    usage: str

    def describe(self) -> str:
        """Say it in one line."""
        return f"missing {', '.join(self.names)}; usage: {self.usage}"


def usage_of(prompt: Prompt) -> str:
    """Write how a prompt's command is used; optional arguments stand in brackets."""
    words = (
        f"<{argument.shown_name}>" if argument.is_required else f"[{argument.shown_name}]"
        for argument in prompt.arguments
    )
    return " ".join((f"/{prompt.callable_name}", *words))


def fill_arguments(prompt: Prompt, words: Sequence[str]) -> dict[str, str] | MissingArguments:
    """Give words to the declared arguments in order; surplus words join the last one.

    Returns:
        Maps raw argument name -> text, for ``prompts/get``; or what is missing, before the server is asked.

    Source:
        S333, S334.
    """
    declared = prompt.arguments
    values = list(words)
    if declared and len(values) > len(declared):
        values = [*values[: len(declared) - 1], " ".join(values[len(declared) - 1 :])]
    filled = {argument.name: value for argument, value in zip(declared, values, strict=False)}
    missing = tuple(
        argument.shown_name for argument in declared if argument.is_required and argument.name not in filled
    )
    return MissingArguments(missing, usage_of(prompt)) if missing else filled
