"""What one connection listens to: what a watcher keeps that nobody reads, and a level for a server that has ended."""

from __future__ import annotations

import pytest
import trio
from scripted_fleet import echo_server, spec

from mcp_actors.actors.listening import MAX_LOG_BYTES, MAX_LOG_MESSAGES, MAX_URI_CHARS, Listening
from mcp_actors.errors import TransportBroken
from mcp_actors.protocol.events import LogReceived
from mcp_actors.runtime import open_runtime


async def test_a_resource_that_changed_twice_is_told_once_and_others_in_their_order() -> None:
    """S329: a watcher keeps which URIs changed; its own, and those below it."""
    listening = Listening()

    with listening.watch("x://a") as changes:
        for uri in ("x://a/2", "x://a", "x://ab", "x://a/2"):
            listening.resource_updated(uri)
        listening.end()
        seen = [uri async for uri in changes]

    assert seen == ["x://a/2", "x://a"]


@pytest.mark.parametrize("length", [20, 100_000, 2 * MAX_URI_CHARS])
async def test_of_too_many_changes_only_that_there_were_some_is_kept(length: int) -> None:
    """Invariant 5: a server that names ever new URIs, or long ones, fills no memory; nothing that changed is missed."""
    listening = Listening()
    count = 2 * MAX_URI_CHARS // length + 2

    with listening.watch("x://a") as changes:
        for number in range(count):
            listening.resource_updated(f"x://a/{number}".ljust(length, "-"))
        listening.end()
        seen = [uri async for uri in changes]

    assert seen[0] == "x://a"
    assert sum(map(len, seen)) <= MAX_URI_CHARS


@pytest.mark.parametrize(
    ("text", "count", "kept"),
    [
        ("short", MAX_LOG_MESSAGES + 5, MAX_LOG_MESSAGES),
        ("x" * (MAX_LOG_BYTES // 4), 9, 3),
        ("x" * MAX_LOG_BYTES, 3, 1),
    ],
)
async def test_who_falls_behind_loses_the_oldest_log_messages(text: str, count: int, kept: int) -> None:
    """Invariant 5: so many messages, and so many bytes of them; the newest is always among them."""
    listening = Listening()

    with listening.watch_log() as messages:
        for number in range(count):
            listening.log_received(LogReceived("info", str(number), text))
        listening.end()
        seen = [message.logger async for message in messages]

    assert seen == [str(number) for number in range(count - kept, count)]


async def test_a_level_for_a_server_that_has_just_ended_fails_as_the_server_did(autojump_clock: object) -> None:
    """S146: whoever asks in the moment of a death is told of the death, not of a mistake of ours."""
    server = echo_server()

    async with open_runtime([spec("one", server)]) as runtime:
        await runtime.wait_ready()
        connection = await runtime.connection("one")
        connection.close(TransportBroken(server="one", reason="planted"))
        with pytest.raises(TransportBroken, match="planted"):
            await connection.set_log_level("error")
        with pytest.raises(TransportBroken, match="planted"):
            await connection.request("ping")
        with trio.fail_after(5):
            await runtime.restart("one")
