"""What is remarked on about an entry that runs all the same."""

from __future__ import annotations

import pytest

from mcp_actors.config.notes import Findings
from mcp_actors.config.specs import Scope, ServerSpec, StdioTarget
from mcp_actors.config.validate import EntryContext, read_entry


def read(raw: object) -> tuple[ServerSpec | None, Findings]:
    findings = Findings("some.json")
    context = EntryContext(findings, Scope.USER, {})
    return read_entry("a", raw, ("mcpServers", "a"), context), findings


URL = "https://h/mcp"
TOLD = "is no key that has an effect; did you mean {}?"


@pytest.mark.parametrize(
    ("key", "meant"),
    [
        ("arg", "args"),
        ("Env", "env"),
        ("header", "headers"),
        ("URL", "url"),
        ("disable", "disabled"),
        ("env_file", "envFile"),
        ("requestTimeout", "request_timeout_ms"),
        # Of other programs, and of nobody: they are kept and not spoken of.
        *(
            (key, None)
            for key in ("alwaysAllow", "autoApprove", "disabledTools", "trust", "description", "x", "", "\n")
        ),
        *((key, None) for key in ("args", "env", "oauth", "transport", "alwaysLoad", "envFile")),
    ],
)
def test_a_slip_of_a_key_is_warned_about(key: str, meant: str | None) -> None:
    """A key that is nearly one of ours has no effect and is told of; foreign keys pass in silence (field 53)."""
    spec, findings = read({"command": "x", key: {"args": [], "transport": "stdio", "alwaysLoad": False}.get(key, {})})

    assert spec is not None or findings.problems
    told = [note for note in findings.notes if note.code == "unknown-key"]
    assert [note.text for note in told] == ([] if meant is None else [TOLD.format(meant)])


def test_scalars_and_null_in_env_are_noted() -> None:
    """Scalars are taken as text with a note, null is left out with a note, lists are an error (fault 27)."""
    spec, findings = read({"command": "x", "env": {"PORT": 8080, "DEBUG": True, "RATE": 0.5, "X": None}})

    assert spec is not None
    assert spec.target == StdioTarget("x", environment={"PORT": "8080", "DEBUG": "true", "RATE": "0.5"})
    assert [note.code for note in findings.notes] == ["taken-as-text"] * 3 + ["not-set"]

    spec, findings = read({"command": "x", "env": {"L": [1]}})

    assert (spec, findings.problems[0].key) == (None, "mcpServers.a.env.L")


def test_whitespace_warns_and_is_kept() -> None:
    """Blanks at the ends of watched fields are named and used unchanged (S036)."""
    spec, findings = read({"command": " x", "args": ["a ", "b"], "env": {" E": "v\t", "F": "f"}})

    assert spec is not None
    assert spec.target == StdioTarget(" x", ("a ", "b"), {" E": "v\t", "F": "f"})
    prefix = "mcpServers.a."
    assert {note.key for note in findings.notes if note.code == "whitespace"} == {
        f"{prefix}command",
        f"{prefix}args[0]",
        f"{prefix}env. E",
    }
