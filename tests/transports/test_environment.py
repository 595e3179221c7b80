"""`environment`: what a child inherits."""

from __future__ import annotations

import pytest

from mcp_actors.transports.environment import BASES, child_environment

POSIX = {
    "HOME": "/home/u",
    "LOGNAME": "u",
    "PATH": "/bin",
    "SHELL": "/bin/sh",
    "TERM": "xterm",
    "USER": "u",
    "LANG": "de_DE.UTF-8",
    "LC_ALL": "C",
    "LC_PAPER": "C",
    "TZ": "UTC",
    "TMPDIR": "/tmp",
}
WINDOWS = {"SystemRoot": r"C:\Windows", "ComSpec": "cmd.exe", "PATHEXT": ".EXE", "Path": r"C:\bin", "AppData": "a"}
SECRETS = {
    "OPENAI_API_KEY": "s",
    "AWS_SECRET_ACCESS_KEY": "s",
    "LD_PRELOAD": "x.so",
    "LCD": "no locale",
    "path": "another variable on POSIX",
    "OTEL_EXPORTER": "x",
}


def test_posix_base_is_inherited_and_nothing_else() -> None:
    """A child sees the short base and no secret of its host (fault 101, E08)."""
    assert child_environment({**POSIX, **SECRETS}, {}) == POSIX


def test_windows_base_is_found_in_any_case() -> None:
    """On Windows names are compared without case and keep their spelling (fault 101; table only, untested there)."""
    parent = {**WINDOWS, "OPENAI_API_KEY": "s", "LD_PRELOAD": "x"}

    assert child_environment(parent, {}, platform="nt") == WINDOWS


def test_entry_wins() -> None:
    """The entry's variables are added whatever their name, and win over the base (S067)."""
    env = child_environment(POSIX, {"PATH": "/mine", "OPENAI_API_KEY": "meant", "X": "1"})

    assert env == {**POSIX, "PATH": "/mine", "OPENAI_API_KEY": "meant", "X": "1"}


def test_a_child_is_told_where_the_user_works() -> None:
    """``CLAUDE_PROJECT_DIR`` is ours to say, unless the entry does; what stood there before is not passed on (S067)."""
    outer = {**POSIX, "CLAUDE_PROJECT_DIR": "/elsewhere"}

    assert child_environment(outer, {}, project="/work") == {**POSIX, "CLAUDE_PROJECT_DIR": "/work"}
    assert child_environment(outer, {"CLAUDE_PROJECT_DIR": "/mine"}, project="/work")["CLAUDE_PROJECT_DIR"] == "/mine"
    assert child_environment(outer, {}) == POSIX


def test_entry_replaces_other_spelling_on_windows() -> None:
    """A variable is not there twice where the platform folds case."""
    env = child_environment({"Path": "theirs"}, {"PATH": "mine"}, platform="nt")

    assert env == {"PATH": "mine"}


@pytest.mark.parametrize("value", ["() { :; }; echo", "()"])
def test_exported_functions_are_dropped(value) -> None:
    """A value that begins like an exported shell function is not inherited."""
    assert child_environment({"TERM": value, "HOME": "/h"}, {}) == {"HOME": "/h"}


def test_both_environments_are_left_alone() -> None:
    """The answer is a new mapping."""
    parent, entry = dict(POSIX), {"X": "1"}

    child_environment(parent, entry)["Y"] = "2"

    assert (parent, entry) == (POSIX, {"X": "1"})


def test_every_platform_has_the_shared_names() -> None:
    """Locale and temporary directory reach a child everywhere."""
    assert all({"LANG", "TMPDIR", "TZ", "TEMP", "TMP"} <= base.names for base in BASES.values())
