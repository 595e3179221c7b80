"""Tests of `actors.registry`: what is told is collected for a window and published whole."""

from __future__ import annotations

from contextlib import AsyncExitStack, asynccontextmanager

import pytest
import trio
from attrs import evolve
from trio.testing import wait_all_tasks_blocked

from mcp_actors.actors.lifecycle import Phase, ServerState, ServerStatus
from mcp_actors.actors.messages import Flush, Listing, ServerListed, ServerRemoved, StatusChanged
from mcp_actors.actors.registry import Registry
from mcp_actors.errors import ActorGone
from mcp_actors.tools.catalog import tools_from_items

WINDOW = 0.016


def up(name, generation=1):
    return ServerStatus(
        name, ServerState.CONNECTED, Phase.READY, "ready", transport="stdio", scope="user", generation=generation
    )


def coming(name):
    return ServerStatus(name, ServerState.PENDING, Phase.QUEUED, "queued", transport="stdio", scope="user")


def listed(name, *tools, generation=1):
    items = [b'{"name":"%s","inputSchema":{}}' % tool.encode() for tool in tools]
    listing = Listing(tools_from_items(name, items)[0], (b'{"uri":"x://a"}',), (b'{"name":"p"}',))
    return ServerListed(name, generation, listing)


@asynccontextmanager
async def running():
    registry = Registry(window=WINDOW)
    async with trio.open_nursery() as nursery:
        await nursery.start(registry.run)
        yield registry
        nursery.cancel_scope.cancel()


async def tell(registry, *messages):
    for message in messages:
        await registry.mailbox.ref.tell(message)
    await wait_all_tasks_blocked()


def names(registry):
    return sorted(registry.snapshot.catalog.tools)


async def test_updates_of_one_window_are_published_once(autojump_clock):
    """The window begins with the first update, later ones do not extend it; one snapshot holds all (S366, S368)."""
    async with running() as registry:
        await tell(registry, StatusChanged(up("a"), object()), listed("a", "one"))
        await trio.sleep(WINDOW * 0.75)
        await tell(registry, StatusChanged(up("b"), object()), listed("b", "two"))
        before = registry.snapshot.version
        await trio.sleep(WINDOW * 0.5)

        assert (before, registry.snapshot.version) == (0, 1)
        assert names(registry) == ["mcp__a__one", "mcp__b__two"]


async def test_the_last_server_that_somebody_awaits_is_published_at_once(autojump_clock):
    """Who waits for servers to be tried pays no window at the end, also where one was tried before or is removed."""
    async with running() as registry:
        began = trio.current_time()
        await tell(registry, StatusChanged(up("done")), *(StatusChanged(coming(name)) for name in "abc"))
        await registry.mailbox.ref.ask(Flush(("done", "a", "b", "c")))
        await tell(registry, StatusChanged(up("a"), object()), ServerRemoved("c"))
        before = registry.snapshot.version
        await tell(registry, StatusChanged(up("b"), object()))

        assert (before, registry.snapshot.version, trio.current_time()) == (1, 2, began)
        assert [name for name, status in registry.snapshot.servers.items() if status.is_tried] == ["done", "a", "b"]


async def test_a_failed_try_is_a_try(autojump_clock):
    """A server whose first try failed holds up nobody who awaits it, though it will be tried again (fault 88)."""
    async with running() as registry:
        began = trio.current_time()
        await tell(registry, StatusChanged(coming("a")))
        await registry.mailbox.ref.ask(Flush(("a",)))
        again = evolve(coming("a"), phase=Phase.BACKING_OFF, reason="exit", attempt=1)
        await tell(registry, StatusChanged(again))

        assert (trio.current_time(), registry.snapshot.servers["a"]) == (began, again)


async def test_a_server_that_is_told_of_twice_has_its_last_lists(autojump_clock):
    """Its lists replace what was known of it; another's, whose name begins alike, are left alone (S367, S368)."""
    async with running() as registry:
        await tell(registry, StatusChanged(up("git"), object()), listed("git", "old"))
        await tell(registry, StatusChanged(up("github"), object()), listed("github", "other"), listed("git", "new"))
        await registry.mailbox.ref.ask(Flush())

        assert names(registry) == ["mcp__git__new", "mcp__github__other"]


async def test_everything_of_a_server_comes_and_goes_together(autojump_clock):
    """Tools, resources, prompts and the connection stand in one snapshot, and none of them in the next (S369, S371)."""
    async with running() as registry:
        connection = object()
        await tell(registry, StatusChanged(up("a"), connection), listed("a", "one"))
        await registry.mailbox.ref.ask(Flush())
        there = registry.snapshot
        down = evolve(up("a"), state=ServerState.FAILED, phase=Phase.PARKED, reason="exit")
        await tell(registry, StatusChanged(down))
        await registry.mailbox.ref.ask(Flush())
        gone = registry.snapshot

    assert (there.connections["a"], len(there.listings["a"].resources), len(there.listings["a"].prompts)) == (
        connection,
        1,
        1,
    )
    assert (there.servers["a"].tools, there.servers["a"].resources, there.servers["a"].prompts) == (1, 1, 1)
    assert (dict(gone.connections), dict(gone.listings), dict(gone.catalog.tools)) == ({}, {}, {})
    assert gone.servers["a"].state == "failed"


async def test_what_was_published_never_changes(autojump_clock):
    """Who holds a snapshot sees what it was; the next one is another value (S370)."""
    async with running() as registry:
        await tell(registry, StatusChanged(up("a"), object()), listed("a", "one"))
        await registry.mailbox.ref.ask(Flush())
        held = registry.snapshot
        seen = (dict(held.servers), dict(held.connections), dict(held.listings), dict(held.catalog.tools))
        await tell(registry, listed("a", "two"), ServerRemoved("a"))
        await registry.mailbox.ref.ask(Flush())

    assert seen == (dict(held.servers), dict(held.connections), dict(held.listings), dict(held.catalog.tools))
    assert registry.snapshot is not held
    assert dict(registry.snapshot.servers) == {}


async def test_lists_of_an_older_connection_do_not_count(autojump_clock):
    """What a connection fetched before the server got another one is not published (S126)."""
    async with running() as registry:
        await tell(registry, StatusChanged(up("a", generation=2), object()), listed("a", "late", generation=1))
        await registry.mailbox.ref.ask(Flush())

        assert names(registry) == []


@pytest.mark.parametrize("is_late", [False, True])
async def test_a_watcher_and_the_snapshot_agree(autojump_clock, is_late):
    """What a watcher is told the snapshot shows, and what the snapshot does not show yet it will be told."""
    async with running() as registry, AsyncExitStack() as stack:
        watcher = None if is_late else stack.enter_context(registry.watch())
        await tell(registry, StatusChanged(up("a"), object()), listed("a", "one"))
        assert "a" not in registry.snapshot.servers
        if watcher is None:
            watcher = stack.enter_context(registry.watch())
        change = await anext(watcher)

        assert change.new is not None
        assert (change.new.state, names(registry)) == ("connected", ["mcp__a__one"])


async def test_what_was_told_before_the_end_is_published(autojump_clock):
    """Closing publishes what waits, and whoever waits for more is told that there is none (S372)."""
    async with running() as registry:
        await tell(registry, StatusChanged(up("a"), object()))
        registry.mailbox.ref.tell_nowait(StatusChanged(up("b"), object()))

    assert list(registry.snapshot.servers) == ["a", "b"]
    with pytest.raises(ActorGone):
        await registry.wait_published()
