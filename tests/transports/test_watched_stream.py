"""Signs of life below a WebSocket."""

from __future__ import annotations

import trio
from trio.testing import memory_stream_pair

from mcp_actors.transports.watched_stream import WatchedStream


async def test_a_mute_peer_is_asked_once_and_then_silent(autojump_clock) -> None:
    """After the interval it is asked; without a sign of life within the timeout the waiting ends (S127)."""
    ours, _theirs = memory_stream_pair()
    wire, asked, start = WatchedStream(ours), [], trio.current_time()

    await wire.wait_silent(30.0, 10.0, lambda: asked.append(trio.current_time() - start))

    assert asked == [30.0]
    assert trio.current_time() - start == 40.0


async def test_each_sign_of_life_begins_the_interval_anew(autojump_clock) -> None:
    """What arrives on its own puts the asking off; what answers the asking puts the end off."""
    ours, theirs = memory_stream_pair()
    wire, asked, start = WatchedStream(ours), [], trio.current_time()

    def ask() -> None:
        asked.append(trio.current_time() - start)
        if len(asked) == 1:
            nursery.start_soon(theirs.send_all, b"pong")

    async def read() -> None:
        while await wire.receive_some(100):
            pass

    async def speak() -> None:
        await trio.sleep(2.0)
        await theirs.send_all(b"news")

    async with trio.open_nursery() as nursery:
        nursery.start_soon(read)
        nursery.start_soon(speak)
        await wire.wait_silent(3.0, 1.0, ask)
        nursery.cancel_scope.cancel()

    assert asked == [5.0, 8.0]
    assert trio.current_time() - start == 9.0
