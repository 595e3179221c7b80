"""`process`: one child, from its start to its reaping."""

from __future__ import annotations

import errno
import os
import resource
import signal

import pytest
import trio

from mcp_actors.transports import spawning
from mcp_actors.transports.process import describe_exit, enlarge_pipe
from mcp_actors.transports.spawning import spawn
from tests.transports.stdio_kit import nobody_left


def start(*argv: str, environ=None, cwd=None):
    return spawn(argv, program=argv[0], environ=environ or {}, cwd=cwd)


@pytest.mark.parametrize("has_pidfd", [True, False])
async def test_child_is_reaped_when_it_ends(has_pidfd, monkeypatch) -> None:
    """Waiting reaps, through a pidfd where there is one and else in a thread (fault 2)."""
    if not has_pidfd:
        monkeypatch.delattr(os, "pidfd_open")
    with nobody_left():
        child = start("/bin/sh", "-c", "read x; exit 3")

        assert child.exit_status is None
        child.close_input()

        assert await child.wait() == 3
        assert await child.wait() == 3
        assert child.is_gone()
        child.close()


@pytest.mark.parametrize("has_pidfd", [True, False])
async def test_wait_can_be_cancelled(has_pidfd, monkeypatch) -> None:
    """A cancelled wait leaves the child as it was; another wait finds its end."""
    if not has_pidfd:
        monkeypatch.delattr(os, "pidfd_open")
    with nobody_left():
        child = start("/bin/cat")
        with trio.move_on_after(0.01) as scope:
            await child.wait()

        assert scope.cancelled_caught
        assert child.exit_status is None
        child.signal(signal.SIGKILL)
        assert await child.wait() == -9
        child.close()


async def test_outputs_are_heard_to_their_ends() -> None:
    """What both outputs say reaches who takes it, whoever holds them open once the child itself has ended."""
    said: dict[str, bytes] = {"out": b"", "err": b""}

    def take(name: str):
        def add(chunk: bytes) -> None:
            said[name] += chunk

        return add

    with trio.fail_after(10), nobody_left():
        child = start("/bin/sh", "-c", "exec 3<&0; (read x <&3; echo late; echo worse >&2) & echo first; exit 0")
        child.hear(child.stdout, take("out"))
        child.hear(child.stderr, take("err"))
        status = await child.wait()
        os.write(child.stdin, b"go\n")
        await child.hear_out()
        while not child.is_gone():
            await trio.lowlevel.checkpoint()
        child.close()

    assert (status, said) == (0, {"out": b"first\nlate\n", "err": b"worse\n"})


async def test_child_leads_a_session_of_its_own() -> None:
    """It is in neither our group nor our session, so a terminal's Ctrl-C is not for it (fault 16)."""
    child = start("/bin/cat")
    try:
        assert (os.getpgid(child.pid), os.getsid(child.pid)) == (child.pid, child.pid)
        assert os.getpgid(child.pid) != os.getpgrp()
    finally:
        child.signal(signal.SIGKILL)
        await child.wait()
        child.close()


async def test_group_outlives_its_leader() -> None:
    """A reaped leader does not make its group empty (S137, S140, fault 1)."""
    with nobody_left():
        child = start("/bin/sh", "-c", "exec 3<&0; /bin/cat <&3 & exit 0")
        await child.wait()

        assert not child.is_group_empty()
        child.signal(signal.SIGKILL)
        while not child.is_gone():
            await trio.sleep(0.001)
        child.close()


async def test_empty_group_is_never_signalled(monkeypatch) -> None:
    """Once seen empty, the group's number is not used again."""
    child = start("/bin/sh", "-c", "exit 0")
    await child.wait()
    assert child.is_group_empty()

    monkeypatch.setattr(os, "killpg", lambda *_: pytest.fail("signalled a stranger"))
    child.signal(signal.SIGTERM)

    assert child.is_gone()
    child.close()


async def test_group_that_may_not_be_signalled_counts_as_gone(monkeypatch) -> None:
    """Members that we have no right to signal are not waited for."""

    def refuse(*_):
        raise PermissionError

    child = start("/bin/sh", "-c", "exit 0")
    await child.wait()
    monkeypatch.setattr(os, "killpg", refuse)

    assert child.is_group_empty()
    child.close()


@pytest.mark.parametrize(
    ("argv", "more", "error"),
    [
        (["/nonexistent"], {}, FileNotFoundError),
        (["/bin/cat"], {"cwd": "/nonexistent"}, FileNotFoundError),
        (["/bin/cat", "a\0b"], {}, ValueError),
        (["/bin/cat"], {"environ": {"A=B": "x"}}, ValueError),
    ],
)
def test_failed_spawn_leaves_nothing(argv, more, error) -> None:
    """A program that cannot be started raises and keeps neither process nor descriptor."""
    with nobody_left(), pytest.raises(error):
        start(*argv, **more)


@pytest.mark.parametrize(
    ("status", "words"),
    [
        (0, "exited with status 0"),
        (3, "exited with status 3"),
        (-9, "killed by SIGKILL"),
        (-200, "killed by signal 200"),
    ],
)
def test_exit_is_described(status, words) -> None:
    """Codes and signals are said in words."""
    assert describe_exit(status) == words


def test_pipe_is_enlarged_where_it_can_be() -> None:
    """A pipe is made bigger; what is no pipe keeps the ordinary size."""
    reader, writer = os.pipe()
    size = enlarge_pipe(reader)
    os.close(reader)
    os.close(writer)

    assert size >= 64 * 1024
    assert enlarge_pipe(reader) == 64 * 1024


@pytest.mark.parametrize("left", range(8))
def test_spawn_without_descriptors_leaves_nothing(left) -> None:
    """Whichever descriptor is the one too many, no child and no descriptor stays behind."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    first_free = os.dup(0)
    os.close(first_free)
    with nobody_left():
        resource.setrlimit(resource.RLIMIT_NOFILE, (first_free + left, hard))
        try:
            with pytest.raises(OSError, match="Too many open files"):
                start("/bin/cat")
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.parametrize("what", ["_end_of", "Child"])
def test_child_whose_end_cannot_be_watched_is_ended(what, monkeypatch) -> None:
    """One that was born and then found no descriptor for its end, or to hear it by, is killed and reaped at once."""

    def refuse(*_: object) -> int:
        raise OSError(errno.EMFILE, "Too many open files")

    monkeypatch.setattr(spawning, what, refuse)
    with nobody_left(), pytest.raises(OSError, match="Too many open files"):
        start("/bin/cat")


async def test_child_shows_none_of_its_arguments() -> None:
    """An argument may be a key, and what a child shows of itself may stand in a log (S352)."""
    child = start("/bin/sh", "-c", "exit 0", "--api-key", "canary-1234")
    await child.wait()
    shown = repr(child)
    child.close()

    assert "canary" not in shown
