"""What is remarked on about an entry that runs all the same."""

from __future__ import annotations

import inspect
import re

import pytest

from mcp_actors.auth import options
from mcp_actors.config.notes import Findings
from mcp_actors.config.remarks import BLOCKS
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
    """A key that is nearly one of ours has no effect and is told of; foreign keys pass in silence."""
    spec, findings = read({"command": "x", key: {"args": [], "transport": "stdio", "alwaysLoad": False}.get(key, {})})

    assert spec is not None or findings.problems
    told = [note for note in findings.notes if note.code == "unknown-key"]
    assert [note.text for note in told] == ([] if meant is None else [TOLD.format(meant)])


@pytest.mark.parametrize(
    ("block", "key", "meant"),
    [
        ("restart", "max_tries", "maxTries"),
        ("restart", "backOffMax", "backoffMax"),
        ("restart", "intensitiy", "intensity"),
        ("oauth", "client_id", "clientId"),
        ("oauth", "scope", "scopes"),
        ("oauth", "callback_port", "callbackPort"),
        *((block, "x-mine", None) for block in ("restart", "oauth")),
        *((block, "command", None) for block in ("restart", "oauth")),
        ("restart", "maxTries", None),
        ("oauth", "clientId", None),
        # No blocks of ours: names are free there.
        *((block, "Env", None) for block in ("env", "headers", "other")),
    ],
)
def test_a_slip_of_a_key_in_a_block_is_warned_about(block: str, key: str, meant: str | None) -> None:
    """As one of the entry itself, with its path."""
    _, findings = read({"command": "x", block: {key: 5}})

    told = [(note.key, note.text) for note in findings.notes if note.code == "unknown-key"]
    assert told == ([] if meant is None else [(f"mcpServers.a.{block}.{key}", TOLD.format(meant))])


def test_the_keys_of_oauth_are_those_that_signing_in_reads() -> None:
    """One list follows the other."""
    written = set(re.findall(r'block\.get\("(\w+)"\)', inspect.getsource(options)))

    assert BLOCKS["oauth"] == {*options._TEXTS, *options._TRUTHS, *options._KINDS, *written, "scopes"}


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


@pytest.mark.parametrize(("raw", "meant"), [({"comand": "x"}, "command"), ({"URL": URL, "type": "http"}, "url")])
def test_a_slip_is_told_of_an_entry_that_cannot_run_for_it(raw, meant):
    """Field 53: beside what is missing stands what was probably meant."""
    spec, findings = read(raw)

    assert spec is None
    assert [note.text for note in findings.notes] == [TOLD.format(meant)]
