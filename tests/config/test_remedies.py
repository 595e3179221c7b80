"""What a person is told to do, in commands that can be pasted."""

from __future__ import annotations

import shlex

import pytest

from mcp_actors.config.remedies import SWITCHED_OFF, sign_in_remedy, switched_off_remedy


@pytest.mark.parametrize("name", ["srv", "my server", "x; reboot", "it's", "{name}"])
def test_a_name_stands_in_a_command_as_a_shell_takes_it(name: str) -> None:
    """Names of stdio servers may hold anything: what is pasted runs our command, and names the server (S041)."""
    told = [sign_in_remedy(name), *(switched_off_remedy(reason, name) or "" for reason in SWITCHED_OFF)]

    commands = [text.partition(": mcp-actors ")[2] for text in told if ": mcp-actors " in text]
    assert [shlex.split(command.partition(", or")[0])[1:] for command in commands] == [[name]] * 3


def test_other_reasons_have_no_such_remedy() -> None:
    """A server that failed was switched off by nobody."""
    assert switched_off_remedy("exit", "srv") is None
