"""First come, first served, one dialog at a time."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from mcp_actors.elicitation.queue import MAX_PAGES, Pages, Queue


def test_the_oldest_question_comes_first():
    """The order is that of arrival, over all servers, not that of lining up (S287)."""
    queue = Queue(20, 100)
    for number in (1, 2, 3):
        queue.arrive(number, f"s{number}")
    for number in (3, 1, 2):
        queue.line_up(number)

    turns = []
    while (number := queue.next_turn()) is not None:
        turns.append(number)
        queue.leave(number)

    assert turns == [1, 2, 3]


def test_one_dialog_at_a_time():
    """While a dialog is open nobody else gets the turn; a question that hooks look at holds up nobody."""
    queue = Queue(20, 100)
    for number in (1, 2, 3):
        queue.arrive(number, "a")
    queue.line_up(2)
    queue.line_up(3)

    assert queue.next_turn() == 2
    assert queue.next_turn() is None
    queue.close_dialog(2)
    assert queue.next_turn() == 3
    assert len(queue) == 3


def test_the_caps_hold():
    """One server has at most so many questions open, all together so many (S300)."""
    queue = Queue(2, 3)

    assert [queue.arrive(number, server) for number, server in enumerate("aaabc")] == [True, True, False, True, False]
    queue.leave(0)
    assert queue.arrive(9, "a")


@given(st.lists(st.tuples(st.sampled_from(["arrive", "line", "turn", "close", "leave"]), st.integers(0, 6))))
def test_whatever_happens_at_most_one_has_the_turn(moves):
    """In any order of events the turn belongs to an open question, once, and everybody who waits gets it."""
    queue = Queue(3, 5)
    inside: set[int] = set()
    waiting: set[int] = set()
    for move, number in moves:
        if move == "arrive" and number not in inside and queue.arrive(number, str(number % 2)):
            inside.add(number)
        elif move == "line" and number in inside and number != queue.current:
            queue.line_up(number)
            waiting.add(number)
        elif move == "turn":
            before = queue.current
            got = queue.next_turn()
            assert (got is None) is (before is not None or not waiting)
            waiting.discard(got)
        elif move == "close":
            queue.close_dialog(number)
            waiting.discard(number)
        elif move == "leave":
            queue.leave(number)
            inside.discard(number)
            waiting.discard(number)
        assert queue.current is None or queue.current in inside
    for number in sorted(inside):
        queue.leave(number)
    assert len(queue) == 0
    assert queue.next_turn() is None


def test_a_notice_counts_once_for_a_page_that_is_visited():
    """Of an unknown page, of another server's or for the second time it is no matter; a new visit needs a new one."""
    pages = Pages()
    pages.begin("s", "1")

    assert not pages.is_done("s", "1")
    assert [pages.complete(*page) for page in [("s", "2"), ("t", "1"), ("s", "1"), ("s", "1")]] == [
        False,
        False,
        True,
        False,
    ]
    assert pages.is_done("s", "1")
    assert not pages.is_done("s", None)
    pages.begin("s", "1")
    assert not pages.is_done("s", "1")


def test_old_pages_are_forgotten():
    """What is remembered is bounded; the page that was visited longest ago goes."""
    pages = Pages()
    for number in range(MAX_PAGES + 1):
        pages.begin("s", str(number))

    assert not pages.complete("s", "0")
    assert pages.complete("s", "1")
