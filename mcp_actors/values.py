"""Owns how our classes are made: by attrs, whose `__repr__`, `__eq__` and `__hash__` are compiled when first used.

attrs compiles them for each class while its module is imported, and most are never called: a fleet that connects hashes
two classes of hundreds, compares none and prints none. So half of what a class costs to make is left for later. What
copies and pickles need of a class with slots is shared by all, rather than made for each.

What this is not: another attrs. What is compiled then is what attrs compiles, for a twin that has the same fields; type
checkers see attrs' own decorators.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

import attrs

if TYPE_CHECKING:
    from collections.abc import Callable

    from attrs import define as define
    from attrs import frozen as frozen

__all__ = ["define", "frozen"]


def _late(name: str) -> Callable[..., object]:
    """Make the method that stands in for attrs' until it is called; all classes share it."""

    def method(self: object, *args: object) -> object:
        # The nearest class that waits, or waited a moment ago when two threads are here, is the one `super` meant too.
        owner = next(cls for cls in type(self).__mro__ if name in vars(cls).get("__late__", ()))
        if vars(owner)[name] is method:
            setattr(owner, name, _compile(owner, name))
        return vars(owner)[name](self, *args)

    method.__name__ = method.__qualname__ = name
    return method


def _compile(owner: type[attrs.AttrsInstance], name: str) -> Callable[..., object]:
    """Let attrs make one method of a class, for a twin of it."""
    fields = {
        each.name: attrs.field(init=False, repr=each.repr, eq=each.eq_key or each.eq, hash=each.hash)
        for each in attrs.fields(owner)
    }
    twin = type(owner.__name__, (), {"__module__": owner.__module__, "__qualname__": owner.__qualname__})
    made = attrs.define(
        twin,
        these=fields,
        slots=False,
        repr=name == "__repr__",
        eq=name == "__eq__",
        unsafe_hash=name == "__hash__",
    )
    method: Callable[..., object] = vars(made)[name]
    return method


def _state(self: attrs.AttrsInstance) -> dict[str, object]:
    return {each.name: getattr(self, each.name) for each in attrs.fields(type(self))}


def _restore(self: attrs.AttrsInstance, state: dict[str, object]) -> None:
    for each in attrs.fields(type(self)):
        if each.name in state:
            object.__setattr__(self, each.name, state[each.name])


_LATE: Final = {name: _late(name) for name in ("__repr__", "__eq__", "__hash__")}
# What a class has whose values cannot change, by itself or by its base; such a class with equality has a hash.
_REFUSES: Final = attrs.frozen(type("Frozen", (), {}), repr=False, eq=False, slots=False).__setattr__

if not TYPE_CHECKING:

    def define(
        body: type | None = None,
        /,
        *,
        repr: bool = True,  # noqa: A002
        eq: bool = True,
        slots: bool = True,
        **options: object,
    ) -> object:
        """Make a class as `attrs.define` does, which decides by the same rules which methods it gets."""
        if body is None:
            return partial(define, repr=repr, eq=eq, slots=slots, **options)
        own = frozenset(vars(body))
        made = attrs.define(body, repr=False, eq=False, slots=slots, getstate_setstate=False, **options)

        late = ["__repr__"] if repr and "__repr__" not in own else []
        if eq and own.isdisjoint({"__eq__", "__ne__"}) and not issubclass(body, BaseException):
            late.append("__eq__")
            if "__hash__" not in own and made.__setattr__ is _REFUSES:
                late.append("__hash__")
            elif "__hash__" not in own:
                made.__hash__ = None
        for name in late:
            setattr(made, name, _LATE[name])
        made.__late__ = tuple(late)
        if slots and own.isdisjoint({"__getstate__", "__setstate__"}):
            made.__getstate__, made.__setstate__ = _state, _restore
        return made

    frozen = partial(define, frozen=True)
