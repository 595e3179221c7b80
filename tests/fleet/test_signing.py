"""Signing in end to end over loopback: our HTTP client, our store, our listener, and servers that misbehave."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import trio
from oauth_site import IN_FILES, Browser, open_site

from mcp_actors.config.settings import Settings
from mcp_actors.config.specs import RemoteTarget, RestartType, ServerSpec
from mcp_actors.errors import AuthFailed, AuthRequired, ConfigError
from mcp_actors.fleet.signing import auth_of, make_desk, read_store_choice
from mcp_actors.runtime import open_runtime
from mcp_actors.testing.synthetic import synthetic_command
from mcp_actors.transports.fetching import exchange_once
from mcp_actors.transports.http import HttpTransport

pytestmark = pytest.mark.slow
ROOT = Path(__file__).resolve().parents[2]


async def get(url):
    return await exchange_once("GET", url, (), b"", address=None, max_bytes=65536, environ={})


def spec_of(site, **changes):
    return ServerSpec("srv", RemoteTarget(site.url), restart_type=RestartType.TEMPORARY, **changes)


@asynccontextmanager
async def fleet(site, desk):
    spec = spec_of(site)
    async with open_runtime(
        [spec], transports=lambda each: HttpTransport(each, Settings(), auth=auth_of(desk, each))
    ) as runtime:
        yield runtime, (await runtime.wait_ready())["srv"]


async def test_a_person_signs_in_once_and_every_run_after_is_signed_in(tmp_path):
    """The whole way: login, store, the next run, renewal, logout, which revokes and forgets (S267)."""
    async with open_site() as site:
        desk = make_desk(IN_FILES, state_dir=tmp_path)
        async with fleet(site, desk) as (_, status):
            assert status.state == "needs-auth"
            assert "mcp-actors login srv" in status.remedy
        signed = await desk.log_in(spec_of(site), Browser())
        assert (signed.state, signed.store) == ("signed-in", "file")

        later = make_desk(IN_FILES, state_dir=tmp_path)
        async with fleet(site, later) as (runtime, status):
            assert status.is_connected
            site.good = set()  # the server forgets the token: one renewal, nobody is asked
            assert status.tools == 2
            await runtime.request("srv", "tools/list")
        assert site.count == 2

        assert await later.log_out(spec_of(site))
        assert site.refresh is None
        assert "POST /revoke" in site.log
        assert (await later.status(spec_of(site))).state == "signed-out"
        assert not await later.log_out(spec_of(site))


async def test_a_call_fails_typed_when_the_login_ends(tmp_path):
    """Never parked for ever (D22)."""
    async with open_site() as site:
        desk = make_desk({"MCP_ACTORS_CREDENTIALS_STORE": "memory"}, state_dir=tmp_path)
        await desk.log_in(spec_of(site), Browser())
        async with fleet(site, desk) as (runtime, _):
            site.good, site.refresh = set(), None
            with trio.fail_after(10), pytest.raises(AuthRequired, match="mcp-actors login srv"):
                await runtime.request("srv", "tools/list")


MISBEHAVIOURS = [
    ({"/token": (200, {"error": "bad_verification_code"})}, "bad_verification_code"),
    ({"/token": (200, {"access_token": "x\r\ny"})}, "cannot be sent"),
    ({"/register": (400, {"error": "invalid_redirect_uri"})}, "invalid_redirect_uri"),
    (
        {"/.well-known/oauth-protected-resource/mcp": (200, {"resource": "https://evil.example.com/mcp"})},
        "another resource",
    ),
    ({"/.well-known/oauth-authorization-server": (200, {"issuer": "https://evil.example.com"})}, "says that it is of"),
    (
        {
            "/.well-known/oauth-protected-resource/mcp": (
                302,
                {},
                "http://169.254.169.254/latest/meta-data",
            )
        },
        "must be an https URL",
    ),
    ({"/.well-known/oauth-protected-resource/mcp": (302, {}, "https://169.254.169.254/latest")}, "no server has"),
]


@pytest.mark.parametrize(("pages", "text"), MISBEHAVIOURS)
async def test_servers_that_misbehave_are_refused(tmp_path, pages, text):
    """Errors in 200, injected headers, foreign metadata, redirects into the cloud: an error, nothing stored."""
    async with open_site() as site:
        for path, (status, document, *location) in pages.items():
            headers = {"location": location[0]} if location else {}
            site.pages[path] = site.answer(document, status, **headers)
        desk = make_desk(IN_FILES, state_dir=tmp_path)

        with trio.fail_after(10), pytest.raises(AuthFailed, match=text):
            await desk.log_in(spec_of(site), Browser())

        assert not list(tmp_path.rglob("*.json"))


async def test_odd_answers_are_understood(tmp_path):
    """Scope as a list, no expires_in, an odd token type, metadata at the OIDC place."""
    async with open_site() as site:
        site.lifetime = None
        site.pages["/.well-known/oauth-authorization-server"] = site.answer({}, 404)
        site.pages["/.well-known/openid-configuration"] = lambda _request: site.answer(
            {**site.metadata(), "scopes_supported": ["a"]}
        )
        desk = make_desk(IN_FILES, state_dir=tmp_path)

        status = await desk.log_in(spec_of(site), Browser())

        assert (status.state, status.expires_at) == ("signed-in", None)


@pytest.mark.parametrize("text", ["", "auto", "KEYRING", "file", "memory"])
def test_the_store_is_chosen_by_the_environment(text):
    """`credentials_store` (S251)."""
    assert read_store_choice({"MCP_ACTORS_CREDENTIALS_STORE": text}) == (text.lower() or "auto")


def test_an_unknown_store_is_an_error():
    """It says which there are."""
    with pytest.raises(ConfigError, match="keyring"):
        read_store_choice({"MCP_ACTORS_CREDENTIALS_STORE": "vault"})


# ── the command, as in a container: no display, no keyring ───────────────────────────────────────────────────────────


def environment(tmp_path):
    keep = {name: os.environ[name] for name in ("PATH", "PYTHONPATH") if name in os.environ}
    return {
        **keep,
        "HOME": str(tmp_path / "home"),
        "MCP_ACTORS_STATE_DIR": str(tmp_path / "state"),
        "PYTHON_KEYRING_BACKEND": "keyring.backends.fail.Keyring",
        "PYTHONPATH": str(ROOT),
    }


def words(site, *verb, **more):
    config = json.dumps({"mcpServers": {"srv": {"type": "http", "url": site.url}, **more}})
    return [sys.executable, "-m", "mcp_actors", *verb, "--strict-config", "--config", config]


async def run(site, tmp_path, *verb, **more):
    done = await trio.run_process(
        words(site, *verb, **more), env=environment(tmp_path), capture_stdout=True, capture_stderr=True, check=False
    )
    return done.returncode, done.stdout.decode(), done.stderr.decode()


@pytest.mark.parametrize("way", ["listener", "paste", "nobody can paste"])
async def test_the_headless_sign_in_works(tmp_path, way):
    """The page's address is printed; the answer arrives at the listener, also where standard input is /dev/null or a
    file, or is pasted back (S248)."""
    (tmp_path / "home").mkdir()
    with trio.fail_after(60):
        async with open_site() as site:
            code, _, _ = await run(site, tmp_path, "auth", "status", "srv")
            assert code == 4

            async with trio.open_nursery() as nursery:
                source = subprocess.DEVNULL if way == "nobody can paste" else subprocess.PIPE
                process = await nursery.start(_start, words(site, "login", "srv"), environment(tmp_path), source)
                output = b""
                while b"/authorize?" not in output or not output.endswith(b"\n"):
                    output += await process.stderr.receive_some()
                [url] = [line.strip() for line in output.decode().splitlines() if "/authorize?" in line]
                _, headers, _ = await get(url)
                if way == "paste":
                    await process.stdin.send_all(b"http://localhost/nonsense\n" + headers["location"].encode() + b"\n")
                else:
                    await get(headers["location"])
                output = b""
                async for chunk in process.stderr:
                    output += chunk
                assert await process.wait() == 0
            assert b"signed in: srv: signed-in" in output

            code, shown, _ = await run(site, tmp_path, "auth", "status", "--json")
            [row] = json.loads(shown)["servers"]
            assert (code, row["state"], row["issuer"], row["store"]) == (0, "signed-in", site.origin, "file")
            assert "site-access" not in shown
            assert "site-refresh" not in shown

            code, _, said = await run(site, tmp_path, "logout", "srv")
            assert (code, "signed out" in said) == (0, True)
            code, shown, _ = await run(site, tmp_path, "auth", "status", "srv")
            assert (code, "signed-out" in shown) == (4, True)


async def _start(command, env, source, task_status):
    pipes = {"stdin": source, "stderr": subprocess.PIPE, "stdout": subprocess.DEVNULL}
    process = await trio.lowlevel.open_process(command, env=env, **pipes)
    task_status.started(process)


@pytest.mark.deadline(110)
async def test_a_person_at_a_terminal_signs_in_and_every_verb_uses_it(tmp_path):
    """`call` says what to run and exits with 4, the others go on, nobody is asked again; `login --no-browser` takes the
    pasted address at a terminal, and then all verbs are signed in."""
    (tmp_path / "home").mkdir()
    async with open_site() as site:
        command, args = synthetic_command(tools=2)
        more = {"other": {"command": command, "args": list(args)}}

        code, _, said = await run(site, tmp_path, "call", "srv.echo", "text=hello", **more)
        assert (code, "mcp-actors login srv" in said) == (4, True)
        asked = len(site.log)
        assert await states(site, tmp_path, **more) == {"srv": "needs-auth", "other": "connected"}
        assert len(site.log) == asked

        shown = await log_in_at_a_terminal(site, tmp_path)

        assert await states(site, tmp_path, **more) == {"srv": "connected", "other": "connected"}
        site.good = set()  # the next call renews it
        code, out, said = await run(site, tmp_path, "call", "srv.echo", "text=hello", **more)
        assert (code, "hello" in out, site.count) == (0, True, 2)
        assert "site-access" not in shown + out + said


@pytest.mark.deadline(110)
async def test_more_scopes_are_had_by_the_command_that_the_refusal_names(tmp_path):
    """`call` names the scopes, `login --scopes` gets them, `auth status` tells them and no token, `logout` ends it."""
    (tmp_path / "home").mkdir()
    async with open_site() as site:
        site.needed = {"tools/list": "read", "tools/call": "write"}
        desk = make_desk(IN_FILES, state_dir=tmp_path / "state")
        await desk.log_in(spec_of(site), Browser(), scopes=("read",))

        code, _, said = await run(site, tmp_path, "call", "srv.echo", "text=hello")
        assert (code, "mcp-actors login srv --scopes 'read write'" in said) == (4, True)
        await log_in_at_a_terminal(site, tmp_path, "--scopes", "read write")
        code, out, _ = await run(site, tmp_path, "call", "srv.echo", "text=hello")
        assert (code, "hello" in out) == (0, True)

        code, shown, said = await run(site, tmp_path, "auth", "status", "--json")
        [row] = json.loads(shown)["servers"]
        assert (code, row["state"], row["scopes"]) == (0, "signed-in", ["read", "write"])
        assert "site-access" not in shown + said
        assert "site-refresh" not in shown + said
        await run(site, tmp_path, "logout", "srv")
        code, _, said = await run(site, tmp_path, "call", "srv.echo", "text=hello")
        assert (code, "mcp-actors login srv" in said) == (4, True)


async def states(site, tmp_path, **more):
    """Server name -> its state, as ``list`` tells."""
    _, shown, _ = await run(site, tmp_path, "list", "--json", **more)
    return {row["name"]: row["state"] for row in json.loads(shown)["servers"]}


async def log_in_at_a_terminal(site, tmp_path, *options):
    """Run the login at a terminal of its own, paste the address that the page led to; returns what it showed."""
    master, slave = os.openpty()
    command = words(site, "login", "srv", "--no-browser", *options)
    process = await trio.lowlevel.open_process(
        command, env=environment(tmp_path), stdin=slave, stdout=slave, stderr=slave, start_new_session=True
    )
    os.close(slave)
    shown, is_pasted = b"", False
    try:
        while True:
            await trio.lowlevel.wait_readable(master)
            try:
                chunk = os.read(master, 4096)
            except OSError:  # the last process with the terminal is gone
                break
            shown += chunk
            if not is_pasted and b"paste that whole address here" in shown:
                [url] = [line.strip() for line in shown.decode().splitlines() if "/authorize?" in line]
                _, headers, _ = await get(url)
                os.write(master, headers["location"].encode() + b"\n")
                is_pasted = True
            if not chunk:
                break
    finally:
        os.close(master)
    assert await process.wait() == 0, shown
    return shown.decode()


async def test_a_company_is_set_up_from_the_command_line(tmp_path):
    """Its secret is not in the file; what is missing is said."""
    (tmp_path / "home").mkdir()
    async with open_site() as site:
        code, _, said = await run(site, tmp_path, "xaa", "setup")
        assert (code, "--issuer" in said) == (2, True)
        code, _, said = await run(site, tmp_path, "xaa", "login")
        assert (code, "xaa setup" in said) == (1, True)
        code, _, _ = await run(
            site, tmp_path, "xaa", "setup", "--issuer", "https://idp.example.com", "--client-id", "c"
        )
        assert code == 0
        assert json.loads((tmp_path / "state" / "xaa.json").read_text())["idpIssuer"] == "https://idp.example.com"
