"""Owns what a person may write to a model besides words: commands that are prompts of servers, mentions of resources.

What this is not: their grammar (`tools.mentions`), nor the model's own way to resources (`own_tools`).

Rule 1: nothing of a server is read unless a person names it here, or a model by a tool; never by itself (S319, S323).
Rule 2: a mention that cannot be had costs itself only: it is a result that says why (S327).
Rule 3: what is offered while somebody types never fails; a server that cannot help offers nothing.
"""

from __future__ import annotations

import re
from contextlib import suppress
from difflib import get_close_matches
from typing import TYPE_CHECKING, Final

import trio

from mcp_actors.errors import LocalProtocolError, McpActorsError, UnknownPrompt, UnknownServer
from mcp_actors.groups import bare_errors
from mcp_actors.model.own_tools import told
from mcp_actors.protocol.jsonrpc import encode
from mcp_actors.tools.mentions import (
    MissingArguments,
    complete_mention,
    complete_words,
    fill_arguments,
    parse_command,
    parse_mentions,
    split_words,
)
from mcp_actors.tools.resource_tools import contents_as_blocks
from mcp_actors.tools.results import ToolResult
from mcp_actors.tools.sanitise import clean_text
from mcp_actors.values import frozen

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from collections.abc import Set as AbstractSet

    from mcp_actors.actors.registry import Snapshot
    from mcp_actors.fleet.running import Runtime
    from mcp_actors.fleet.server import Server
    from mcp_actors.jsontypes import JsonObject
    from mcp_actors.model.face import ModelFace
    from mcp_actors.tools.items import Prompt, ResourceTemplate
    from mcp_actors.tools.mentions import Mention
    from mcp_actors.tools.plans import ModelResult

__all__ = ["Attachment", "Composer", "PromptMessage"]

MAX_MESSAGES: Final = 100
_LAST_WORD: Final = re.compile(r"\S+\Z")
_MARKS: Final = ".,;:!?)]}>\"'"
_BLANK: Final = re.compile(r"\s")
# A pattern of URIs that ends in its only variable: its values can be completed.
_OPEN_END: Final = re.compile(r"([^{}]*)\{(\w+)\}")


@frozen
class PromptMessage:
    """One message of a filled prompt: `role` is "user" or "assistant", the content is what a model gets of it."""

    role: str
    content: ModelResult


@frozen
class Attachment:
    """A resource that a person named, read; `is_error` of its content says that it could not be had, and why."""

    mention: Mention
    content: ModelResult


class Composer:
    """What a person may write beside a face of the fleet. Valid for as long as the runtime is.

    Of servers that are not connected it knows nothing: what they offered vanishes with them (S330, S338).
    """

    def __init__(self, runtime: Runtime, face: ModelFace) -> None:
        self._runtime = runtime
        self._face = face
        # Server -> its listing when its patterns were fetched, and they: fetched when first needed (S325).
        self._templates: dict[str, tuple[object, tuple[ResourceTemplate, ...]]] = {}

    # ── commands ─────────────────────────────────────────────────────────────────────────────────────────────────────

    @property
    def commands(self) -> Mapping[str, Prompt]:
        """``/mcp__server__prompt`` -> the prompt, of all connected servers, in configuration order (S332, S338)."""
        servers = [self._runtime.server(name) for name in self._snapshot.connections]
        return {f"/{prompt.callable_name}": prompt for server in servers for prompt in server.prompts}

    async def expand(self, text: str) -> tuple[PromptMessage, ...] | MissingArguments | None:
        """Fill the prompt that a command names; its messages are to be sent to the model in its place.

        Returns:
            The messages, with pictures and resources as in results (S335); or what is missing and how the command is
            used: then the server was not asked (S334). None: the text is no command.

        Raises:
            UnknownPrompt: no connected server has such a command.
            (and what `Runtime.call_tool` raises.)

        Cancellation:
            Safe.

        Source:
            S332-S335.
        """
        command = parse_command(text)
        if command is None:
            return None
        commands = self.commands
        prompt = commands.get(f"/{command.name}")
        if prompt is None:
            raise UnknownPrompt(name=command.name, nearest=tuple(get_close_matches(f"/{command.name}", commands, n=2)))
        filled = fill_arguments(prompt, command.words)
        if isinstance(filled, MissingArguments):
            return filled
        result = await self._runtime.server(prompt.server).get_prompt(prompt.key, filled)
        messages = result.get("messages")
        found = messages[:MAX_MESSAGES] if isinstance(messages, list) else []
        return tuple([await self._message(prompt.server, each) for each in found if isinstance(each, dict)])

    async def _message(self, server: str, message: JsonObject) -> PromptMessage:
        content, role = message.get("content"), message.get("role")
        blocks = content if isinstance(content, list) else [content]
        taken = await self._take(server, [block for block in blocks if isinstance(block, dict)])
        return PromptMessage(clean_text(role) if isinstance(role, str) else "user", taken)

    # ── mentions ─────────────────────────────────────────────────────────────────────────────────────────────────────

    async def attach(self, text: str) -> tuple[Attachment, ...]:
        """Read the resources that a text mentions (``@server:uri``), all at once; in the order of the text.

        What cannot be had is an attachment whose content is an error that says why. Give a deadline of your own where
        one slow server may not hold up the others.

        Cancellation:
            Safe.

        Source:
            S324, S327, S328.
        """
        mentions = parse_mentions(text)
        contents: list[ModelResult | None] = [None] * len(mentions)

        async def read(position: int, mention: Mention) -> None:
            contents[position] = await self._read(mention)

        with bare_errors():
            async with trio.open_nursery() as nursery:
                for position, mention in enumerate(mentions):
                    nursery.start_soon(read, position, mention)
        return tuple(
            Attachment(mention, content)
            for mention, content in zip(mentions, contents, strict=True)
            if content is not None
        )

    async def _read(self, mention: Mention) -> ModelResult:
        try:
            if mention.server not in (having := self._having_resources()):
                raise UnknownServer(name=mention.server, nearest=having)
            server = self._runtime.server(mention.server)
            result = await server.read_resource(_meant(mention.uri, {resource.uri for resource in server.resources}))
            return await self._take(mention.server, [_picture_of(block) for block in contents_as_blocks(result)])
        except (McpActorsError, trio.TooSlowError) as error:
            why = error.describe() if isinstance(error, McpActorsError) else f"timed out: {error}"
            return told(f"@{mention.server}:{mention.uri} could not be read: {clean_text(why)}", is_error=True)

    def _having_resources(self) -> tuple[str, ...]:
        connections = self._snapshot.connections
        return tuple(name for name, one in connections.items() if one.info is not None and one.info.has("resources"))

    async def _take(self, server: str, blocks: Sequence[JsonObject]) -> ModelResult:
        return await self._face.take(ToolResult(encode({"content": list(blocks)}), server))

    # ── while it is typed ────────────────────────────────────────────────────────────────────────────────────────────

    async def complete(self, text: str, limit: int = 10) -> tuple[str, ...]:
        """What the last word of a text may become: a mention, a command, or an argument of a command; best first.

        Mentions and commands are found without asking a server; patterns of URIs and values of arguments by asking
        theirs (``completion/complete``), under a deadline of yours.

        Args:
            text: what was typed, up to where the person is.
            limit: at most so many.

        Cancellation:
            Safe.

        Source:
            S324, S325, S330, S338, S339, F18.
        """
        with suppress(McpActorsError, trio.TooSlowError):
            if (command := parse_command(text)) is not None and text.lstrip() != f"/{command.name}":
                return (await self._values(f"/{command.name}", command.words, text))[:limit]
            word = _LAST_WORD.search(text)
            if word is not None and word[0].startswith("@"):
                return tuple(f"@{found}" for found in await self._mentions(word[0][1:], limit))
            if text.lstrip().startswith("/"):
                return complete_words(text.strip(), self.commands, limit)
        return ()

    async def _mentions(self, fragment: str, limit: int) -> tuple[str, ...]:
        having = self._having_resources()
        named = [(name, resource.uri) for name in having for resource in self._runtime.server(name).resources]
        server, colon, uri = fragment.partition(":")
        if colon and server in having:
            named += [(server, found) for found in await self._uris(self._runtime.server(server), uri)]
        # What a blank or a hidden sign is in cannot be typed as a mention.
        typeable = dict.fromkeys(
            pair for pair in named if clean_text(pair[1]) == pair[1] and not _BLANK.search(pair[1])
        )
        return complete_mention(fragment, typeable, limit)

    async def _uris(self, server: Server, uri: str) -> list[str]:
        """URIs that fit the patterns of a server, and the patterns themselves."""
        found: list[str] = []
        for template in await self._templates_of(server):
            found.append(template.uri_template)
            match = _OPEN_END.fullmatch(template.uri_template)
            if match is not None and uri.startswith(match[1]):
                ref: JsonObject = {"type": "ref/resource", "uri": template.uri_template}
                values = await self._ask_values(server, ref, match[2], uri[len(match[1]) :])
                found += [match[1] + value for value in values]
        return found

    async def _templates_of(self, server: Server) -> tuple[ResourceTemplate, ...]:
        listing = self._snapshot.listings.get(server.name)
        kept = self._templates.get(server.name)
        if kept is None or kept[0] is not listing:
            kept = self._templates[server.name] = (listing, await server.templates())
        return kept[1]

    async def _values(self, name: str, words: Sequence[str], text: str) -> tuple[str, ...]:
        """Values of the argument that is being typed; what has blanks in it is quoted."""
        prompt = self.commands.get(name)
        if prompt is None or not prompt.arguments:
            return ()
        *before, typed = words if words and not text[-1].isspace() else (*words, "")
        position = min(len(before), len(prompt.arguments) - 1)
        context = {argument.name: word for argument, word in zip(prompt.arguments[:position], before, strict=False)}
        ref: JsonObject = {"type": "ref/prompt", "name": prompt.key}
        argument = prompt.arguments[position].name
        values = await self._ask_values(self._runtime.server(prompt.server), ref, argument, typed, context)
        return tuple(value if split_words(value) == (value,) else f'"{value}"' for value in values if '"' not in value)

    async def _ask_values(
        self, server: Server, ref: JsonObject, argument: str, typed: str, context: Mapping[str, str] | None = None
    ) -> tuple[str, ...]:
        with suppress(LocalProtocolError):  # it completes nothing
            values = (await server.complete(ref, argument, typed, context)).get("values")
            texts = values if isinstance(values, list) else []
            return tuple(value for value in texts if isinstance(value, str) and clean_text(value) == value)
        return ()

    @property
    def _snapshot(self) -> Snapshot:
        return self._runtime.snapshot


def _meant(uri: str, listed: AbstractSet[str]) -> str:
    """The URI without the sentence's mark behind it, where only that is listed; else as it was written."""
    bare = uri.rstrip(_MARKS)
    return bare if uri not in listed and bare in listed else uri


def _picture_of(block: JsonObject) -> JsonObject:
    """A resource that is a picture as a picture, which a model sees; anything else as it is."""
    resource = block.get("resource")
    mime, blob = (resource.get(key) if isinstance(resource, dict) else None for key in ("mimeType", "blob"))
    is_picture = isinstance(mime, str) and mime.startswith("image/") and isinstance(blob, str)
    return {"type": "image", "data": blob, "mimeType": mime} if is_picture else block
