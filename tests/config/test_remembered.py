"""Tests of `config.remembered`; what is written there comes back, by the tests of `config.remembering`."""

from __future__ import annotations

import pytest

from mcp_actors.config.remembered import parse_remembered
from mcp_actors.errors import ConfigError


@pytest.mark.parametrize(
    "text", ["[]", "1", '{"approved": true}', '{"approved": {"h": true}}', '{"projects": [], "approved": ["h"]}']
)
def test_another_form_approves_nothing(text: str) -> None:
    """Whatever we did not write so counts as nothing."""
    assert parse_remembered(text, "f").approvals.hashes == frozenset()


def test_a_broken_file_is_told() -> None:
    """It is not taken for an empty one."""
    with pytest.raises(ConfigError):
        parse_remembered("{", "f")
