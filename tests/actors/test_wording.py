"""What is said of a child: its last error, and what a person can do."""

from __future__ import annotations

import json

import pytest
import trio

from mcp_actors.actors.wording import capability_summary, describe_end, remedy_for
from mcp_actors.config.specs import RemoteTarget, ServerSpec, StdioTarget, TransportName
from mcp_actors.errors import (
    AuthRequired,
    ConnectFailed,
    CredentialsRefused,
    RemoteProtocolError,
    RpcError,
    TransportBroken,
)
from mcp_actors.protocol.types import Era, ServerInfo
from mcp_actors.transports.base import Diagnostics

PROGRAM = ServerSpec("srv", StdioTarget("npx"))
REMOTE = ServerSpec("srv", RemoteTarget("https://h.example.com/mcp"))
HELPED = ServerSpec("srv", RemoteTarget("https://h.example.com/mcp", headers_helper="print-token"))
KEYED = ServerSpec("srv", RemoteTarget("https://h.example.com/mcp", headers={"authorization": "Bearer x"}))
SOCKET = ServerSpec("srv", RemoteTarget("wss://h.example.com/mcp", transport=TransportName.WS))
BLANK = ServerSpec("my server", StdioTarget("npx"))
TOLD = "sign in with: mcp-actors login srv --scopes write"


@pytest.mark.parametrize(
    ("reason", "spec", "told", "remedy"),
    [
        ("needs-auth", REMOTE, TOLD, TOLD),
        ("needs-auth", REMOTE, None, "sign in with: mcp-actors login srv"),
        ("needs-auth", HELPED, None, "its headersHelper printed what the server does not accept: correct that"),
        ("refused", KEYED, CredentialsRefused().remedy, CredentialsRefused().remedy),
        ("needs-auth", SOCKET, None, "put the header that it wants into its entry"),
        ("exit", PROGRAM, None, "see what it said last, or start its command by hand to see what it lacks"),
        ("unreachable", REMOTE, None, "see that the server runs, and that its url is right"),
        (
            *("headers-helper", HELPED, None),
            "run its headersHelper by hand: it must print one JSON object of texts and exit with 0",
        ),
        (
            *("pending-approval", PROGRAM, None),
            "look at it and allow it: mcp-actors approve srv, or allow all with --approve-project",
        ),
        ("rejected", PROGRAM, None, "a settings file rejects it: take its name out of disabledMcpjsonServers"),
        ("user", PROGRAM, None, "switch it on: mcp-actors enable srv"),
        ("not-configured", REMOTE, None, "give it a url"),
        ("user", BLANK, None, "switch it on: mcp-actors enable 'my server'"),
        ("gave-up", PROGRAM, TOLD, "see its error, then restart it"),
        ("ready", REMOTE, TOLD, None),
    ],
)
def test_a_remedy_fits_the_server(reason: str, spec: ServerSpec, told: str | None, remedy: str | None) -> None:
    """What the error knows comes first, a login is proposed only where there is one (S041, S085, S091, S245)."""
    assert remedy_for(reason, spec, told) == remedy


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (AuthRequired(reason="no token", remedy=TOLD), "no token"),
        (ConnectFailed(reason="refused"), "refused"),
        (RemoteProtocolError(reason="no JSON"), "no JSON"),
        (ValueError("odd"), "ValueError: odd"),
        (RpcError(code=1, message="m" * 10_000_000), "error 1: " + "m" * (16_384 - 9) + "…"),
    ],
    ids=lambda one: f"{one!r:.20}",
)
def test_an_end_is_told_once(error: BaseException, text: str) -> None:
    """The remedy is no part of the error: a status has it beside (S417)."""
    assert describe_end(error, Diagnostics(), 30) == text


@pytest.mark.parametrize(
    ("capabilities", "told"),
    [
        ({}, (False, False, False, False)),
        ({"tools": {}, "prompts": {"listChanged": True}}, (True, True, False, False)),
        ({"resources": {"subscribe": True}}, (False, False, True, True)),
        ({"resources": {"subscribe": "yes"}}, (False, False, True, False)),
    ],
)
def test_the_capabilities_are_told_in_one_line(capabilities, told) -> None:
    """Booleans and the server's version, as JSON without blanks, subscriptions too (S329, S351)."""
    info = ServerInfo("2025-11-25", Era.LEGACY, capabilities, {"name": "s", "version": "1.2"})

    text = capability_summary(info)

    assert " " not in text
    names = ("hasTools", "hasPrompts", "hasResources", "hasResourceSubscribe")
    assert json.loads(text) == {**dict(zip(names, told, strict=True)), "serverVersion": "1.2"}


@pytest.mark.parametrize("error", [trio.TooSlowError(), TransportBroken(reason="exited", stderr_tail=("why",))])
def test_what_a_program_wrote_is_told_with_its_end(error: Exception) -> None:
    """Its standard error once, and what it printed on the wire: usage lines and banners say why."""
    text = describe_end(error, Diagnostics(stderr_tail=("why",), noise_count=1, noise_tail=("usage: x",)), 30)

    assert text.splitlines()[1:] == ["  | why", "  stdout: usage: x"]


def test_what_was_let_pass_is_told_with_the_end() -> None:
    """What a transport found odd may be why; of a flood of stray lines the number is told too (fault 9)."""
    seen = Diagnostics(notes=("fell back to HTTP+SSE",), noise_count=66, noise_tail=("a", "b"))

    text = describe_end(TransportBroken(reason="the stream ended"), seen, 30)

    told = ["  note: fell back to HTTP+SSE", "  stdout: (64 lines before these)", "  stdout: a", "  stdout: b"]
    assert text.splitlines()[1:] == told


def test_an_unanswered_handshake_tells_what_came_instead() -> None:
    """Fault 72: a server that answers everything with id 0 is told so, not only that it was silent."""
    text = describe_end(trio.TooSlowError(), Diagnostics(), 30, ("unknown-id: nobody waits for the id 0",))

    assert text == "no answer to the handshake within 30 s\n  ! unknown-id: nobody waits for the id 0"
