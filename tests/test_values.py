"""Classes that `values` makes behave as those that attrs makes: written, compared, hashed, copied, inherited."""

from __future__ import annotations

import copy
import pickle
import re
import threading
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

import attrs
import pytest
from attrs import field

from mcp_actors import values

T = TypeVar("T")
Shape = Callable[[object], list[object]]
SHAPES: list[Shape] = []


def shape(function: Shape) -> Shape:
    """Add a row: it makes a class with the `define` and `frozen` of one module, and returns objects to compare."""
    SHAPES.append(function)
    return function


@shape
def plain(by):
    @by.frozen
    class Plain:
        number: int
        text: str = "x"

    return [Plain(1), Plain(1), Plain(2), Plain(1, "y"), Plain(float("nan"))]


@shape
def living(by):
    @by.define
    class Living:
        number: int

    return [Living(1), Living(1), Living(2)]


@shape
def by_identity(by):
    @by.define(eq=False)
    class Actor:
        number: int

    return [Actor(1), Actor(1)]


@shape
def frozen_by_identity(by):
    @by.frozen(eq=False, slots=False)
    class Tool:
        number: int

    return [Tool(1), Tool(1)]


@shape
def hidden_fields(by):
    @by.frozen
    class Secret:
        token: str = field(repr=False)
        body: str = field(repr=lambda body: f"<{len(body)}>")

    return [Secret("a", "bc"), Secret("a", "bc"), Secret("b", "bc")]


@shape
def uncompared_fields(by):
    @by.frozen
    class Loose:
        name: str = field(eq=str.lower)
        note: str = field(default="", eq=False)
        mark: str = field(default="", hash=False)

    return [Loose("A"), Loose("a"), Loose("a", "note"), Loose("a", mark="m"), Loose("b")]


@shape
def without_repr(by):
    @by.define(eq=False, repr=False)
    class Quiet:
        number: int

        def __str__(self) -> str:
            return f"quiet {self.number}"

    return [Quiet(1)]


@shape
def own_methods(by):
    @by.frozen
    class Own:
        number: int

        def __repr__(self) -> str:
            return f"<Own {self.number}>"

        def __eq__(self, other: object) -> bool:
            return True

    return [Own(1), Own(2)]


@shape
def own_hash(by):
    @by.define
    class Own:
        number: int

        def __hash__(self) -> int:
            return 7

    return [Own(1), Own(1), Own(2)]


@shape
def error(by):
    @by.define(eq=False, kw_only=True, str=False, slots=False)
    class Broken(Exception):
        server: str | None = None

        def __str__(self) -> str:
            return f"broken: {self.server}"

    @by.define
    class Worse(Broken):
        reason: str = ""

    return [Broken(server="a"), Broken(server="a"), Worse(server="a"), Worse("b", server="a")]


@shape
def heirs(by):
    @by.frozen
    class Base:
        number: int

    @by.frozen
    class Heir(Base):
        text: str = ""

    @by.define
    class LivingHeir(Base):
        text: str = ""

    @by.frozen(eq=False)
    class EqualByBase(Base):
        text: str = ""

    class Bare(Base):
        pass

    return [Heir(1), Heir(1), Base(1), LivingHeir(1), LivingHeir(1), EqualByBase(1), EqualByBase(1, "x"), Bare(1)]


@shape
def heirs_first(by):
    """The base is used before its heir here, and after it in `heirs`."""

    @by.frozen
    class Base:
        number: int

    hash(Base(1)), repr(Base(1)), Base(1) == Base(1)

    @by.frozen
    class Heir(Base):
        text: str = ""

    return [Base(1), Heir(1), Base(1), Heir(1)]


@shape
def supers(by):
    @by.frozen
    class Base:
        number: int

        def doubled(self) -> int:
            return self.number * 2

    @by.frozen
    class Middle(Base):
        text: str = ""

        def __repr__(self) -> str:
            return f"({super().__repr__()})"

        def doubled(self) -> int:
            return super().doubled()

    class Last(Middle):
        def __repr__(self) -> str:
            return f"[{super().__repr__()} {self.doubled()}]"

        def __eq__(self, other: object) -> bool:
            return super().__eq__(other)

        def __hash__(self) -> int:
            return super().__hash__()

    return [Last(1), Last(1), Middle(1), Base(1)]


@shape
def cycles(by):
    @by.define(eq=False)
    class Loop:
        inside: list[object] = field(factory=list)

    loop = Loop()
    loop.inside.append(loop)
    return [loop]


@shape
def generic(by):
    @by.frozen
    class Box(Generic[T]):
        _content: T
        count: int = field(init=False, default=3)

    return [Box(1), Box(1), Box[int](1)]


@shape
def empty(by):
    @by.frozen
    class Nothing:
        pass

    return [Nothing(), Nothing()]


def report(objects: list[object]) -> list[object]:
    """Say all that can be seen of the objects of a shape."""
    texts = [repr(each) for each in objects] + [str(each) for each in objects]
    seen: list[object] = [re.sub(" at 0x[0-9a-f]+", "", text) for text in texts]
    seen += [one == other for one in objects for other in objects]
    seen += [one != other for one in objects for other in objects]
    seen += [one.__eq__(object()) for one in objects]
    seen += [isinstance(each, Hashable) for each in objects]
    able = [each for each in objects if isinstance(each, Hashable)]
    seen += [one in {other: None} for one in able for other in able]
    return seen


@pytest.mark.parametrize("row", SHAPES, ids=lambda row: row.__name__)
def test_a_class_is_seen_as_attrs_makes_it(row: Shape) -> None:
    """Text, equality and hashing are the same for classes made by `values` and by attrs, in first and second use."""
    ours = row(values)
    theirs = row(attrs)

    expected = report(theirs)
    assert report(ours) == expected
    assert report(ours) == expected


@pytest.mark.parametrize("row", SHAPES, ids=lambda row: row.__name__)
def test_a_method_that_was_used_is_the_compiled_one(row: Shape) -> None:
    """After the first use nothing stands between a class and the methods that attrs compiled for it."""
    ours, theirs = row(values), row(attrs)
    report(ours)
    report(theirs)

    for one, other in zip(ours, theirs, strict=True):
        for name in ("__repr__", "__eq__", "__hash__"):
            mine, its = getattr(type(one), name), getattr(type(other), name)
            assert [getattr(mine, "__qualname__", None), getattr(mine, "__module__", None)] == [
                getattr(its, "__qualname__", None),
                getattr(its, "__module__", None),
            ]


@pytest.mark.parametrize(("options", "error"), [({"order": True}, ValueError), ({"cache_hash": True}, TypeError)])
def test_what_needs_a_compiled_equality_is_refused(options: dict[str, bool], error: type[Exception]) -> None:
    """An order and a kept hash, which build on attrs' own equality, are refused rather than made wrong."""
    with pytest.raises(error):
        values.frozen(**options)(type("Asked", (), {}))


@values.frozen
class Kept:
    """At the top of a module, as pickle wants it."""

    number: int
    inside: tuple[int, ...] = ()


@values.frozen
class KeptHeir(Kept):
    """Of a class with slots of its own."""

    text: str = ""


class BareHeir(Kept):
    """Made by no decorator, with slots all the same."""

    __slots__ = ()


@values.define
class KeptLiving:
    """It can change, and keeps half of itself."""

    number: int
    note: str = ""

    def __getstate__(self) -> tuple[int]:
        return (self.number,)

    def __setstate__(self, state: tuple[int]) -> None:
        [self.number] = state
        self.note = "came back"


@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, lambda value: pickle.loads(pickle.dumps(value))])
@pytest.mark.parametrize("value", [Kept(1, (2,)), KeptHeir(1, (2,), "x"), BareHeir(1)])
def test_copies_are_equal(value: Kept, again: Callable[[Kept], Kept]) -> None:
    """A value can be copied, pickled and evolved, and equals what comes back."""
    assert again(value) == value
    assert attrs.evolve(attrs.evolve(value, number=2), number=1) == value


def test_a_class_may_say_what_is_copied() -> None:
    """The state that a class defines by itself stays."""
    assert copy.copy(KeptLiving(1, "lost")) == KeptLiving(1, "came back")


def test_threads_may_use_a_class_first_at_once() -> None:
    """Threads that are the first to compare values of a class, all at once, all get the answer."""

    @values.frozen
    class Value:
        number: int

    late = Value.__eq__
    start = threading.Barrier(8)
    answers: list[object] = []

    def compare() -> None:
        start.wait()
        answers.append(late(Value(1), Value(1)))  # the late method, also when another thread has replaced it

    threads = [threading.Thread(target=compare) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert answers == [True] * 8
