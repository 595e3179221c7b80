"""Tests of the revision table."""

from __future__ import annotations

import pytest

from mcp_actors.protocol import revisions
from mcp_actors.protocol.types import Era


def test_the_tables_are_newest_first():
    """Both eras are listed newest first, and every modern revision is newer than every legacy one."""
    names = [*revisions.MODERN, *revisions.LEGACY]

    assert names == sorted(names, reverse=True) == list(revisions.REVISIONS)
    assert revisions.LATEST_MODERN == "2026-07-28"
    assert revisions.LATEST_LEGACY == "2025-11-25"


@pytest.mark.parametrize(
    ("revision", "era"),
    [
        ("2026-07-28", Era.MODERN),
        ("2031-01-01", Era.MODERN),
        ("2025-11-25", Era.LEGACY),
        ("2024-11-05", Era.LEGACY),
        ("2024-10-07", Era.LEGACY),
        ("", None),
        ("draft", None),
        ("2026-7-28", None),
        ("٢٠٢٦-٠٧-٢٨", None),
    ],
)
def test_era_of(revision, era):
    """Every dated version has an era, known or not; what is no date has none."""
    assert revisions.era_of(revision) is era


@pytest.mark.parametrize(
    ("theirs", "expected"),
    [
        (["2024-11-05", "2025-06-18"], "2025-06-18"),
        (["2026-07-28", "2024-11-05"], "2024-11-05"),
        (["2026-07-28"], None),
        ([], None),
    ],
)
def test_newest_mutual(theirs, expected):
    """The newest of ours that they name is picked, in whatever order they name it."""
    assert revisions.newest_mutual(revisions.LEGACY, theirs) == expected
