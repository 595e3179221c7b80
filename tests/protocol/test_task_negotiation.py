"""Whether a call of 2025-11-25 asks to become a task."""

from __future__ import annotations

import pytest

from mcp_actors.protocol.task_negotiation import task_params
from mcp_actors.protocol.types import Era, ServerInfo

from .kit import NEW, OLD

ABLE = {"tasks": {"requests": {"tools": {"call": {}}}}}


@pytest.mark.parametrize(
    ("execution", "revision", "capabilities", "wants", "expected"),
    [
        ({"taskSupport": "required"}, OLD, ABLE, False, {}),
        ({"taskSupport": "optional"}, OLD, ABLE, True, {}),
        ({"taskSupport": "optional"}, OLD, ABLE, False, None),
        ({"taskSupport": "forbidden"}, OLD, ABLE, True, None),
        ({}, OLD, ABLE, True, None),
        (None, OLD, ABLE, True, None),
        ({"taskSupport": "required"}, OLD, {"tasks": {"requests": {}}}, True, None),
        ({"taskSupport": "required"}, OLD, {}, True, None),
        ({"taskSupport": "required"}, "2025-06-18", ABLE, True, None),
        ({"taskSupport": "required"}, NEW, ABLE, True, None),
    ],
)
def test_a_task_is_asked_for_where_both_sides_take_it(execution, revision, capabilities, wants, expected):
    """By capability and tool; required or wished for; in 2025-11-25 alone (G05)."""
    info = ServerInfo(revision, Era.MODERN if revision == NEW else Era.LEGACY, capabilities)

    assert task_params(execution, info, wants_task=wants) == expected
