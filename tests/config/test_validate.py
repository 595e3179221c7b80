"""Tests of `config.validate`."""

from __future__ import annotations

import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

from mcp_actors.config.notes import Findings
from mcp_actors.config.specs import EraChoice, RemoteTarget, RestartPolicy, RestartType, Scope, ServerSpec, StdioTarget
from mcp_actors.config.validate import RESERVED_NAMES, EntryContext, read_entry

ENVIRON = {"TOKEN": "s3cret-canary", "HOST": "mcp.example.com", "BROKEN": "s3cret-canary\n", "REF": "${TOKEN}"}


def read(raw: object, name: str = "a", *, is_unset_fatal: bool = False) -> tuple[ServerSpec | None, Findings]:
    findings = Findings("some.json")
    context = EntryContext(findings, Scope.USER, ENVIRON, is_unset_fatal=is_unset_fatal)
    return read_entry(name, raw, ("mcpServers", name), context), findings


def target(raw: object) -> object:
    spec, findings = read(raw)
    assert spec is not None, findings.problems
    return spec.target


URL = "https://h/mcp"


@pytest.mark.parametrize(
    ("raw", "category", "key"),
    [
        ({"type": "grpc", "url": URL}, "unknown_type", "mcpServers.a.type"),
        ({"type": "", "url": URL}, "unknown_type", "mcpServers.a.type"),
        ({"type": 3, "url": URL}, "unknown_type", "mcpServers.a.type"),
        ({"type": "sse-ide", "url": URL}, "invalid_config", "mcpServers.a.type"),
        ({"type": "ws_ide", "url": URL}, "invalid_config", "mcpServers.a.type"),
        ({"type": "SDK", "url": URL}, "invalid_config", "mcpServers.a.type"),
        ({"type": "claudeai-proxy", "url": URL}, "invalid_config", "mcpServers.a.type"),
        ({"type": "http"}, "invalid_config", "mcpServers.a"),
        ({"type": "http", "command": "x"}, "invalid_config", "mcpServers.a"),
        ({"type": "stdio", "url": URL}, "invalid_config", "mcpServers.a"),
        ({"command": "x", "url": URL}, "invalid_config", "mcpServers.a"),
        ({}, "invalid_config", "mcpServers.a"),
        ({"command": ""}, "invalid_config", "mcpServers.a.command"),
        ({"command": "  "}, "invalid_config", "mcpServers.a.command"),
        ("text", "invalid_config", "mcpServers.a"),
        (None, "invalid_config", "mcpServers.a"),
        ([], "invalid_config", "mcpServers.a"),
        ({"command": "x\0"}, "invalid_config", "mcpServers.a.command"),
        ({"command": "x", "args": ["a", "\0"]}, "invalid_config", "mcpServers.a.args[1]"),
        ({"command": "x", "args": ["\ud800"]}, "invalid_config", "mcpServers.a.args[0]"),
        ({"command": "x", "env": {"A": "\0"}}, "invalid_config", "mcpServers.a.env.A"),
        ({"command": "x", "env": {"A=B": "c"}}, "invalid_config", "mcpServers.a.env.A=B"),
        ({"command": "x", "env": {"": "c"}}, "invalid_config", "mcpServers.a.env."),
        ({"url": "ftp://h"}, "invalid_config", "mcpServers.a.url"),
        ({"url": "h/mcp"}, "invalid_config", "mcpServers.a.url"),
        ({"url": "http://"}, "invalid_config", "mcpServers.a.url"),
        ({"url": "http://[bad"}, "invalid_config", "mcpServers.a.url"),
        ({"url": "http://h:port/"}, "invalid_config", "mcpServers.a.url"),
        ({"url": "http://h:99999/"}, "invalid_config", "mcpServers.a.url"),
        ({"type": "ws", "url": "https://h"}, "invalid_config", "mcpServers.a.url"),
        ({"url": URL, "headers": {"A": "x\r\nB: y"}}, "invalid_config", "mcpServers.a.headers.A"),
        ({"url": URL, "headers": {"A": "Bearer ${BROKEN}"}}, "invalid_config", "mcpServers.a.headers.A"),
        ({"url": URL, "headers": {"A B": "x"}}, "invalid_config", "mcpServers.a.headers.A B"),
        ({"command": "x", "era": "old"}, "invalid_config", "mcpServers.a.era"),
        ({"command": "x", "restart": "often"}, "invalid_config", "mcpServers.a.restart"),
    ],
)
def test_faulty_entries_are_told_with_key_and_category(raw: object, category: str, key: str) -> None:
    """An entry that cannot run leaves a problem that names server, file, key, category (S007, S034, faults 20, 21)."""
    spec, findings = read(raw)

    assert spec is None
    [problem] = findings.problems
    assert (category, key, "a", "some.json") == (problem.category, problem.key, problem.server, problem.file)


def test_variables_are_filled_in_everywhere_they_may_stand() -> None:
    """Command, args, env, cwd, url and headers expand, values only, once (S028, fault 25)."""
    raw = {"command": "${HOST}", "args": ["-t=${TOKEN}", "${REF}"], "env": {"${HOST}": "${TOKEN}"}, "cwd": "/${HOST}"}
    assert target(raw) == StdioTarget(
        ENVIRON["HOST"], ("-t=s3cret-canary", "${TOKEN}"), {"${HOST}": "s3cret-canary"}, "/mcp.example.com"
    )

    raw = {"type": "http", "url": "https://${HOST:-other}/mcp", "headers": {"Authorization": "Bearer ${TOKEN}"}}
    assert target(raw) == RemoteTarget("https://mcp.example.com/mcp", headers={"Authorization": "Bearer s3cret-canary"})


@pytest.mark.parametrize(
    ("raw", "key"),
    [
        ({"command": "${NO}"}, "command"),
        ({"command": "x", "args": ["", "${NO}"]}, "args[1]"),
        ({"command": "x", "env": {"E": "${NO}"}}, "env.E"),
        ({"command": "x", "cwd": "${NO}"}, "cwd"),
        ({"type": "http", "url": "${NO}"}, "url"),
        ({"type": "http", "url": "http://h:${NO}/"}, "url"),
        ({"type": "http", "url": URL, "headers": {"H": "${TOKEN}${NO}"}}, "headers.H"),
    ],
)
def test_unset_variable_warns_and_the_entry_runs(raw: object, key: str) -> None:
    """By default an unset variable is a warning that names server, field and variable (S029); a host may be strict."""
    spec, findings = read(raw)

    assert spec is not None
    [note] = findings.notes
    assert (note.code, note.key, note.server) == ("unset-variable", f"mcpServers.a.{key}", "a")
    assert "NO" in note.text
    assert repr(spec)

    spec, findings = read(raw, is_unset_fatal=True)

    assert spec is None
    [problem] = findings.problems
    assert (problem.category, problem.key) == ("unset_variable", f"mcpServers.a.{key}")


def test_empty_default_is_an_empty_text() -> None:
    """``${MISSING:-}`` is empty and no warning (fault 26)."""
    spec, findings = read({"command": "x", "env": {"E": "${MISSING:-}"}}, is_unset_fatal=True)

    assert (spec and spec.target, findings.notes) == (StdioTarget("x", environment={"E": ""}), [])


@pytest.mark.parametrize("name", sorted(RESERVED_NAMES))
def test_reserved_names_are_refused(name: str) -> None:
    """A file may not use a reserved name (S033)."""
    spec, findings = read({"command": "x"}, name)

    assert (spec, [problem.category for problem in findings.problems]) == (None, ["reserved_name"])


@pytest.mark.parametrize("name", ["", " ", "a\nb", "a\0", "\ud800", "a\u202eb"])
def test_names_that_cannot_be_shown_are_refused(name: str) -> None:
    """A name that would break every line that shows it is no name."""
    assert read({"command": "x"}, name)[0] is None


@pytest.mark.parametrize("name", ["a b", "plugin:p:s", "ä", "Slack (2)", "a__b", "日本"])
def test_other_names_are_taken(name: str) -> None:
    """Files may use characters that only tool names must lose (S033)."""
    spec, _ = read({"command": "x"}, name)

    assert spec is not None
    assert spec.name == name


@pytest.mark.parametrize("url", ["", "  ", "${EMPTY:-}"])
def test_empty_url_is_not_configured(url: str) -> None:
    """A remote entry with an empty address is no error and is not tried (S035)."""
    spec, findings = read({"type": "http", "url": url})

    assert spec is not None
    assert (spec.is_enabled, spec.disabled_reason, findings.problems) == (False, "not-configured", [])


@pytest.mark.parametrize(
    ("raw", "is_enabled"),
    [
        ({}, True),
        ({"disabled": True}, False),
        ({"disabled": False}, True),
        ({"enabled": False}, False),
        ({"enabled": True, "disabled": True}, False),
    ],
)
def test_entry_may_switch_itself_off(raw: dict[str, object], is_enabled: bool) -> None:
    """disabled and enabled are both understood; off wins."""
    spec, _ = read({"command": "x", **raw})

    assert spec is not None
    assert (spec.is_enabled, spec.disabled_reason) == (is_enabled, "user")


@pytest.mark.parametrize(("timeout", "expected"), [(999, None), (0, None), (-5, None), (1000, 1.0), (2500.5, 2.5005)])
def test_call_timeout_below_a_second_is_ignored(timeout: float, expected: float | None) -> None:
    """An entry's timeout is in milliseconds; below 1000 it falls through with a note (S200)."""
    spec, findings = read({"command": "x", "timeout": timeout})

    assert spec is not None
    assert spec.call_timeout == expected
    assert [note.code for note in findings.notes] == ([] if expected else ["ignored-timeout"])


def test_own_keys_are_read() -> None:
    """era, restart, connectTimeout, request_timeout_ms, alwaysLoad, headersHelper reach the spec (S003, S076, S090)."""
    spec, findings = read(
        {
            "type": "http",
            "url": URL,
            "era": "Modern",
            "connectTimeout": 90_000,
            "request_timeout_ms": 5000,
            "alwaysLoad": True,
            "headersHelper": "print-headers ${TOKEN}",
            "restart": {"type": "Transient", "intensity": 9, "period": 1000, "backoffMax": 5, "jitter": True},
        }
    )

    default = RestartPolicy()
    assert findings.problems == []
    assert spec is not None
    assert (spec.era, spec.connect_timeout, spec.request_timeout) == (EraChoice.MODERN, 90.0, 5.0)
    assert spec.always_load
    assert spec.target == RemoteTarget(URL, headers_helper="print-headers ${TOKEN}")
    assert spec.restart is RestartType.TRANSIENT
    assert spec.restart_policy == evolve(default, intensity=9, period=1.0, backoff_max=0.005, has_jitter=True)


def test_raw_keeps_what_was_written() -> None:
    """Unknown keys and unexpanded texts stay in `raw` (S003, S030)."""
    raw = {"command": "x", "env": {"E": "${TOKEN}"}, "autoApprove": ["t"], "n": {"m": None}}

    spec, _ = read(raw)

    assert spec is not None
    assert spec.raw == raw


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=8,
)
KEYS = ["type", "command", "args", "env", "url", "headers", "cwd", "timeout", "restart", "era", "disabled"]


@given(st.dictionaries(st.sampled_from(KEYS), json_values) | json_values)
def test_every_entry_runs_or_is_explained(raw: object) -> None:
    """Whatever an entry holds: a spec or at least one problem, never both, never an exception (fault 21)."""
    spec, findings = read(raw)

    assert (spec is None) == bool(findings.problems)
    if spec is not None:
        assert len(spec.fingerprint()) == 64
        assert repr(spec)


CANARY = "s3cret-canary"
SECRETIVE = [
    {"command": "x", "args": [f"--token={CANARY}", "${TOKEN} "], "env": {"A": CANARY, "B": " ${TOKEN}"}},
    {"type": "http", "url": f"https://u:{CANARY}@h/{CANARY}?k={CANARY}", "headers": {"A": CANARY, "B": " ${TOKEN}"}},
    {"type": "http", "url": f"https://h:{CANARY}/"},
    {"type": "http", "url": f"{CANARY}://h/"},
    {"type": "http", "url": URL, "headers": {"A": "${BROKEN}"}},
    {"type": f"{CANARY}/{CANARY}-{CANARY}", "url": URL},
    {"command": "x", "era": CANARY, "restart": CANARY},
    {"command": "x", "args": CANARY, "env": CANARY},
    {"command": "x", "headersHelper": [CANARY], "timeout": CANARY},
    {"command": "x", "args": [CANARY + "\0"], "env": {"A": CANARY + "\0"}},
    {"url": URL, "headersHelper": CANARY},
]


@pytest.mark.parametrize("raw", SECRETIVE)
@pytest.mark.parametrize("is_unset_fatal", [False, True])
def test_no_secret_is_told(raw: dict[str, object], is_unset_fatal: bool) -> None:
    """No problem, note or repr holds a value of the file or the environment (S030, S354)."""
    spec, findings = read(raw, is_unset_fatal=is_unset_fatal)

    told = [repr(spec), repr(findings), *map(str, findings.problems), *map(str, findings.notes)]
    told += [repr(problem) for problem in findings.problems]
    assert CANARY not in "\n".join(told)
