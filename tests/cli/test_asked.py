"""What the command line offers to servers that ask."""

from __future__ import annotations

import pytest

from mcp_actors.cli.asked import read_elicit
from mcp_actors.elicitation.policy import Mode, Policy, PreparedAnswer
from mcp_actors.elicitation.requests import Action
from mcp_actors.errors import ConfigError


def unread(name):
    raise AssertionError(name)


@pytest.mark.parametrize("mode", [Mode.ASK, Mode.ACCEPT_DEFAULTS, Mode.DECLINE])
def test_a_word_is_a_mode(mode):
    """The words name who answers; no file is read."""
    assert read_elicit(str(mode), unread) == Policy(mode=mode)


def test_anything_else_is_a_file():
    """A file holds prepared answers."""
    policy = read_elicit("answers.json", {"answers.json": '{"title": "t"}'}.__getitem__)

    assert policy == Policy(mode=Mode.ANSWERS, answers=(PreparedAnswer(Action.ACCEPT, {"title": "t"}),))


@pytest.mark.parametrize("text", ["", "{", "3", '[{"sever": "x"}]'])
def test_a_file_without_answers_is_an_error(text):
    """It is named."""
    with pytest.raises(ConfigError) as caught:
        read_elicit("answers.json", lambda name: text)

    assert caught.value.file == "answers.json"
