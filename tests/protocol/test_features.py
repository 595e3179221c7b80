"""Tests of the table of methods: eras, capabilities, log levels."""

from __future__ import annotations

import pytest

from mcp_actors.errors import LocalProtocolError
from mcp_actors.protocol.features import (
    LOG_LEVELS,
    METHODS,
    ROOTS_CHANGED,
    AskForLevel,
    NoLevels,
    StampLevel,
    is_offered,
    may_become_task,
    may_send,
    missing_capability,
    plan_log_level,
    refuse_method,
)
from mcp_actors.protocol.jsonrpc import decode
from mcp_actors.protocol.revisions import LEGACY, MODERN
from mcp_actors.protocol.types import Era, ServerInfo

from .kit import ERAS, NEW, OLD, ready

TASKS = {"extensions": {"io.modelcontextprotocol/tasks": {}}}
REMOVED = [
    "initialize",
    "notifications/initialized",
    "ping",
    "logging/setLevel",
    "resources/subscribe",
    "resources/unsubscribe",
    "tasks/list",
    "tasks/result",
    "notifications/roots/list_changed",
]
ADDED = ["server/discover", "subscriptions/listen", "tasks/update"]


def info(era: Era, **capabilities: object) -> ServerInfo:
    return ServerInfo(NEW if era is Era.MODERN else OLD, era, capabilities)


@pytest.mark.parametrize("method", METHODS)
def test_each_method_belongs_to_its_eras(method):
    """What an era removed or does not have yet is refused in all its revisions, with a way out (F14)."""
    for revision in (*MODERN, *LEGACY):
        refused = refuse_method(method, revision)
        is_foreign = method in (REMOVED if revision in MODERN else ADDED)
        if is_foreign or (method.startswith("tasks/") and revision < "2025-11-25"):
            assert refused.startswith(f"{method} does not exist in {revision}")
            assert not is_foreign or ": " in refused
        else:
            assert refused is None


@pytest.mark.parametrize("method", [*REMOVED, *ADDED])
def test_a_foreign_method_never_reaches_the_wire(method):
    """A session refuses to make it, as request and as notification, and nothing has changed (F14)."""
    session = ready(Era.LEGACY if method in ADDED else Era.MODERN)

    with pytest.raises(LocalProtocolError, match="does not exist"):
        session.request(method, None, "a")
    with pytest.raises(LocalProtocolError, match="does not exist"):
        session.notify(method)
    assert session.in_flight == 0
    assert session.request("tools/list", None, "a").request_id == 2


def test_methods_of_extensions_are_nobodys_business():
    """What the table does not know is sent."""
    assert refuse_method("vendor/thing", NEW) is None
    assert missing_capability("vendor/thing", info(Era.MODERN)) is None


@pytest.mark.parametrize(
    ("method", "era", "capabilities", "expected"),
    [
        ("tools/call", Era.MODERN, {}, "tools"),
        ("tools/call", Era.MODERN, {"tools": {}}, None),
        ("prompts/get", Era.LEGACY, {"tools": {}}, "prompts"),
        ("resources/subscribe", Era.LEGACY, {"resources": {}}, "resources.subscribe"),
        ("resources/subscribe", Era.LEGACY, {"resources": {"subscribe": False}}, "resources.subscribe"),
        ("resources/subscribe", Era.LEGACY, {"resources": {"subscribe": True}}, None),
        ("resources/subscribe", Era.LEGACY, {"resources": None}, "resources.subscribe"),
        ("completion/complete", Era.LEGACY, {}, "completions"),
        ("logging/setLevel", Era.LEGACY, {"logging": {}}, None),
        ("tasks/get", Era.LEGACY, {"tasks": {}}, None),
        ("tasks/get", Era.LEGACY, {}, "tasks"),
        ("tasks/get", Era.MODERN, {}, "extensions.io.modelcontextprotocol/tasks"),
        ("tasks/update", Era.MODERN, TASKS, None),
        ("ping", Era.LEGACY, {}, None),
        ("server/discover", Era.MODERN, {}, None),
    ],
)
def test_a_method_needs_what_the_server_declared(method, era, capabilities, expected):
    """The capability that is missing is named (fault 69)."""
    assert missing_capability(method, info(era, **capabilities)) == expected


def test_completion_is_older_than_its_capability():
    """A server of 2024-11-05 cannot declare it and may have it."""
    assert missing_capability("completion/complete", ServerInfo("2024-11-05", Era.LEGACY)) is None


@pytest.mark.parametrize(("ours", "expected"), [({}, "roots.listChanged"), ({"roots": {"listChanged": True}}, None)])
def test_roots_changes_are_told_when_we_declared_them(ours, expected):
    """``roots/list_changed`` needs a capability of ours (F12)."""
    assert missing_capability(ROOTS_CHANGED, info(Era.LEGACY), ours) == expected
    assert may_send(ROOTS_CHANGED, info(Era.LEGACY), ours) is (expected is None)
    assert not may_send(ROOTS_CHANGED, info(Era.MODERN), ours)


@pytest.mark.parametrize(
    ("revision", "definition", "expected"),
    [
        ("2025-11-25", b'{"execution":{"taskSupport":"required"}}', True),
        ("2025-11-25", b'{"name":"t"}', False),
        ("2025-06-18", b'{"execution":{"taskSupport":"required"}}', False),
        ("2026-07-28", b'{"execution":{"taskSupport":"required"}}', False),
        ("2099-01-01", b'{"execution":{"taskSupport":"required"}}', False),
    ],
)
def test_only_a_tool_of_core_tasks_is_read_for_them(revision, definition, expected):
    """Modern servers decide themselves; older ones have no tasks (G05)."""
    assert may_become_task(definition, ServerInfo(revision, Era.LEGACY)) is expected


def test_an_offer_is_an_object_or_true():
    """False and null are no offers; an empty object is one."""
    assert is_offered({"a": {}}, "a")
    assert is_offered({"a": {"b": True}}, "a.b")
    assert is_offered(TASKS, "extensions.io.modelcontextprotocol/tasks")
    assert not is_offered({"a": False}, "a")
    assert not is_offered({"a": [1]}, "a.b")


def test_what_may_be_kept_repeated_and_asked():
    """The columns of the table: cacheable (7.5), safe (B19), and those whose result may be a question (B07)."""
    assert {name for name, row in METHODS.items() if row.may_ask} == {"tools/call", "prompts/get", "resources/read"}
    assert {name for name, row in METHODS.items() if row.is_cacheable} == {
        "server/discover",
        "tools/list",
        "prompts/list",
        "resources/list",
        "resources/templates/list",
        "resources/read",
    }
    assert not METHODS["tools/call"].is_safe


@pytest.mark.parametrize("level", LOG_LEVELS)
def test_a_log_level_is_set_in_the_eras_way(level):
    """Legacy servers get a request, modern ones a level in every request (F13)."""
    assert plan_log_level(level, info(Era.LEGACY, logging={})) == AskForLevel("logging/setLevel", {"level": level})
    assert plan_log_level(level, info(Era.MODERN)) == StampLevel(level)


@pytest.mark.parametrize(
    ("level", "given", "word"),
    [
        ("loud", info(Era.MODERN), "no log level"),
        ("info", info(Era.LEGACY), "declare"),
        (None, info(Era.LEGACY, logging={}), "no log messages"),
    ],
)
def test_a_log_level_that_cannot_be_set_says_why(level, given, word):
    """Unknown levels and servers without logging are told apart."""
    plan = plan_log_level(level, given)

    assert isinstance(plan, NoLevels)
    assert word in plan.reason


@pytest.mark.parametrize("era", ERAS)
def test_a_stamped_level_is_in_every_modern_request(era):
    """After `stamp_log_level` requests carry it until it is taken back; legacy requests never do."""
    session = ready(era)

    session.stamp_log_level("error")
    stamped = decode(session.request("tools/list", {}, "a").data)["params"].get("_meta", {})
    session.stamp_log_level(None)
    plain = decode(session.request("tools/list", {}, "a").data)["params"].get("_meta", {})

    assert stamped.get("io.modelcontextprotocol/logLevel") == ("error" if era is Era.MODERN else None)
    assert "io.modelcontextprotocol/logLevel" not in plain
