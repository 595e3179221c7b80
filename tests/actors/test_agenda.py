"""Who is due when: the earliest first, each once, and cheaply however many there are."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_actors.actors.agenda import SLACK, Agenda
from tests.actors.counted import Counted

STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("set"), st.integers(0, 5), st.one_of(st.integers(0, 9).map(float), st.just(math.inf))),
        st.tuples(st.just("drop"), st.integers(0, 5), st.just(0.0)),
        st.tuples(st.just("take"), st.just(0), st.integers(0, 9).map(float)),
    ),
    max_size=60,
)


@given(STEPS)
def test_it_says_what_a_plain_table_says(steps: list[tuple[str, int, float]]) -> None:
    """Whatever is noted, noted again and forgotten: who is due is due once, the earliest first."""
    agenda, plain = Agenda[int](), dict[int, float]()

    for step, key, moment in steps:
        if step == "set":
            agenda.set(key, moment)
            plain[key] = moment
        elif step == "drop":
            agenda.drop(key)
            plain.pop(key, None)
        else:
            due = agenda.take(moment)
            assert sorted(due) == sorted(one for one in plain if plain[one] <= moment)
            moments = [plain.pop(one) for one in due]
            assert moments == sorted(moments)
        assert agenda.first == min(plain.values(), default=math.inf)
        assert [key for key in range(6) if key in agenda] == sorted(plain)


@pytest.mark.parametrize("order", ["rising", "falling", "mixed"])
def test_n_keys_cost_n_log_n_comparisons(order: str) -> None:
    """S204: none of five thousand looks through all the others, in whatever order they were noted."""
    count, agenda = 5000, Agenda[int]()
    moments = {
        "rising": range(count),
        "falling": range(count, 0, -1),
        "mixed": [i * 7919 % count for i in range(count)],
    }
    Counted.comparisons = 0

    for key, moment in enumerate(moments[order]):
        agenda.set(key, Counted(moment))
    taken = sum(len(agenda.take(now)) for now in range(count + 1))

    assert taken == count
    assert Counted.comparisons < 8 * count * math.log2(count)


def test_a_key_that_changes_its_mind_for_ever_fills_no_memory() -> None:
    """Invariant 5: what counts no more is thrown away."""
    agenda = Agenda[str]()

    for moment in range(10_000):
        agenda.set("a", float(moment))
        agenda.drop("a" if moment % 3 else "b")

    assert len(agenda._heap) <= 2 + SLACK
