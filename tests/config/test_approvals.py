"""Tests of `config.approvals`."""

from __future__ import annotations

import pytest
from attrs import evolve

from mcp_actors.config.approvals import (
    Approval,
    Approvals,
    apply_approvals,
    apply_trust,
    approval_of,
    definition_hash,
    describe_definition,
)
from mcp_actors.config.specs import RemoteTarget, Scope, ServerSpec, StdioTarget

RAW = {"command": "/bin/sh", "args": ["-c", "touch ${X}\u202e"], "env": {"A": "b"}}
PROJECT = ServerSpec(name="p", target=StdioTarget("/bin/sh", ("-c", "touch expanded")), scope=Scope.PROJECT, raw=RAW)
HASH = frozenset({definition_hash(PROJECT)})
NAME = frozenset({"p"})


@pytest.mark.parametrize(
    ("approvals", "expected"),
    [
        (Approvals(), Approval.PENDING),
        (Approvals(hashes=HASH), Approval.APPROVED),
        (Approvals(enabled=NAME), Approval.APPROVED),
        (Approvals(enabled=frozenset({"q"})), Approval.PENDING),
        (Approvals(is_all_enabled=True), Approval.APPROVED),
        (Approvals(disabled=NAME), Approval.REJECTED),
        (Approvals(HASH, NAME, NAME, is_all_enabled=True), Approval.REJECTED),
    ],
)
def test_project_servers_need_a_yes(approvals: Approvals, expected: Approval) -> None:
    """A project server waits until accepted by hash, name or switch; a no wins over every yes (S023, fault 109)."""
    assert approval_of(PROJECT, approvals) is expected


@pytest.mark.parametrize("scope", [scope for scope in Scope if scope is not Scope.PROJECT])
def test_other_scopes_need_none(scope: Scope) -> None:
    """Only a project brings servers that nobody here asked for."""
    assert approval_of(evolve(PROJECT, scope=scope), Approvals(disabled=NAME)) is Approval.APPROVED


@pytest.mark.parametrize(
    "raw",
    [
        {**RAW, "command": "/bin/bash"},
        {**RAW, "args": ["-c", "rm"]},
        {**RAW, "env": {"A": "c"}},
        {**RAW, "cwd": "/"},
        {**RAW, "unknown": 1},
    ],
)
def test_a_changed_definition_asks_again(raw: dict[str, object]) -> None:
    """A yes is bound to every part of the definition as written (fault 104 for servers)."""
    assert approval_of(evolve(PROJECT, raw=raw), Approvals(hashes=HASH)) is Approval.PENDING


def test_order_of_keys_and_expansion_change_no_hash() -> None:
    """The hash is of the unexpanded definition in canonical order."""
    same = evolve(PROJECT, raw=dict(reversed(RAW.items())), target=StdioTarget("/bin/sh", ("-c", "other value")))

    assert definition_hash(same) == definition_hash(PROJECT)
    assert definition_hash(evolve(PROJECT, name="q")) != definition_hash(PROJECT)


def test_apply_switches_off_with_a_reason() -> None:
    """What may not run is disabled and says why; the order stays."""
    other = ServerSpec(name="u", target=StdioTarget("u"), scope=Scope.USER)

    applied = apply_approvals([PROJECT, other], Approvals())

    assert applied == (evolve(PROJECT, is_enabled=False, disabled_reason="pending-approval"), other)


def test_approvals_add_up() -> None:
    """Lists of several settings files are joined (S023, S063)."""
    joined = Approvals(enabled=NAME).joined(Approvals(hashes=HASH, disabled=frozenset({"x"}), is_all_enabled=True))

    assert joined == Approvals(HASH, NAME, frozenset({"x"}), is_all_enabled=True)


def test_description_shows_everything_as_written() -> None:
    """What a person says yes to is shown unexpanded, untruncated and with every odd character visible."""
    long = "x" * 10_000
    spec = evolve(PROJECT, raw={**RAW, "args": ["-c", "touch ${X}\u202e", long]})

    [command, env] = describe_definition(spec)

    assert command == f'command: "/bin/sh" "-c" "touch ${{X}}\\u202e" "{long}"'
    assert env == 'env: {"A": "b"}'

    remote = ServerSpec(name="r", target=RemoteTarget("https://h/secret"), raw={"url": "https://h/${KEY}"})
    assert describe_definition(remote) == ('url: "https://h/${KEY}"',)


HELPED = ServerSpec("h", RemoteTarget("http://h", headers_helper="x"), raw={"url": "http://h", "headersHelper": "x"})


@pytest.mark.parametrize("scope", Scope)
@pytest.mark.parametrize(
    ("approvals", "is_trusted", "expected"),
    [
        (Approvals(), False, False),
        (Approvals(), True, True),
        (Approvals(enabled=frozenset({"h"}), is_all_enabled=True), False, False),
        (Approvals(hashes=frozenset({definition_hash(HELPED)})), False, True),
    ],
)
def test_a_helper_of_a_folder_needs_trust(scope: Scope, approvals: Approvals, is_trusted: bool, expected: bool) -> None:
    """S090, S024: by the folder, or by a yes to the exact definition; a yes to a name is none to a command."""
    [spec] = apply_trust([evolve(HELPED, scope=scope)], approvals, is_trusted=is_trusted)

    assert isinstance(spec.target, RemoteTarget)
    assert spec.target.is_helper_trusted is (expected or scope not in (Scope.PROJECT, Scope.LOCAL))
    assert apply_trust([PROJECT], Approvals(), is_trusted=False) == (PROJECT,)
