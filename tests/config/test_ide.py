"""`ide`: what lock files of editors say."""

from __future__ import annotations

import json

import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

from mcp_actors.config.ide import CREDENTIAL_HEADER, IdeLock, choose_ide, parse_lock, spec_of_ide
from mcp_actors.config.notes import Findings
from mcp_actors.config.policy import Policy, decide
from mcp_actors.config.policy_lists import combine, parse_policy
from mcp_actors.config.specs import TransportName

FULL = {
    "pid": 7,
    "workspaceFolders": ["/work/app/", "/", "relative", 3],
    "ideName": "An Editor",
    "transport": "ws",
    "authToken": "s3cret",
}
LOCK = IdeLock("/h/1234.lock", 1234, ("/work/app", "/"), TransportName.WS_IDE, "s3cret", 7)


def parse(value: object, port: str = "1234") -> IdeLock | None:
    return parse_lock(json.dumps(value).encode(), "/h/1234.lock", port)


@pytest.mark.parametrize(
    ("value", "lock"),
    [
        (FULL, LOCK),
        ({**FULL, "transport": "sse"}, evolve(LOCK, transport=TransportName.SSE_IDE)),
        ({}, IdeLock("/h/1234.lock", 1234, (), TransportName.SSE_IDE)),
        ({**FULL, "authToken": "two\nlines", "pid": True}, evolve(LOCK, token=None, pid=None)),
        ({**FULL, "authToken": 5, "pid": -1, "workspaceFolders": "/x"}, evolve(LOCK, token=None, pid=None, folders=())),
        ([], None),
        ("x", None),
    ],
)
def test_a_lock_file_is_read_as_far_as_it_is_understood(value: object, lock: IdeLock | None) -> None:
    """S086: folders, transport, token and process; what is odd in one of them is as if it were not there."""
    assert parse(value) == lock
    assert "s3cret" not in repr(parse(value))


@pytest.mark.parametrize("port", ["", "0", "65536", "-1", "x", "1.5", "\u0663", "example.com"])
def test_the_name_of_the_file_is_a_port(port: str) -> None:
    """S086: anything else names no editor."""
    assert parse(FULL, port) is None


@given(st.binary(max_size=60) | st.binary(max_size=30).map(lambda data: b'{"workspaceFolders":["/a%s"]}' % data))
def test_no_bytes_raise(data: bytes) -> None:
    """They are another program's files: each is an editor with whole folders, or none."""
    lock = parse_lock(data, "f", "1")

    assert lock is None or (lock.port == 1 and all(folder.startswith("/") for folder in lock.folders))


@pytest.mark.parametrize(
    ("directory", "chosen"),
    [("/work/app/sub", 2), ("/work/app", 2), ("/work/application", 1), ("/work", 1), ("/elsewhere", None)],
)
def test_the_editor_with_the_nearest_folder_is_chosen(directory: str, chosen: int | None) -> None:
    """S086: whole names of folders count; of two with the same folder the first."""
    locks = [IdeLock("a", 1, ("/work", "/opt")), IdeLock("b", 2, ("/work/app",)), IdeLock("c", 3, ("/work/app",))]
    parts = directory.split("/")
    upward = ["/".join(parts[:end]) or "/" for end in range(len(parts), 0, -1)]

    lock = choose_ide(locks, upward)

    assert (None if lock is None else lock.port) == chosen


@pytest.mark.parametrize(
    ("transport", "url"),
    [(TransportName.WS_IDE, "ws://127.0.0.1:1234"), (TransportName.SSE_IDE, "http://127.0.0.1:1234/sse")],
)
def test_its_server_is_on_loopback_and_carries_the_token(transport: TransportName, url: str) -> None:
    """S086: the name is ``ide``; the token is a header, is shown nowhere, and no login takes its place."""
    spec = spec_of_ide(evolve(LOCK, transport=transport))

    assert (spec.name, spec.transport, spec.target.url) == ("ide", transport, url)
    assert spec.target.headers == {CREDENTIAL_HEADER: "s3cret"}
    assert spec.target.has_credentials
    assert "s3cret" not in repr(spec) + json.dumps(dict(spec.raw))


def test_policy_can_deny_an_editor_and_need_not_allow_it() -> None:
    """S048: outside of allow lists, not of deny lists."""
    spec = spec_of_ide(LOCK)
    denied = parse_policy({"deniedMcpServers": [{"serverName": "ide"}]}, Findings("f"), is_managed=True, environ={})

    assert decide(spec, Policy(allow=())).is_allowed
    assert not decide(spec, combine([denied])).is_allowed
