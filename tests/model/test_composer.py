"""What a person writes to a model: commands, mentions, and what is offered while it is typed."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import pytest
from scripted_fleet import spec

from mcp_actors.errors import UnknownPrompt
from mcp_actors.model.composer import Composer
from mcp_actors.model.face import ModelFace
from mcp_actors.runtime import open_runtime
from mcp_actors.testing.scripted import ScriptedServer
from mcp_actors.tools.mentions import MissingArguments
from mcp_actors.tools.plans import ModelImage, ModelText

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from mcp_actors.fleet.running import Runtime

pytestmark = pytest.mark.deadline(10)

CODED = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
WHAT = [{"name": "what", "required": True}, {"name": "how"}]


def library() -> ScriptedServer:
    server = ScriptedServer("lib")
    server.add_resource("note://a", "tea\u200b costs 9")
    server.add_resource("note://with blank", "never typed")
    server.add_resource("note://hid\u202eden", "never typed")
    server.add_resource(
        "pic://a", lambda call: {"contents": [{"uri": "pic://a", "mimeType": "image/png", "blob": CODED}]}
    )
    server.add_template("file:///{path}")
    server.add_template("db://{table}/{row}")
    server.add_prompt("review it", lambda call: {"messages": messages(call.arguments)}, arguments=WHAT)
    server.add_completion(complete)
    return server


def messages(arguments: dict[str, str]) -> list[object]:
    picture = {"type": "image", "data": CODED, "mimeType": "image/png"}
    note = {"type": "resource", "resource": {"uri": "note://x", "text": "a note"}}
    return [
        {"role": "user", "content": {"type": "text", "text": f"review {sorted(arguments.items())}"}},
        {"role": "assistant", "content": [picture, note]},
        "no message",
    ]


def complete(call) -> list[str]:
    typed, known = call.params["argument"], call.params.get("context", {}).get("arguments", {})
    offered = {"path": ["src/a.py", "src/b.py"], "what": ["the menu", "code", "\u202eevil"], "how": [f"like {known}"]}
    return [value for value in offered[typed["name"]] if value.startswith(typed["value"])]


@asynccontextmanager
async def composing(*servers: ScriptedServer) -> AsyncIterator[tuple[Runtime, Composer]]:
    async with open_runtime([spec(server.name, server) for server in servers]) as runtime:
        await runtime.wait_ready()
        yield runtime, Composer(runtime, ModelFace(runtime))


def texts(result) -> list[str]:
    return [block.text for block in result.blocks if isinstance(block, ModelText)]


# ── mentions ─────────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_what_is_mentioned_is_read_and_attached() -> None:
    """S324, S335: several in one text, in its order; texts are cleaned, pictures are pictures."""
    async with composing(library()) as (_, composer):
        note, picture = await composer.attach("see @lib:note://a and @lib:pic://a please")

    assert (note.mention.uri, note.content.is_error) == ("note://a", False)
    assert "tea costs 9" in "".join(texts(note.content))
    assert [block.mime for block in picture.content.blocks if isinstance(block, ModelImage)] == ["image/png"]


async def test_a_mention_that_cannot_be_had_costs_itself_only() -> None:
    """S327, S328, F15: an unknown server names those that have resources, a missing one is told, the rest is read."""
    async with composing(library(), ScriptedServer("bare")) as (_, composer):
        unknown, bare, missing, good = await composer.attach("@nobody:x://y @bare:x://y @lib:note://none @lib:note://a")

    assert [one.content.is_error for one in (unknown, bare, missing, good)] == [True, True, True, False]
    assert "lib" in texts(unknown.content)[0]
    assert "lib" in texts(bare.content)[0]
    assert "note://none" in texts(missing.content)[0]


async def test_the_mark_behind_a_mention_is_the_sentences() -> None:
    """A URI reaches to the next blank; where only what stands before a mark is listed, that is meant (S324)."""
    server = library()
    server.add_resource("note://a.", "another")
    async with composing(server) as (_, composer):
        contents = [each.content for each in await composer.attach("@lib:note://a, (@lib:note://a) @lib:note://a.")]

    assert [("".join(texts(content)).split()[-1], content.is_error) for content in contents] == [
        ("9", False),
        ("9", False),
        ("another", False),
    ]


async def test_nothing_is_read_that_nobody_named() -> None:
    """S319, S323: listing, completing and expanding read no resource; a mention reads exactly its own."""
    server = library()
    async with composing(server) as (_, composer):
        await composer.complete("see @lib:note")
        await composer.expand("/mcp__lib__review_it x")
        before = len(server.seen("resources/read"))
        await composer.attach("see @lib:note://b, mail me@lib:note")

    assert (before, [each["params"]["uri"] for each in server.seen("resources/read")]) == (0, ["note://b,"])


# ── commands ─────────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_command_becomes_the_messages_of_its_prompt() -> None:
    """S332, S333, S335: words fill the arguments in order; pictures and resources are as in results."""
    async with composing(library()) as (_, composer):
        said, shown = await composer.expand('/mcp__lib__review_it "the menu" very well')

    assert (said.role, texts(said.content)) == ("user", ["review [('how', 'very well'), ('what', 'the menu')]"])
    assert shown.role == "assistant"
    assert isinstance(shown.content.blocks[0], ModelImage)
    assert "a note" in texts(shown.content)[-1]


async def test_a_command_that_lacks_an_argument_is_not_asked() -> None:
    """S334: what is missing and the usage are told, and the server hears nothing."""
    server = library()
    async with composing(server) as (_, composer):
        told = await composer.expand("/mcp__lib__review_it")

    assert told == MissingArguments(("what",), "/mcp__lib__review_it <what> [how]")
    assert server.seen("prompts/get") == []


async def test_what_is_no_command() -> None:
    """A text is left alone; a command that nobody has is an error with the nearest names."""
    async with composing(library()) as (_, composer):
        assert await composer.expand("please /mcp__lib__review_it") is None
        with pytest.raises(UnknownPrompt) as caught:
            await composer.expand("/mcp__lib__reviewit x")

    assert caught.value.nearest == ("/mcp__lib__review_it",)


# ── completion ───────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("text", "offered"),
    [
        ("see @no", ("@lib:note://a",)),
        ("@pica", ("@lib:pic://a",)),
        ("@lib:file:///src", ("@lib:file:///src/a.py", "@lib:file:///src/b.py")),
        ("@lib:db", ("@lib:db://{table}/{row}",)),
        ("@zzz", ()),
        ("a@lib", ()),
        ("see @no ", ()),
        ("plain", ()),
        ("", ()),
        ("/rev", ("/mcp__lib__review_it",)),
        ("/mcp__lib__rev", ("/mcp__lib__review_it",)),
        ("/mcp__lib__review_it ", ('"the menu"', "code")),
        ("/mcp__lib__review_it co", ("code",)),
        ("/mcp__lib__review_it code ", ("\"like {'what': 'code'}\"",)),
        ("/mcp__lib__none x", ()),
    ],
)
async def test_what_the_last_word_may_become(text: str, offered: tuple[str, ...]) -> None:
    """S324, S325, S339: mentions, patterns, commands and values; what cannot be typed or hides signs is not offered."""
    async with composing(library()) as (_, composer):
        assert await composer.complete(text) == offered


async def test_patterns_are_fetched_when_first_needed_and_once() -> None:
    """S325: nothing is asked before a server is mentioned, and its patterns once until it lists anew."""
    server = library()
    async with composing(server) as (runtime, composer):
        await composer.complete("see @li")
        before = len(server.seen("resources/templates/list"))
        await composer.complete("see @lib:f")
        await composer.complete("see @lib:fi")
        once = len(server.seen("resources/templates/list"))
        listing = runtime.snapshot.listings["lib"]
        await server.notify("notifications/resources/list_changed")
        while runtime.snapshot.listings["lib"] is listing:
            await runtime.wait_published()
        await composer.complete("see @lib:fi")

    assert (before, once, len(server.seen("resources/templates/list"))) == (0, 1, 2)


async def test_a_server_that_is_gone_offers_nothing() -> None:
    """S330, S338: its resources and commands vanish from what is offered, in the snapshot that drops its tools."""
    async with composing(library()) as (runtime, composer):
        assert (len(composer.commands), len(await composer.complete("@no"))) == (1, 1)
        await runtime.disable("lib")

        assert (dict(composer.commands), await composer.complete("@no"), runtime.catalog.tools_of("lib")) == (
            {},
            (),
            (),
        )


async def test_a_server_that_refuses_to_complete_offers_what_is_listed() -> None:
    """An error while somebody types is no error of theirs."""
    server = library()
    async with composing(server) as (_, composer):
        server.refuse("completion/complete", -32603, "broken")

        assert await composer.complete("/mcp__lib__review_it co") == ()
        assert await composer.complete("@lib:note") == ("@lib:note://a",)
