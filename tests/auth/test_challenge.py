"""Tests of `auth.challenge`."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_actors.auth.challenge import Challenge, Demand, parse_challenges, read_demand

PARSED = [
    ([], []),
    ([""], []),
    (["Bearer"], [("Bearer", {})]),
    (['Bearer realm="x"'], [("Bearer", {"realm": "x"})]),
    (['Bearer realm="a, b=c", scope="s t"'], [("Bearer", {"realm": "a, b=c", "scope": "s t"})]),
    (['Bearer realm="a \\"q\\" \\\\"'], [("Bearer", {"realm": 'a "q" \\'})]),
    (["bearer ERROR=invalid_token"], [("bearer", {"error": "invalid_token"})]),
    (['Basic realm="b", Bearer scope="s"'], [("Basic", {"realm": "b"}), ("Bearer", {"scope": "s"})]),
    (['Basic realm="b"', 'DPoP algs="ES256"'], [("Basic", {"realm": "b"}), ("DPoP", {"algs": "ES256"})]),
    (["Negotiate YIIabc==, Bearer a=b"], [("Negotiate", {}), ("Bearer", {"a": "b"})]),
    (["Negotiate abc, Bearer a=b"], [("Negotiate", {}), ("Bearer", {"a": "b"})]),
    (["Newauth , Bearer"], [("Newauth", {}), ("Bearer", {})]),
    (['Bearer realm = "x" , scope= "y"'], [("Bearer", {"realm": "x", "scope": "y"})]),
    (
        ["Bearer resource_metadata=https://h/a?b=c, scope=x"],
        [("Bearer", {"resource_metadata": "https://h/a?b=c", "scope": "x"})],
    ),
    (['Bearer realm="open'], [("Bearer", {"realm": "open"})]),
    (["Bearer a=1, a=2"], [("Bearer", {"a": "1"})]),
    (["Bearer ,,, a=1"], [("Bearer", {"a": "1"})]),
]


@pytest.mark.parametrize(("values", "expected"), PARSED)
def test_challenges_are_parsed_as_the_grammar_has_them(values, expected):
    """Several challenges, quoted values and token68 are told apart (D01)."""
    assert [(each.scheme, dict(each.params)) for each in parse_challenges(values)] == expected


@given(st.lists(st.text(max_size=200), max_size=5))
def test_nothing_that_a_server_sends_breaks_the_parser(values):
    """Any text yields challenges, never an exception."""
    for challenge in parse_challenges(values):
        assert isinstance(challenge, Challenge)


def test_a_long_header_takes_linear_time_and_is_cut():
    """A hostile header of a megabyte is bounded in challenges."""
    assert len(parse_challenges(["Bearer a=" + 'x"=, ' * 200_000])) <= 32


DEMANDS = [
    (401, [], Demand(401)),
    (
        401,
        ['Bearer resource_metadata="https://h/m", scope="a b"'],
        Demand(401, ("bearer",), "https://h/m", ("a", "b")),
    ),
    (401, ['Basic realm="x", DPoP error="use_dpop_nonce"'], Demand(401, ("basic", "dpop"), error="use_dpop_nonce")),
    (403, ['Bearer error="insufficient_scope", scope=""'], Demand(403, ("bearer",), error="insufficient_scope")),
    (403, ['Basic scope="not-ours"'], Demand(403, ("basic",))),
    (401, ['Bearer realm="x"', 'DPoP scope="s"'], Demand(401, ("bearer", "dpop"), scope=("s",))),
]


@pytest.mark.parametrize(("status", "values", "expected"), DEMANDS)
def test_a_demand_joins_what_bearer_and_dpop_say(status, values, expected):
    """The first Bearer or DPoP challenge to name a thing counts; other schemes say nothing."""
    assert read_demand(status, values) == expected


@pytest.mark.parametrize(
    ("status", "header", "claims"),
    [
        (403, 'Bearer error="insufficient_scope"', {"is_step_up"}),
        (401, 'Bearer error="insufficient_scope"', set()),
        (403, "", set()),
        (401, 'DPoP error="use_dpop_nonce"', {"is_nonce_wanted", "is_dpop_wanted"}),
        (401, "DPoP, Bearer", set()),
    ],
)
def test_demands_are_told_apart(status, header, claims):
    """A step-up, a nonce, a firewall's 403 and a plain 401 are different things (issue of needs-auth)."""
    demand = read_demand(status, [header])
    assert {name for name in ("is_step_up", "is_nonce_wanted", "is_dpop_wanted") if getattr(demand, name)} == claims
