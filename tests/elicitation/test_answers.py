"""Values, judged and read from what a person types."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_actors.elicitation.answers import NotRead, check_value, fill_form, read_text
from mcp_actors.elicitation.fields import Choice, Field, FieldType, Form

PRIORITY = Field("p", FieldType.CHOICE, "Priority", choices=(Choice("low", "Low"), Choice("2", "High"), Choice(3, "3")))
TAGS = Field("t", FieldType.CHOICES, "Tags", choices=PRIORITY.choices, min_count=1, max_count=2)


def text(**limits):
    return Field("f", FieldType.STRING, "F", **limits)


def number(kind=FieldType.NUMBER, **limits):
    return Field("f", kind, "F", **limits)


INTEGER = FieldType.INTEGER
GOOD = [
    (text(), ""),
    (text(min_count=2, max_count=2), "äö"),
    (text(pattern="^[a-z]+$"), "abc"),
    (text(pattern="^(a+)+$"), "b" * 50),  # not tried here: the server judges
    (text(format="email"), "a.b+c@example.org"),
    (text(format="uri"), "https://example.org/x?y=1"),
    (text(format="uri"), "urn:isbn:1"),
    (text(format="date"), "2024-02-29"),
    (text(format="date-time"), "2026-07-28T12:00:00Z"),
    (text(format="date-time"), "2026-07-28t12:00:00.123456789+02:00"),
    (text(format="date-time"), "2016-12-31T23:59:60Z"),
    (text(format="unheard-of"), "anything"),
    (number(), 1),
    (number(), -1.5),
    (number(minimum=1, maximum=1), 1.0),
    (number(INTEGER), 3),
    (number(INTEGER), 3.0),
    (number(INTEGER), 10**400),
    (number(FieldType.BOOLEAN), False),
    (PRIORITY, "low"),
    (PRIORITY, 3),
    (TAGS, ["low", "2"]),
]
BAD = [
    (text(), 1),
    (text(), None),
    (text(min_count=2), "a"),
    (text(max_count=2), "abc"),
    (text(max_count=0), "a"),
    (text(), "x" * 100_001),
    (text(pattern="^[a-z]+$"), "abc\n"),
    (text(pattern="b"), "aaa"),
    (text(format="email"), "nobody"),
    (text(format="email"), "a@b@c"),
    (text(format="uri"), "no uri"),
    (text(format="uri"), "http://[bad"),
    (text(format="date"), "2025-02-29"),
    (text(format="date"), "20250101"),
    (text(format="date-time"), "2026-07-29T12:00:00"),
    (text(format="date-time"), "2026-07-28T25:00:00Z"),
    (text(format="date-time"), "2026-07-28 12:00:00Z"),
    (number(), True),
    (number(), "1"),
    (number(), float("nan")),
    (number(), float("inf")),
    (number(minimum=1), 0.5),
    (number(maximum=1), 2),
    (number(INTEGER), 3.5),
    (number(INTEGER), False),
    (number(FieldType.BOOLEAN), 1),
    (number(FieldType.BOOLEAN), "yes"),
    (PRIORITY, "Low"),
    (PRIORITY, True),
    (TAGS, "low"),
    (TAGS, []),
    (TAGS, ["low", "2", 3]),
    (TAGS, ["other"]),
]


@pytest.mark.parametrize(("item", "value"), GOOD)
def test_a_value_that_fits(item, value):
    """A value within its field's type and limits has no problem (S292)."""
    assert check_value(item, value) is None


@pytest.mark.parametrize(("item", "value"), BAD)
def test_a_value_that_does_not_fit(item, value):
    """A value outside has one, in words that do not quote it (rule 3)."""
    problem = check_value(item, value)

    assert problem
    assert not (isinstance(value, str) and len(value) > 3 and value in problem)


def test_one_and_true_are_different_choices():
    """In Python 1 == True; on the wire they are not the same."""
    assert check_value(Field("f", FieldType.CHOICE, "F", choices=(Choice(1, "one"),)), True)


FORM = Form(
    (
        Field("title", FieldType.STRING, "Title", is_required=True),
        Field("priority", FieldType.STRING, "Priority", default="medium"),
        Field("count", INTEGER, "Count"),
    )
)


@pytest.mark.parametrize(
    ("content", "filled", "problems"),
    [
        ({"title": "t"}, {"title": "t", "priority": "medium"}, []),
        ({"title": "t", "priority": "low"}, {"title": "t", "priority": "low"}, []),
        ({"title": "t", "count": 2.0}, {"title": "t", "priority": "medium", "count": 2}, []),
        ({"title": "t", "count": None}, {"title": "t", "priority": "medium"}, []),
        ({}, {"priority": "medium"}, ["title"]),
        ({"title": 1, "count": "x"}, {"title": 1, "priority": "medium", "count": "x"}, ["title", "count"]),
        ({"title": "t", "sneaked": 1}, {"title": "t", "priority": "medium"}, ["sneaked"]),
    ],
)
def test_a_form_is_filled_with_its_defaults(content, filled, problems):
    """Fields left out take their default; required, wrong and unknown ones are problems (F09, rule 2)."""
    judged = fill_form(FORM, content)

    assert (judged.content, list(judged.problems)) == (filled, problems)
    assert all(type(value) is type(filled[name]) for name, value in judged.content.items())


@pytest.mark.parametrize(
    ("item", "typed", "value"),
    [
        (text(), " as typed ", " as typed "),
        (number(FieldType.BOOLEAN), " Yes ", True),
        (number(FieldType.BOOLEAN), "off", False),
        (number(INTEGER), "12", 12),
        (number(INTEGER), "1e2", 100.0),
        (number(), "-0.5", -0.5),
        (PRIORITY, "1", "low"),
        (PRIORITY, "2", "2"),  # a value goes before a number
        (PRIORITY, "high", "2"),
        (PRIORITY, "3", 3),
        (TAGS, "1, High", ["low", "2"]),
        (TAGS, "low", ["low"]),
    ],
)
def test_what_a_person_types_is_read(item, typed, value):
    """Numbers, titles and values of choices are understood, and yes and no in their spellings."""
    assert value == read_text(item, typed)


@pytest.mark.parametrize(
    ("item", "typed"),
    [
        (number(FieldType.BOOLEAN), "maybe"),
        (number(INTEGER), "three"),
        (number(INTEGER), "1.5"),
        (number(), "nan"),
        (PRIORITY, "4"),
        (PRIORITY, "0"),
        (PRIORITY, "\u0663"),
        (TAGS, "1,9"),
        (TAGS, ","),
        (text(min_count=3), "ab"),
        (text(format="date"), "today"),
    ],
)
def test_what_is_no_value_is_explained(item, typed):
    """Text that is no value of its field comes back with a problem."""
    assert isinstance(read_text(item, typed), NotRead)


@given(st.text(max_size=40))
def test_reading_never_raises(typed):
    """Whatever is typed into whatever field is read as a value that the field takes, or explained."""
    for item in (text(), text(format="date-time"), text(format="uri"), number(INTEGER), number(), PRIORITY, TAGS):
        found = read_text(item, typed)
        assert found.problem if isinstance(found, NotRead) else check_value(item, found) is None
