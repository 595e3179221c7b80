"""Tests of `config.entries`."""

from __future__ import annotations

import pytest
from attrs import fields

from mcp_actors.config.entries import ENTRY_FIELDS, RESTART_FIELDS, Entry, Restart, structure_entry

FAULTY = [
    ({"command": 5}, [("command",)]),
    ({"command": True}, [("command",)]),
    ({"args": "a b"}, [("args",)]),
    ({"args": {"0": "a"}}, [("args",)]),
    ({"args": ["a", None, []]}, [("args", 1), ("args", 2)]),
    ({"env": ["A=1"]}, [("env",)]),
    ({"env": {"A": [1], "B": {}, "C": "c"}}, [("env", "A"), ("env", "B")]),
    ({"env": {"A": 10**5000}}, [("env", "A")]),
    ({"headers": {"A": []}}, [("headers", "A")]),
    ({"cwd": 1}, [("cwd",)]),
    ({"url": []}, [("url",)]),
    ({"headersHelper": 1}, [("headersHelper",)]),
    ({"timeout": "5"}, [("timeout",)]),
    ({"timeout": True}, [("timeout",)]),
    ({"timeout": 1e300}, [("timeout",)]),
    ({"timeout": 10**400}, [("timeout",)]),
    ({"connectTimeout": 0}, [("connectTimeout",)]),
    ({"request_timeout_ms": -1}, [("request_timeout_ms",)]),
    ({"disabled": "yes"}, [("disabled",)]),
    ({"enabled": 1}, [("enabled",)]),
    ({"alwaysLoad": "no"}, [("alwaysLoad",)]),
    ({"era": 1}, [("era",)]),
    ({"restart": 1}, [("restart",)]),
    ({"restart": {"maxTries": -1, "jitter": 1}}, [("restart", "maxTries"), ("restart", "jitter")]),
    ({"restart": {"intensity": 1.5, "period": 0}}, [("restart", "intensity"), ("restart", "period")]),
    ({"command": 5, "args": 5, "env": {"A": []}}, [("command",), ("args",), ("env", "A")]),
]


@pytest.mark.parametrize(("raw", "paths"), FAULTY)
def test_structure_tells_every_fault_with_its_path(raw: dict[str, object], paths: list[tuple[object, ...]]) -> None:
    """Each field of the wrong kind is a fault of its own, under the key that stands in the file (S034, S002)."""
    entry, faults = structure_entry(raw)

    assert entry is None
    assert paths == [fault.path for fault in faults]
    assert all(fault.reason for fault in faults)


def test_structure_takes_scalars_as_text() -> None:
    """Numbers and truth values become the text that the file has; null means not set (fault 27)."""
    entry, faults = structure_entry(
        {"env": {"PORT": 8080, "DEBUG": True, "RATE": 0.5, "X": None}, "headers": {"N": 1}, "args": ["-p", 80, False]}
    )

    assert (entry, faults) == (
        Entry(
            env={"PORT": "8080", "DEBUG": "true", "RATE": "0.5", "X": None},
            headers={"N": "1"},
            args=["-p", "80", "false"],
        ),
        [],
    )


def test_structure_takes_null_for_absent() -> None:
    """A key whose value is null is as good as absent."""
    assert structure_entry(dict.fromkeys(["type", "args", "env", "url", "restart", "timeout", "disabled"])) == (
        Entry(),
        [],
    )


def test_structure_reads_both_forms_of_restart() -> None:
    """`restart` is a word or an object."""
    assert structure_entry({"restart": "permanent"}) == (Entry(restart=Restart(type="permanent")), [])
    assert structure_entry({"restart": {"maxTries": 3, "backoffFirst": 100}}) == (
        Entry(restart=Restart(max_tries=3, backoff_first=100.0)),
        [],
    )


def test_structure_ignores_unknown_keys() -> None:
    """Keys of other programs do no harm (S003)."""
    assert structure_entry({"command": "x", "autoApprove": ["a"], "trust": {}}) == (Entry(command="x"), [])


@pytest.mark.parametrize(("shape", "table"), [(Entry, ENTRY_FIELDS), (Restart, RESTART_FIELDS)])
def test_every_field_has_one_key(shape: type, table: dict[str, tuple[str, object]]) -> None:
    """The tables of keys name each attribute once, in order, and none that is not there."""
    assert [name for name, _ in table.values()] == [attribute.name for attribute in fields(shape)]


def test_faults_hold_no_value() -> None:
    """A fault says what was expected, never what was found (S030)."""
    _, faults = structure_entry(
        {"command": ["canary"], "args": "canary", "env": {"A": ["canary"]}, "timeout": "canary", "restart": ["canary"]}
    )

    assert len(faults) == 5
    assert "canary" not in repr(faults)
