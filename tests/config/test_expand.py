"""Tests of `config.expand`."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_actors.config.expand import MAX_NESTING, Expansion, expand

ENVIRON = {"A": "a", "B": "b", "EMPTY": "", "REF": "${A}", "DOLLAR": "$", "BRACES": "{}"}

CASES = [
    ("plain", "plain", ()),
    ("${A}", "a", ()),
    ("x${A}y${B}z", "xaybz", ()),
    ("${EMPTY}", "", ()),
    ("${MISSING}", "${MISSING}", ("MISSING",)),
    ("${MISSING}${MISSING}${OTHER}", "${MISSING}${MISSING}${OTHER}", ("MISSING", "OTHER")),
    ("${A:-x}", "a", ()),
    ("${MISSING:-x}", "x", ()),
    ("${EMPTY:-x}", "x", ()),
    ("${MISSING:-}", "", ()),
    ("${MISSING:-${A}}", "a", ()),
    ("${MISSING:-${ALSO:-${B}}}!", "b!", ()),
    ("${MISSING:-${ALSO}}", "${ALSO}", ("ALSO",)),
    ("${A:-${ALSO}}", "a", ()),
    ('${MISSING:-{"x": {"y": 1}}}', '{"x": {"y": 1}}', ()),
    # What came out of a variable is never looked at again.
    ("${REF}", "${A}", ()),
    ("${DOLLAR}{A}", "${A}", ()),
    ("${MISSING:-${REF}}", "${A}", ()),
    # Other forms stay as they are and unflagged.
    ("${v%pat}", "${v%pat}", ()),
    ("${1}", "${1}", ()),
    ("${}", "${}", ()),
    ("${A", "${A", ()),
    ("${A:-", "${A:-", ()),
    ("${MISSING:-{}", "${MISSING:-{}", ()),
    ("${MISSING:-x ${A}", "${MISSING:-x a", ()),
    ("${A-x}", "${A-x}", ()),
    ("${env:A}", "${env:A}", ()),
    ("${user_config.KEY}", "${user_config.KEY}", ()),
    ("$A $$ {A} }{", "$A $$ {A} }{", ()),
    ("${ A}", "${ A}", ()),
    ("${Ä}", "${Ä}", ()),
]


@pytest.mark.parametrize(("text", "expected", "unset"), CASES)
def test_expand_follows_the_table(text: str, expected: str, unset: tuple[str, ...]) -> None:
    """Each form of S027 and its neighbours gives what the project decisions say."""
    assert Expansion(expected, unset) == expand(text, ENVIRON)


def test_expand_prefers_our_own_names() -> None:
    """Names that we provide come before the environment and may be dotted (S031)."""
    fixed = {"CLAUDE_PLUGIN_ROOT": "/p", "user_config.KEY": "k", "A": "ours"}

    assert expand("${CLAUDE_PLUGIN_ROOT}/${user_config.KEY}/${A}", ENVIRON, fixed).text == "/p/k/ours"


@pytest.mark.parametrize("depth", [1, MAX_NESTING, MAX_NESTING + 1, 5_000])
def test_expand_survives_deep_nesting(depth: int) -> None:
    """Defaults nest up to a bound; beyond it the text stays as it is and no stack is exhausted."""
    text = "${X:-" * depth + "v" + "}" * depth

    expanded = expand(text, {}).text

    assert (expanded == "v") == (depth <= MAX_NESTING)


@pytest.mark.parametrize("piece", ["${X:-", "{", "${", "}", "${X:-{"])
def test_expand_takes_linear_time_for_hostile_text(piece: str) -> None:
    """A hundred thousand unfinished references end at once, unchanged."""
    text = piece * 100_000

    assert expand(text, {}).text == text


@given(st.text(alphabet="${}:-A B_", max_size=60), st.text(max_size=10))
def test_values_are_never_scanned_again(text: str, value: str) -> None:
    """Replacing each value by an opaque mark first, and by its text afterwards, gives the same outcome."""
    mark = "\ue000"

    direct = expand(text, {"A": value or mark}).text
    via_mark = expand(text, {"A": mark}).text.replace(mark, value or mark)

    assert via_mark == direct


@given(st.text(alphabet="${}:-A B_", max_size=60))
def test_expand_never_fails(text: str) -> None:
    """No text makes the expansion raise, and without references nothing changes."""
    expansion = expand(text, {})

    if "${" not in text:
        assert expansion == Expansion(text)


def test_repr_hides_the_text() -> None:
    """An expansion may hold a secret, so its repr does not show it."""
    assert "canary" not in repr(expand("${A}", {"A": "canary"}))
