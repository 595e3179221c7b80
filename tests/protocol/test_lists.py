"""Tests of the pager: cursors, loops, floods, bad items."""

from __future__ import annotations

import itertools

import pytest

from mcp_actors.errors import RemoteProtocolError
from mcp_actors.protocol.jsonrpc import encode
from mcp_actors.protocol.lists import LIST_KEYS, PageCollector


def page(*names: object, cursor: object = None, key: str = "tools", identity: str = "name") -> bytes:
    return encode({key: [{identity: name} for name in names], **({} if cursor is None else {"nextCursor": cursor})})


def names_of(collector: PageCollector) -> list[str]:
    return [item.decode().split('"')[3] for item in collector.items]


@pytest.mark.parametrize(
    ("method", "identity"),
    [
        ("tools/list", "name"),
        ("prompts/list", "name"),
        ("resources/list", "uri"),
        ("resources/templates/list", "uriTemplate"),
    ],
)
def test_all_pages_of_every_list_are_gathered(method, identity):
    """250 items in pages of 100 arrive, in order, with cursors passed on untouched (S150, fault 70, B13)."""
    key = LIST_KEYS[method]
    collector = PageCollector(method, key)
    items = [f"i{number}" for number in range(250)]

    assert collector.first() == {}
    assert collector.feed(page(*items[:100], cursor="π=1 ", key=key, identity=identity)) == {"cursor": "π=1 "}
    assert collector.feed(page(*items[100:200], cursor="", key=key, identity=identity)) == {"cursor": ""}
    assert collector.feed(page(*items[200:], key=key, identity=identity)) is None
    assert names_of(collector) == items
    assert collector.warnings == []


def test_items_stay_the_bytes_that_were_sent():
    """Unknown keys, spaces and number forms of an item are kept (B12)."""
    item = b'{ "name":"a","inputSchema":{"x":1.0},  "future":[1e2] }'
    collector = PageCollector("tools/list", "tools")

    collector.feed(b'{"tools":[' + item + b'],"nextCursor":null}')

    assert collector.items == [item]


def test_a_cursor_that_repeats_ends_the_walk():
    """The same page and cursor for ever stop at the second sight; nothing is doubled (fault 71a)."""
    collector = PageCollector("tools/list", "tools")

    assert collector.feed(page("a", "b", cursor="c")) == {"cursor": "c"}
    assert collector.feed(page("a", "b", cursor="c")) is None
    assert names_of(collector) == ["a", "b"]
    assert "repeats" in collector.warnings[0]


def test_a_loop_of_several_cursors_ends_the_walk():
    """A cursor counts as repeated whenever it was seen."""
    collector = PageCollector("tools/list", "tools")

    cursors = [collector.feed(page(cursor, cursor=cursor)) for cursor in ("x", "y", "z", "x")]

    assert cursors == [{"cursor": "x"}, {"cursor": "y"}, {"cursor": "z"}, None]


@pytest.mark.parametrize(
    ("limits", "names", "kept"),
    [
        ({"max_pages": 7}, lambda number: ["same"], 1),
        ({"max_items": 10}, lambda number: [f"{number}-{item}" for item in range(4)], 10),
        ({"max_bytes": 200}, lambda number: [f"tool number {number}"], 4),
    ],
    ids=["pages", "items", "bytes"],
)
def test_a_flood_of_pages_is_cut(limits, names, kept):
    """New cursors for ever stop at the cap of pages, items or bytes; what was gathered stays (S150, fault 71b, c)."""
    collector = PageCollector("tools/list", "tools", **limits)

    for number in itertools.count():
        if collector.feed(page(*names(number), cursor=f"c{number}")) is None:
            break

    assert number < 20
    assert len(collector.items) == kept
    assert "stopped" in collector.warnings[0]


def test_a_list_of_exactly_the_item_cap_is_whole():
    """The cap cuts what is over it, not what meets it."""
    collector = PageCollector("tools/list", "tools", max_items=2)

    assert collector.feed(page("a", "b")) is None
    assert collector.warnings == []


def test_a_bad_item_costs_only_itself():
    """Items without identity are left out with a warning, the others stay (S149, fault 83)."""
    collector = PageCollector("tools/list", "tools")

    collector.feed(b'{"tools":[1,null,{"name":"a"},{"name":5},{},[],"x",{"name":"b"}]}')

    assert names_of(collector) == ["a", "b"]
    assert len(collector.warnings) == 6


def test_warnings_are_bounded_and_the_stop_comes_first():
    """A page that is bad from end to end gives a few warnings, and why the walk stopped is the first of them."""
    collector = PageCollector("tools/list", "tools", max_pages=1)

    collector.feed(b'{"tools":[' + b",".join([b"1"] * 500) + b'],"nextCursor":"c"}')

    assert len(collector.warnings) == 21
    assert "stopped" in collector.warnings[0]


@pytest.mark.parametrize("result", [b"{}", b"[]", b"null", b'{"tools":null}', b'{"tools":{}}', b'{"tools":[}', b""])
def test_a_malformed_page_raises(result):
    """A page that is no list result is the peer's fault (S149); what came before stays."""
    collector = PageCollector("tools/list", "tools")
    collector.feed(page("a", cursor="c"))

    with pytest.raises(RemoteProtocolError):
        collector.feed(result)
    assert names_of(collector) == ["a"]


@pytest.mark.parametrize("cursor", [5, True, {"a": 1}, ["x"]])
def test_a_cursor_that_is_no_string_ends_the_walk(cursor):
    """A cursor of another type cannot be passed on; the items are kept with a warning."""
    collector = PageCollector("tools/list", "tools")

    assert collector.feed(page("a", cursor=cursor)) is None
    assert names_of(collector) == ["a"]
    assert "no string" in collector.warnings[0]
