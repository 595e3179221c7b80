"""Patterns of servers: tried when tame."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_actors.elicitation.patterns import MAX_STEPS, matches, read_pattern


@pytest.mark.parametrize(
    ("pattern", "text", "is_found"),
    [
        ("^[A-Z]{2}-[0-9]+$", "AB-123", True),
        ("^[A-Z]{2}-[0-9]+$", "AB-", False),
        ("b", "abc", True),
        (r"^\d{4}-\d{2}-\d{2}$", "2026-07-28", True),
        (r"^\d+$", "\u0663", False),  # \d is ASCII in ECMAScript
        ("^a$", "a\n", False),  # $ is the very end in ECMAScript
        ("^(?:\\d{2}:){2}\\d{2}$", "12:34:56", True),
        ("^(red|green|blue)$", "green", True),
        ("^a?b$", "b", True),
        (r"^[^\s@]+@[^\s@]+$", "a@b", True),
        (r"\bword\b", "a word", True),
        ("^x{2,3}?$", "xxxx", False),
    ],
)
def test_tame_patterns_are_tried(pattern, text, is_found):
    """Ordinary patterns give a verdict, in ECMAScript's meaning of digits and ends."""
    assert matches(pattern, text) is is_found


@pytest.mark.parametrize(
    "pattern",
    [
        "^(a+)+$",
        "^(a|a)*$",
        "^(a?){30}a{30}$",
        "(a*)*b",
        "(?:(?:(?:){9999}){9999}){9999}",
        "a?" * 40 + "a" * 40,
        "a*a*a*a*a*b",
        "(a|b|ab)" * 30,
        r"(.)\1",
        "(?=a)b",
        "(?<n>a)",
        r"\p{L}",
        "[[a]]",
        "[a&&b]",
        "*",
        "a**",
        "(",
        ")",
        "a" * 501,
    ],
)
def test_wild_and_broken_patterns_are_not(pattern):
    """What cannot be bounded, or is not known here, gives no verdict at once; the server judges."""
    assert matches(pattern, "a" * 60 + "!") is None


def test_a_long_text_is_not_tried():
    """A pattern that is fine for a short text may be too slow for a long one."""
    assert matches("a*b*c", "a" * 50) is False
    assert matches("a*b*c", "a" * 5000) is None


@given(st.text(alphabet="ab()*+?|{}12,^$.[]\\d-", max_size=14), st.text(alphabet="ab12", max_size=8))
def test_a_verdict_is_that_of_the_pattern(pattern, text):
    """Whatever is tried says what trying the pattern says, and a bound is never negative."""
    found = matches(pattern, text)

    if found is not None:
        assert found is (re.search(pattern, text, re.ASCII) is not None)
        assert 0 < read_pattern(pattern).steps(len(text)) <= MAX_STEPS
