"""Tests of `auth.refreshing`."""

from __future__ import annotations

import json
import os
import random
import sys
from pathlib import Path

import attrs
import pytest
import trio
import trio.testing
from oauth_peer import AS, MCP, Clock, World, answer

from mcp_actors.auth.credentials import Credentials, decode_credentials, encode_credentials
from mcp_actors.auth.discovery import AuthServer
from mcp_actors.auth.identity import ClientIdentity
from mcp_actors.auth.options import GrantKind
from mcp_actors.auth.refreshing import NEWS, Keeper, finish_soon
from mcp_actors.auth.store import CredentialStore, StoreChoice
from mcp_actors.auth.tokens import Tokens
from mcp_actors.errors import AuthFailed, ConnectFailed
from mcp_actors.files.private import write_private

IDENTITY = ClientIdentity("client", kind="registered", issuer=AS)


class RotatingServer:
    """Gives a new refresh token each time, and ends the login when an old one is used again."""

    def __init__(self, delay=None):
        self.refreshes = 0
        self.current = "r0"
        self.is_revoked = False
        self.delay = delay

    async def fetch(self, request):
        from oauth_peer import form_of

        form = form_of(request)
        if self.delay is not None:
            await self.delay()
        if self.is_revoked or form["refresh_token"] != self.current:
            self.is_revoked = True
            return answer({"error": "invalid_grant"}, status=400)
        self.refreshes += 1
        self.current = f"r{self.refreshes}"
        return answer({"access_token": f"a{self.refreshes}", "refresh_token": self.current, "expires_in": 3600})


def login(clock, *, life=3600, **tokens):
    fields = {"refresh_token": "r0", **tokens}
    made = Tokens("a0", expires_at=None if life is None else clock.now + life, issued_at=clock.now, **fields)
    return Credentials(MCP, MCP, AuthServer(AS, f"{AS}/token"), GrantKind.AUTHORIZATION_CODE, made, IDENTITY)


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def store(tmp_path):
    return CredentialStore(StoreChoice.FILE, tmp_path / "credentials")


def keeper(store, clock, fetch, tmp_path=None):
    return Keeper("slot", store, fetch, clock.sources, None if tmp_path is None else tmp_path / "locks")


async def test_a_fresh_token_is_used_without_asking(store, clock):
    """And without a second look at the store."""
    world = World()
    one = keeper(store, clock, world.fetch)
    await one.adopt(login(clock))

    assert (await one.usable()).tokens.access_token == "a0"
    assert world.log == []


async def test_without_a_login_there_is_none(store, clock):
    """Nobody is asked."""
    world = World()
    one = keeper(store, clock, world.fetch)

    assert await one.usable() is None
    assert await one.usable(refused="") is None
    assert world.log == []


@pytest.mark.parametrize("tasks", [1, 20])
async def test_one_refresh_for_all_tasks(store, clock, tasks, tmp_path):
    """Twenty calls on an expired token: one renewal, everybody gets the new token (fault 58)."""
    server = RotatingServer(trio.lowlevel.checkpoint)
    one = keeper(store, clock, server.fetch, tmp_path)
    await one.adopt(login(clock))
    clock.now += 4000
    got = []

    async def call():
        got.append((await one.usable()).tokens.access_token)

    async with trio.open_nursery() as nursery:
        for _ in range(tasks):
            nursery.start_soon(call)

    assert got == ["a1"] * tasks
    assert server.refreshes == 1


async def test_a_refused_token_is_renewed_once(store, clock):
    """A 401 for a token that looks fresh; whoever was refused with the old one gets the new one (D15, fault 56)."""
    server = RotatingServer()
    one = keeper(store, clock, server.fetch)
    await one.adopt(login(clock, life=None))

    assert (await one.usable(refused="a0")).tokens.access_token == "a1"
    assert (await one.usable(refused="a0")).tokens.access_token == "a1"
    assert server.refreshes == 1


async def test_rotation_reaches_the_store_before_it_is_used(store, clock):
    """A crash after the renewal loses nothing (D15)."""
    server = RotatingServer()
    one = keeper(store, clock, server.fetch)
    await one.adopt(login(clock))
    clock.now += 4000

    await one.usable()

    stored = decode_credentials(await store.load("slot"))
    assert stored.tokens.refresh_token == "r1"


async def test_a_newer_token_of_another_process_is_adopted(store, clock, tmp_path):
    """After the lock the store is read again, and nothing is renewed (fault 58)."""
    server = RotatingServer()
    ours, theirs = (keeper(store, clock, server.fetch, tmp_path) for _ in range(2))
    await ours.adopt(login(clock))
    await theirs.load()
    clock.now += 4000
    await ours.usable()

    assert (await theirs.usable()).tokens.access_token == "a1"
    assert server.refreshes == 1


@pytest.mark.parametrize(
    ("said", "error"),
    [
        (answer({}, status=500), ConnectFailed),
        (answer(status=503, body=b"<html>"), ConnectFailed),
        (answer({}, status=429), ConnectFailed),
        (answer({"error": "temporarily_unavailable"}, status=400), ConnectFailed),
        (answer({"error": "invalid_request"}, status=400), AuthFailed),
        (answer(status=200, body=b"<html>"), AuthFailed),
        (ConnectFailed(reason="no network"), ConnectFailed),
    ],
)
async def test_a_passing_failure_keeps_the_login(store, clock, said, error):
    """Only the issuer's word ends a login; the next try waits, then works (fault 59)."""
    world = World({f"{AS}/token": [said, answer({"access_token": "a1", "expires_in": 60})]})

    async def fetch(request):
        page = world.answer(request)
        if isinstance(page, Exception):
            raise page
        return page

    one = keeper(store, clock, fetch)
    await one.adopt(login(clock))
    clock.now += 4000

    with pytest.raises(error):
        await one.usable()
    with pytest.raises(error):
        await one.usable()
    assert len(world.log) == 1
    assert decode_credentials(await store.load("slot")).tokens.refresh_token == "r0"

    clock.now += 2
    renewed = await one.usable()
    assert (renewed.tokens.access_token, renewed.tokens.refresh_token) == ("a1", "r0")


async def test_an_old_token_still_serves_while_renewal_fails(store, clock):
    """Within its last minute it works; why fail calls that would succeed?"""
    one = keeper(store, clock, World({f"{AS}/token": answer({}, status=500)}).fetch)
    await one.adopt(login(clock))
    clock.now += 3590

    assert (await one.usable()).tokens.access_token == "a0"


@pytest.mark.parametrize("code", ["invalid_grant", "invalid_refresh_token", "token_revoked"])
async def test_a_dead_refresh_token_is_dropped(store, clock, code):
    """The registration stays; a person must sign in (S264, fault 59)."""
    world = World({f"{AS}/token": answer({"error": code}, status=400)})
    one = keeper(store, clock, world.fetch)
    await one.adopt(login(clock))
    clock.now += 4000

    assert await one.usable() is None
    assert await one.usable() is None

    assert len(world.log) == 1
    stored = decode_credentials(await store.load("slot"))
    assert (stored.tokens, stored.identity) == (None, IDENTITY)


async def test_a_forgotten_client_is_dropped_with_its_tokens(store, clock):
    """invalid_client: register anew at the next sign-in (fault 67)."""
    one = keeper(store, clock, World({f"{AS}/token": answer({"error": "invalid_client"}, status=401)}).fetch)
    await one.adopt(login(clock))
    clock.now += 4000

    assert await one.usable() is None
    assert one.held.identity is None


async def test_a_newer_login_is_never_erased_by_an_old_refusal(store, clock):
    """Somebody stored a newer token while ours was refused: adopt it (fault 59)."""
    newer = attrs.evolve(login(clock, life=9000), tokens=Tokens("b", refresh_token="rb"))

    async def fetch(request):
        await store.save("slot", encode_credentials(newer))
        return answer({"error": "invalid_grant"}, status=400)

    one = keeper(store, clock, fetch)
    await one.adopt(login(clock))
    clock.now += 4000

    assert (await one.usable()).tokens.access_token == "b"
    assert decode_credentials(await store.load("slot")).tokens.access_token == "b"


async def test_a_token_without_refresh_token_ends(store, clock):
    """Then a person must sign in."""
    one = keeper(store, clock, World().fetch)
    await one.adopt(login(clock, refresh_token=None))
    assert (await one.usable()).tokens.access_token == "a0"
    clock.now += 4000

    assert await one.usable() is None


async def test_a_cancelled_asker_does_not_break_a_renewal(store, clock):
    """The exchange is finished and stored, so that the rotated token is not lost (rule 2)."""
    asked, go_on = trio.Event(), trio.Event()
    server = RotatingServer()

    async def fetch(request):
        asked.set()
        await go_on.wait()
        return await server.fetch(request)

    one = keeper(store, clock, fetch)
    await one.adopt(login(clock))
    clock.now += 4000

    async with trio.open_nursery() as nursery:
        with trio.CancelScope() as scope:
            nursery.start_soon(_release, asked, scope, go_on)
            await one.usable()

    assert scope.cancelled_caught
    assert decode_credentials(await store.load("slot")).tokens.refresh_token == "r1"
    assert (await one.usable()).tokens.access_token == "a1"


async def _release(asked, scope, go_on):
    await asked.wait()
    scope.cancel()
    await trio.testing.wait_all_tasks_blocked()
    go_on.set()


async def test_a_stuck_renewal_is_left_after_its_grace(autojump_clock):
    """A mute server does not hold a cancelled caller for ever."""
    with trio.move_on_after(1) as scope:
        await finish_soon(trio.sleep_forever, grace=5)

    assert scope.cancelled_caught
    assert trio.current_time() == pytest.approx(6)


async def test_waiters_are_served_when_the_first_asker_is_cancelled(store, clock):
    """Cancel sweep: whoever is left gets the token, and the login is renewed once."""
    for victim in range(4):
        clock.now += 10_000
        server = RotatingServer(trio.lowlevel.checkpoint)
        one = keeper(store, clock, server.fetch)
        await one.adopt(login(clock, life=-1))
        got = []

        async def call(number, one=one, got=got, victim=victim):
            with trio.CancelScope() as scope:
                if number == victim:
                    scope.cancel()
                got.append((number, (await one.usable()).tokens.access_token))

        async with trio.open_nursery() as nursery:
            for number in range(4):
                nursery.start_soon(call, number)

        assert {number for number, _ in got} >= set(range(4)) - {victim}
        assert {token for _, token in got} == {"a1"}
        assert server.refreshes == 1


async def test_where_no_lock_can_be_made_the_login_still_works(store, clock, tmp_path, caplog):
    """A read-only place: renewed without a lock, with a notice."""
    (tmp_path / "locks").write_text("")
    one = keeper(store, clock, RotatingServer().fetch, tmp_path)
    await one.adopt(login(clock))
    clock.now += 4000

    assert (await one.usable()).tokens.access_token == "a1"
    assert "Failed to lock" in caplog.text


async def test_each_caller_gets_an_error_of_its_own(store, clock):
    """One exception raised in many tasks would pile up tracebacks."""
    one = keeper(store, clock, World({f"{AS}/token": answer({}, status=500)}).fetch)
    await one.adopt(login(clock))
    clock.now += 4000
    caught = []
    for _ in range(2):
        with pytest.raises(ConnectFailed) as info:
            await one.usable()
        caught.append(info.value)

    assert caught[0] is not caught[1]
    assert str(caught[0]) == str(caught[1])


ROOT = Path(__file__).resolve().parents[2]
PROGRAM = """
import json, random, sys, trio
sys.path[:0] = {paths!r}
from pathlib import Path
from mcp_actors.auth.driving import real_sources
from mcp_actors.auth.messages import WebAnswer
from mcp_actors.auth.refreshing import Keeper
from mcp_actors.auth.store import CredentialStore, StoreChoice
from urllib.parse import parse_qsl
state = Path(sys.argv[1]); rng = random.Random(int(sys.argv[2]))
async def fetch(request):
    async with await trio.open_tcp_stream("127.0.0.1", int(sys.argv[3])) as stream:
        await stream.send_all(dict(parse_qsl(request.body.decode()))["refresh_token"].encode() + b"\\n")
        data = b""
        while chunk := await stream.receive_some():
            data += chunk
    status, _, body = data.partition(b" ")
    return WebAnswer(int(status), {{}}, body)
async def main():
    store = CredentialStore(StoreChoice.FILE, state / "credentials")
    keeper = Keeper("slot", store, fetch, real_sources(), state / "locks")
    got = []
    async def call():
        await trio.sleep(rng.random() * 0.05)
        held = await keeper.usable()
        got.append(held.tokens.access_token if held else None)
    async with trio.open_nursery() as nursery:
        for _ in range(4):
            nursery.start_soon(call)
    print(json.dumps(got))
trio.run(main)
"""


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(int(os.environ.get("REFRESH_RUNS", "3"))))
async def test_twelve_tasks_in_three_processes_refresh_once(tmp_path, seed):
    """An expired rotating token, found by all at once: one refresh, nobody is logged out (S253, fault 58)."""
    clock = Clock(now=1.0)
    write_private(tmp_path / "credentials" / "slot.json", encode_credentials(login(clock)))
    server = RotatingServer()

    async def serve(stream):
        token = (await stream.receive_some()).decode().strip()
        from urllib.parse import urlencode

        from mcp_actors.auth.messages import Purpose, WebRequest

        body = urlencode({"refresh_token": token}).encode()
        said = await server.fetch(WebRequest(Purpose.TOKEN, f"{AS}/token", "POST", (), body))
        async with stream:
            await trio.sleep(random.Random(seed).random() * 0.02)
            await stream.send_all(b"%d " % said.status + said.body)

    program = PROGRAM.format(paths=[str(ROOT)])
    with trio.fail_after(60):
        async with trio.open_nursery() as nursery:
            listeners = await nursery.start(trio.serve_tcp, serve, 0)
            port = listeners[0].socket.getsockname()[1]
            outputs = []

            async def run(number):
                words = [sys.executable, "-c", program, str(tmp_path), str(seed * 10 + number), str(port)]
                done = await trio.run_process(words, capture_stdout=True)
                outputs.append(json.loads(done.stdout))

            async with trio.open_nursery() as clients:
                for number in range(3):
                    clients.start_soon(run, number)
            nursery.cancel_scope.cancel()

    assert outputs == [["a1"] * 4] * 3
    assert server.refreshes == 1
    assert not server.is_revoked


async def test_the_newest_login_is_told_from_others(store, clock, tmp_path):
    """One that did not do is no news, whoever stored it; each new login is, and rings those who wait (S250)."""
    one, other = (keeper(store, clock, World().fetch, tmp_path) for _ in range(2))
    assert await one.newest() is None

    await other.adopt(login(clock))
    first = await one.newest()
    one.missed = "a0"
    assert first is not None
    assert "a0" not in first
    assert await one.newest() is None
    rung = (tmp_path / "locks" / NEWS).stat().st_mtime_ns

    newer = login(clock)
    await other.adopt(attrs.evolve(newer, tokens=attrs.evolve(newer.tokens, access_token="a1")))
    assert await one.newest() not in (None, first)
    assert (tmp_path / "locks" / NEWS).stat().st_mtime_ns > rung
