"""What is needed to find a task again."""

from __future__ import annotations

import pytest

from mcp_actors.protocol.task_handle import TaskHandle

from .kit import NEW


@pytest.mark.parametrize("change", [{"server": None}, {"taskId": 1}, {"revision": "1999-01-01"}, {"createdAt": None}])
def test_a_foreign_handle_is_refused(change):
    """What we did not store is not taken up."""
    with pytest.raises(ValueError, match="stored task"):
        TaskHandle.from_json({**TaskHandle("srv", "t1", NEW).to_json(), **change})


@pytest.mark.parametrize("ttl", [None, 60.0])
def test_a_handle_survives_storing(ttl):
    """What is read is what was written (G04)."""
    handle = TaskHandle("srv", "t1", NEW, "2026-01-01", ttl)

    assert TaskHandle.from_json(handle.to_json()) == handle
