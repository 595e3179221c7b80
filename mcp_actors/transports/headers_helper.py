"""Owns the shell command that prints headers: its environment, its directory, its end, and what it may print.

What this is not: the decision whether somebody may bring such a command along (`config.approvals`), nor the requests
that carry what it printed (`carried_headers`).

Rules.

1. It runs fresh at every connect, in a process group of its own, which is killed when it is done, late or talkative.
2. What a repository or a plugin brings along runs without variables that look like credentials (S090).
3. What it prints is a secret: no error, log or repr shows any of it. Its standard error is shown; it is for people.
"""

from __future__ import annotations

import os
import re
import signal
from typing import TYPE_CHECKING, Final

import trio
from attrs import field

from mcp_actors.config.remedies import switched_off_remedy
from mcp_actors.config.specs import RemoteTarget, Scope
from mcp_actors.errors import ConfigError, ConnectFailed, RemoteProtocolError
from mcp_actors.protocol.jsonrpc import decode_object
from mcp_actors.sent_secrets import is_credential, longest_first, of_environment, of_request, starred
from mcp_actors.transports.ladder import Hurry, Rung, climb
from mcp_actors.transports.process import describe_exit
from mcp_actors.transports.spawning import spawn
from mcp_actors.transports.words import LastLines
from mcp_actors.values import define

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mcp_actors.config.specs import ServerSpec
    from mcp_actors.transports.process import Child

__all__ = ["FAILED_CODE", "HELPER_SECONDS", "helper_directory", "helper_environment", "print_headers"]

SHELL: Final = "/bin/sh"
# S090.
HELPER_SECONDS: Final = 10.0
MAX_OUTPUT_BYTES: Final = 64 * 1024
# Once it has ended, what it wrote is there already; somebody it left behind may hold the pipes open.
LAST_MOMENT: Final = 0.2
SHOWN_LINES: Final = 10
# There is nothing that it could put in order.
KILL: Final = (Rung("kill", signal.SIGKILL, 0.5, closes_input=True, can_hurry=False),)

# A text in the JSON object that it prints.
_VALUE: Final = re.compile(r':\s*"((?:[^"\\]|\\.)*+)"')
# Scopes whose helpers others may have written: a repository, a plugin's author.
SCRUBBED: Final = frozenset({Scope.PROJECT, Scope.LOCAL, Scope.PLUGIN})
# Reason code of a server whose helper failed: it was not asked anything yet, so that its url is no suspect.
FAILED_CODE: Final = "headers-helper"
# Scopes whose helpers start in the directory of the user's configuration; the others where we were started.
FROM_CONFIG: Final = frozenset({Scope.USER, Scope.ENTERPRISE})


def helper_environment(spec: ServerSpec, parent: Mapping[str, str]) -> dict[str, str]:
    """Build the environment of a helper: name -> value.

    Args:
        spec: the server; its target is a `RemoteTarget`.
        parent: ours.

    Source:
        S031, S090.
    """
    target = spec.target
    assert isinstance(target, RemoteTarget)
    env = dict(parent)
    if spec.scope in SCRUBBED:
        env = {name: value for name, value in env.items() if not is_credential(name)}
    for name in ("CLAUDE_PLUGIN_ROOT", "CLAUDE_PLUGIN_DATA"):
        env.pop(name, None)
    env["CLAUDE_CODE_MCP_SERVER_NAME"] = spec.name
    env["CLAUDE_CODE_MCP_SERVER_URL"] = target.url
    if target.plugin_root is not None:
        env["CLAUDE_PLUGIN_ROOT"] = target.plugin_root
    if target.plugin_data is not None:
        env["CLAUDE_PLUGIN_DATA"] = target.plugin_data
    return env


def helper_directory(spec: ServerSpec, environ: Mapping[str, str]) -> str | None:
    """The directory that a helper starts in; None: ours.

    Source:
        S090: the plugin's root, the directory of the user's configuration, or where we were started.
    """
    target = spec.target
    if isinstance(target, RemoteTarget) and target.plugin_root is not None:
        return target.plugin_root
    if spec.scope not in FROM_CONFIG:
        return None
    home = environ.get("HOME", "")
    places = (environ.get("CLAUDE_CONFIG_DIR", ""), home and f"{home}/.claude", home)
    return next((place for place in places if place and os.path.isdir(place)), None)  # noqa: PTH112


async def print_headers(spec: ServerSpec, environ: Mapping[str, str]) -> dict[str, str]:
    """Run the helper of a server.

    Args:
        spec: its target is a `RemoteTarget` with a helper.
        environ: ours, name -> value.

    Returns:
        What it printed: header name -> value.

    Raises:
        ConfigError: its folder is not trusted.
        ConnectFailed: it could not be started, failed, took or printed too much, or printed no object of texts.

    Cancellation:
        Kills the helper and all it started, shielded for at most 1.5 s.

    Source:
        S090, S024.
    """
    target = spec.target
    assert isinstance(target, RemoteTarget)
    if not target.is_helper_trusted:
        raise ConfigError(
            server=spec.name,
            file=spec.source,
            key=f"{spec.name}.headersHelper",
            reason="runs a command of a folder that you have not said to trust",
            remedy=switched_off_remedy("pending-approval", spec.name),
        )
    if target.headers_helper is None:
        return {}
    printed, run = await _run(spec, target.headers_helper, environ)
    try:
        headers = decode_object(printed)
    except RemoteProtocolError:
        # The cause holds a piece of what was printed.
        raise run.failed("must print one JSON object") from None
    for name, value in headers.items():
        if not isinstance(value, str):
            raise run.failed(f"must print texts as values: {name!r} has another")
    return {name: value for name, value in headers.items() if isinstance(value, str)}


@define(eq=False)
class _Run:
    """One run: what it wrote so far."""

    server: str
    child: Child
    stderr: LastLines = field(repr=False)
    printed: bytearray = field(factory=bytearray, repr=False)
    # Cancelled when it printed too much.
    scope: trio.CancelScope = field(factory=trio.CancelScope, repr=False)

    def failed(self, reason: str) -> ConnectFailed:
        """What went wrong, with what it said to people."""
        # A shell that traces what it does writes there what it printed as well.
        printed = _VALUE.findall(self.printed.decode("utf-8", "replace"))
        secrets = longest_first((*printed, *(value.rpartition(" ")[2] for value in printed)))
        tail = tuple(starred(line, secrets) for line in self.stderr.tail()[-SHOWN_LINES:])
        return ConnectFailed(server=self.server, reason=f"headersHelper {reason}", stderr_tail=tail, code=FAILED_CODE)

    async def hear(self) -> int | None:
        """Hear it until it has ended. Returns its exit status; None: it printed too much. Cancellation: safe."""
        self.child.hear(self.child.stdout, self._print)
        self.child.hear(self.child.stderr, self.stderr.feed)
        with self.scope:
            status = await self.child.wait()
            with trio.move_on_after(LAST_MOMENT):
                await self.child.hear_out()
            return status
        return None

    def _print(self, chunk: bytes) -> None:
        if len(self.printed) <= MAX_OUTPUT_BYTES:  # it is heard also while it is being ended
            self.printed += chunk
        if len(self.printed) > MAX_OUTPUT_BYTES:
            self.scope.cancel()


@trio.lowlevel.enable_ki_protection
async def _run(spec: ServerSpec, command: str, environ: Mapping[str, str]) -> tuple[bytes, _Run]:
    await trio.lowlevel.checkpoint_if_cancelled()
    directory, environment = helper_directory(spec, environ), helper_environment(spec, environ)
    try:
        child = spawn([SHELL, "-c", command], program=SHELL, environ=environment, cwd=directory)
    except (OSError, ValueError) as error:
        what = error.strerror if isinstance(error, OSError) and error.strerror else "it holds a NUL character"
        reason = f"headersHelper could not be started: {what}"
        raise ConnectFailed(server=spec.name, reason=reason, code=FAILED_CODE) from None
    url = environment["CLAUDE_CODE_MCP_SERVER_URL"]
    run = _Run(spec.name, child, LastLines(longest_first((*of_environment(environment), *of_request((), url)))))
    status: int | None = None
    try:
        child.close_input()
        with trio.move_on_after(HELPER_SECONDS) as limit:
            status = await run.hear()
    finally:
        await climb(child, KILL, Hurry())
        child.close()
    if limit.cancelled_caught:
        raise run.failed(f"took longer than {HELPER_SECONDS:g} s and was killed")
    if status is None:
        raise run.failed(f"printed more than {MAX_OUTPUT_BYTES} bytes and was killed")
    if status != 0:
        raise run.failed(describe_exit(status))
    return bytes(run.printed), run
