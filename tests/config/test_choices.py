"""Tests of `config.choices`; what settings files choose is in `test_settings_texts`."""

from __future__ import annotations

import pytest

from mcp_actors.config.choices import Choices, choices_of_environment
from mcp_actors.config.settings_texts import read_choices


@pytest.mark.parametrize("is_trusted", [True, False])
@pytest.mark.parametrize(
    ("environ", "are_off"),
    [
        ({}, False),
        ({"ENABLE_CLAUDEAI_MCP_SERVERS": " False "}, True),
        ({"ENABLE_CLAUDEAI_MCP_SERVERS": "true"}, False),
        ({"ENABLE_CLAUDEAI_MCP_SERVERS": "0"}, False),
    ],
)
def test_the_environment_alone_chooses(environ: dict[str, str], are_off: bool, is_trusted: bool) -> None:
    """Without settings files everything is open but what a variable closes, as if none of them said anything (S057)."""
    alone = choices_of_environment(environ, is_trusted=is_trusted)

    assert alone == Choices(are_connectors_off=are_off, is_trusted=is_trusted)
    assert alone == read_choices((), environ, is_trusted=is_trusted)
