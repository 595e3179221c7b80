"""The command that prints headers: what it sees, where it starts, what it may print, how it ends, who may bring one."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import trio
from attrs import evolve

from mcp_actors.config.specs import RemoteTarget, Scope, ServerSpec
from mcp_actors.errors import ConfigError, ConnectFailed
from mcp_actors.transports import headers_helper
from mcp_actors.transports.headers_helper import helper_directory, helper_environment, print_headers

ENVIRON = {
    "PATH": os.environ["PATH"],
    "HOME": "/nowhere",
    "GITHUB_TOKEN": "s3cret",
    "SSH_AUTH_SOCK": "s3cret",
    "my_api_key": "s3cret",
    "PATTERN": "stays",
    "KEYBOARD": "stays",
}


def helped(command: str, *, scope: Scope = Scope.USER, **target: object) -> ServerSpec:
    return ServerSpec("api", RemoteTarget("http://h/mcp", headers_helper=command, **target), scope=scope)  # type: ignore[arg-type]


async def run(command: str, **changes: object) -> dict[str, str]:
    with trio.fail_after(30):
        return await print_headers(helped(command, **changes), ENVIRON)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("scope", "is_scrubbed"),
    [
        (Scope.PROJECT, True),
        (Scope.LOCAL, True),
        (Scope.PLUGIN, True),
        (Scope.USER, False),
        (Scope.DYNAMIC, False),
        (Scope.ENTERPRISE, False),
    ],
)
def test_what_others_wrote_runs_without_credentials(scope: Scope, is_scrubbed: bool) -> None:
    """S090: whole parts of names count, in any case; PATTERN is no PAT and KEYBOARD no KEY."""
    seen = helper_environment(helped("x", scope=scope, plugin_root="/plug"), {**ENVIRON, "CLAUDE_PLUGIN_ROOT": "ours"})

    hidden = {"GITHUB_TOKEN", "SSH_AUTH_SOCK", "my_api_key"} - seen.keys()
    assert hidden == ({"GITHUB_TOKEN", "SSH_AUTH_SOCK", "my_api_key"} if is_scrubbed else set())
    assert {"PATH", "PATTERN", "KEYBOARD"} <= seen.keys()
    assert seen["CLAUDE_CODE_MCP_SERVER_NAME"] == "api"
    assert seen["CLAUDE_CODE_MCP_SERVER_URL"] == "http://h/mcp"
    assert seen["CLAUDE_PLUGIN_ROOT"] == "/plug"


def test_a_helper_of_no_plugin_is_told_of_no_plugin() -> None:
    """S031, S090: what a plugin is told is for plugins only, whatever we inherited."""
    ours = {"CLAUDE_PLUGIN_ROOT": "ours", "CLAUDE_PLUGIN_DATA": "ours"}

    assert ours.keys().isdisjoint(helper_environment(helped("x"), ours))
    assert helper_environment(helped("x", plugin_root="/p", plugin_data="/d"), ours).items() >= {
        ("CLAUDE_PLUGIN_ROOT", "/p"),
        ("CLAUDE_PLUGIN_DATA", "/d"),
    }


def test_it_starts_where_its_scope_says(tmp_path: Path) -> None:
    """S090: the plugin's root, the user's configuration, or where we were started."""
    config = tmp_path / ".claude"
    home = {"HOME": str(tmp_path)}

    assert helper_directory(helped("x", scope=Scope.PLUGIN, plugin_root="/plug"), home) == "/plug"
    assert helper_directory(helped("x"), home) == str(tmp_path)
    config.mkdir()
    assert helper_directory(helped("x"), home) == str(config)
    assert helper_directory(helped("x"), {**home, "CLAUDE_CONFIG_DIR": "/"}) == "/"
    assert [helper_directory(helped("x", scope=scope), home) for scope in (Scope.PROJECT, Scope.LOCAL)] == [None, None]


async def test_it_prints_headers() -> None:
    """An object of texts on standard output; standard error and its input do not matter."""
    assert await run("""cat; echo hello >&2; echo '{"X-Key": "1", "Authorization": "Bearer t"}'""") == {
        "X-Key": "1",
        "Authorization": "Bearer t",
    }


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        ("echo s3cret; exit 3", "headersHelper exited with status 3"),
        ("kill -9 $$", "headersHelper killed by SIGKILL"),
        ("echo s3cret", "headersHelper must print one JSON object"),
        ("true", "headersHelper must print one JSON object"),
        ("echo '[\"s3cret\"]'", "headersHelper must print one JSON object"),
        ('echo \'{"X": {"s3cret": 1}}\'', "headersHelper must print texts as values: 'X' has another"),
        ('printf \'{"X": "%070000d"}\' 0', "headersHelper printed more than 65536 bytes and was killed"),
        ("yes s3cret", "headersHelper printed more than 65536 bytes and was killed"),
    ],
)
async def test_a_helper_that_fails_shows_why_and_never_what_it_printed(command: str, reason: str) -> None:
    """What it said to people is shown, what it printed is a secret."""
    with pytest.raises(ConnectFailed) as caught:
        await run(f"echo sorry >&2; {command}")

    error: BaseException | None = caught.value
    assert (caught.value.reason, caught.value.code) == (reason, "headers-helper")
    assert (caught.value.server, caught.value.stderr_tail) == ("api", ("sorry",))
    while error is not None:
        assert "s3cret" not in f"{error!r} {error}"
        error = error.__cause__


@pytest.mark.parametrize(
    "command",
    [
        "echo $API_TOKEN >&2; exit 1",
        """set -x; echo '{"Authorization": "Bearer s3cret-token"}'; exit 1""",
        "echo $CLAUDE_CODE_MCP_SERVER_URL >&2; exit 1",
    ],
)
async def test_what_a_helper_says_to_people_is_told_without_credentials(command: str) -> None:
    """Those of its environment, of the URL, and those that it printed (S090, S352)."""
    target = RemoteTarget("https://h.example.com/mcp?key=s3cret-key", headers_helper=command)

    with pytest.raises(ConnectFailed) as caught:
        await print_headers(ServerSpec("api", target), {**ENVIRON, "API_TOKEN": "s3cret-token"})

    assert "***" in str(caught.value)
    assert "s3cret" not in str(caught.value)


async def test_a_helper_that_takes_too_long_is_killed_with_all_it_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S090: after its time the whole group is gone, the child that holds the pipes as well."""
    monkeypatch.setattr(headers_helper, "HELPER_SECONDS", 0.3)
    pids = tmp_path / "pids"

    with pytest.raises(ConnectFailed, match=r"took longer than 0\.3 s and was killed"):
        await run(f"trap '' TERM INT; sleep 60 & echo $$ $! > {pids}; wait")

    for pid in pids.read_text().split():
        assert not _lives(int(pid))


async def test_a_helper_that_leaves_somebody_behind_is_done_when_it_ends(tmp_path: Path) -> None:
    """A child in the background that holds the pipes holds up nobody, and does not stay."""
    pid = tmp_path / "pid"

    with trio.fail_after(5):
        headers = await run(f'sleep 60 & echo $! > {pid}; echo \'{{"A": "1"}}\'')

    assert headers == {"A": "1"}
    assert not _lives(int(pid.read_text()))


async def test_cancelling_kills_it(tmp_path: Path) -> None:
    """Nothing of it lives after its connect was given up."""
    pid = tmp_path / "pid"
    os.mkfifo(pid)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(run, f"echo $$ > {pid}; exec sleep 60")
        number = int(await trio.to_thread.run_sync(pid.read_text))
        nursery.cancel_scope.cancel()

    assert not _lives(number)


async def test_one_of_an_untrusted_folder_does_not_run(tmp_path: Path) -> None:
    """S090, S024: the error names the command to run; nothing was started."""
    mark = tmp_path / "ran"

    with pytest.raises(ConfigError, match=r"have not said to trust.*mcp-actors approve api"):
        await run(f"touch {mark}", scope=Scope.PROJECT, is_helper_trusted=False)

    assert not mark.exists()


def test_a_helper_counts_in_the_hash_of_its_server() -> None:
    """S038: another helper, another root or another trust is another definition, so that a reload notices."""
    one = helped("x")
    assert isinstance(one.target, RemoteTarget)
    others = [
        evolve(one.target, headers_helper="y"),
        evolve(one.target, plugin_root="/p"),
        evolve(one.target, is_helper_trusted=False),
    ]

    assert len({one.fingerprint(), *(evolve(one, target=target).fingerprint() for target in others)}) == 4
    assert "s3cret" not in repr(helped("echo s3cret"))


def _lives(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False
