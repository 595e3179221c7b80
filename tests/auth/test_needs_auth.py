"""Tests of `auth.needs_auth`."""

from __future__ import annotations

import json

import pytest
import trio
from oauth_peer import Clock

from mcp_actors.auth.needs_auth import FILE_NAME, NeedsAuthCache, cache_id, why_no_login
from mcp_actors.config.specs import InProcessTarget, RemoteTarget, ServerSpec, StdioTarget


@pytest.fixture
def clock():
    return Clock(1_800_000_000.0)  # of these days: in milliseconds it is a large number


@pytest.fixture
def path(tmp_path):
    return tmp_path / "state" / FILE_NAME


def cache(path, clock):
    return NeedsAuthCache(path, lambda: clock.now)


async def test_an_entry_lasts_fifteen_minutes(path, clock):
    """Also for the next run, in the public shape (S254)."""
    await cache(path, clock).note("a")

    assert json.loads(path.read_text()) == {"a": {"timestamp": int(clock.now * 1000)}}
    clock.now += 899
    assert await cache(path, clock).is_fresh("a")
    clock.now += 2
    assert not await cache(path, clock).is_fresh("a")


async def test_a_login_clears_it_at_once(path, clock):
    """S250."""
    one = cache(path, clock)
    await one.note("a")
    await one.note("b")

    await one.clear("a")

    assert not await one.is_fresh("a")
    assert await one.is_fresh("b")


async def test_without_a_place_it_is_remembered_in_memory(clock):
    """No state directory."""
    one = cache(None, clock)
    await one.note("a")
    assert await one.is_fresh("a")
    await one.clear("a")
    assert not await one.is_fresh("a")


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"a": 1}', '{"a": {"timestamp": "x"}}', '{"a": {"timestamp": null}}', "\x00", "{}" * 9]
)
async def test_what_cannot_be_read_is_empty(path, clock, text):
    """And can be written over (S254, S256)."""
    path.parent.mkdir(mode=0o700)
    path.write_text(text)
    path.chmod(0o600)
    one = cache(path, clock)

    assert not await one.is_fresh("a")
    await one.note("a")
    assert await one.is_fresh("a")


async def test_a_moment_in_the_future_is_not_fresh(path, clock):
    """A clock that was set back does not lock anybody out."""
    await cache(path, clock).note("a")
    clock.now -= 10

    assert not await cache(path, clock).is_fresh("a")


async def test_many_readers_share_one_reading(path, clock):
    """S256."""
    readings = 0

    class Counting(NeedsAuthCache):
        def _read(self):
            nonlocal readings
            readings += 1
            return super()._read()

    one = Counting(path, lambda: clock.now)
    async with trio.open_nursery() as nursery:
        for _ in range(20):
            nursery.start_soon(one.is_fresh, "a")

    assert readings == 1


async def test_writers_come_one_after_the_other(path, clock):
    """Two caches, as two processes, lose no entry (S257)."""
    caches = [cache(path, clock), cache(path, clock)]
    async with trio.open_nursery() as nursery:
        for number in range(20):
            nursery.start_soon(caches[number % 2].note, f"s{number}")

    assert len(json.loads(path.read_text())) == 20


async def test_a_failed_write_does_not_hold_up_the_next(path, clock):
    """S257."""
    path.parent.mkdir(parents=True)
    path.mkdir()
    one = cache(path, clock)
    await one.note("a")
    path.rmdir()

    await one.note("b")

    assert await one.is_fresh("b")


REMOTE = RemoteTarget("https://h/mcp")
SPECS = [
    (ServerSpec("a", REMOTE), False),
    (ServerSpec("a", RemoteTarget("https://h/mcp", headers={"X-Key": "k"})), False),
    (ServerSpec("a", RemoteTarget("https://h/mcp", headers={"AUTHORIZATION": "Bearer x"})), True),
    (ServerSpec("a", RemoteTarget("https://h/mcp", headers_helper="x")), True),
    (ServerSpec("a", RemoteTarget("https://u:p@h/mcp")), True),
    # An "@" of the path is no user: addresses of registries look so.
    (ServerSpec("a", RemoteTarget("https://h/@owner/server/mcp")), False),
    (ServerSpec("a", RemoteTarget("https://h/mcp?as=me@h")), False),
    (ServerSpec("a", StdioTarget("x")), True),
    (ServerSpec("a", InProcessTarget(trio.sleep)), True),
]


@pytest.mark.parametrize(("spec", "expected"), SPECS)
def test_servers_with_own_credentials_are_never_remembered(spec, expected):
    """Static headers and helpers have no login that could be missing (S255)."""
    assert (cache_id(spec) is None) is expected


def test_the_key_changes_with_the_configuration():
    """Name, type, URL and headers count; secrets do not show (S255)."""
    specs = [
        ServerSpec("a", REMOTE),
        ServerSpec("b", REMOTE),
        ServerSpec("a", RemoteTarget("https://h/other")),
        ServerSpec("a", RemoteTarget("https://h/mcp", headers={"X": "SECRET"})),
    ]

    keys = {cache_id(spec) for spec in specs}

    assert len(keys) == len(specs)
    assert not any("SECRET" in str(key) for key in keys)


@pytest.mark.parametrize(
    ("target", "place"),
    [
        (StdioTarget("npx"), "goes into its env"),
        (RemoteTarget("https://h.example.com/mcp", headers={"Authorization": "Bearer x"}), "its headers, or its url"),
        (RemoteTarget("https://h.example.com/mcp", headers_helper="print-token"), "its headersHelper prints"),
    ],
)
def test_who_cannot_be_signed_in_to_says_where_its_credentials_stand(target, place):
    """A person who asks for a login learns what to change instead (S255)."""
    assert place in why_no_login(ServerSpec("srv", target))
