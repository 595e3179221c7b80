"""Tests of the cache of answers."""

from __future__ import annotations

import pytest

from mcp_actors.protocol.cache import MAX_TTL, Lifetime, ResponseCache, cache_key, read_lifetime
from mcp_actors.protocol.jsonrpc import encode


def answer(ttl: object = 1000, scope: object = "private", **more: object) -> bytes:
    return encode({"resultType": "complete", "ttlMs": ttl, "cacheScope": scope, "tools": [], **more})


NONE = Lifetime(0.0, is_public=False)


@pytest.mark.parametrize(
    ("result", "expected"),
    [
        (answer(1500), Lifetime(1.5, is_public=False)),
        (answer(1500, "public"), Lifetime(1.5, is_public=True)),
        (answer(0.5), Lifetime(0.0005, is_public=False)),
        (answer(1500, "shared"), Lifetime(1.5, is_public=False)),
        (answer(1500, None), Lifetime(1.5, is_public=False)),
        (answer(10**12), Lifetime(MAX_TTL, is_public=False)),
        (answer(10**400), Lifetime(MAX_TTL, is_public=False)),
        (encode({"ttlMs": 1000}), Lifetime(1.0, is_public=False)),
        (answer(0), NONE),
        (answer(-1), NONE),
        (answer("1000"), NONE),
        (answer(True), NONE),
        (answer(None), NONE),
        (answer(resultType="input_required"), NONE),
        (encode({"tools": []}), NONE),
        (b"garbage", NONE),
    ],
)
def test_how_long_an_answer_lives(result, expected):
    """Absent, negative and malformed hints mean not at all; a day is the most; the scope is private in doubt (7.5)."""
    assert read_lifetime(result) == expected


@pytest.mark.parametrize(
    ("method", "params", "is_kept"),
    [
        ("tools/list", None, True),
        ("tools/list", {"cursor": ""}, True),
        ("resources/read", {"uri": "a"}, True),
        ("server/discover", {}, True),
        ("resources/read", {"uri": "a", "requestState": "s"}, False),
        ("resources/read", {"uri": "a", "inputResponses": {}}, False),
        ("tools/call", {"name": "t"}, False),
        ("prompts/get", {"name": "p"}, False),
        ("completion/complete", {}, False),
        ("vendor/x", {}, False),
    ],
)
def test_what_may_be_kept(method, params, is_kept):
    """Lists, reads and discovery; never a round of a multi-round-trip request (E12, F05)."""
    cache = ResponseCache()

    assert (cache_key(method, params) is not None) is is_kept
    assert cache.put(method, params, None, answer(), 0.0) is is_kept
    assert (cache.fresh(method, params, None, 0.5) is not None) is is_kept


def test_an_answer_is_fresh_until_its_time():
    """Each page has its own clock (F05, F06)."""
    cache = ResponseCache()
    cache.put("tools/list", None, None, answer(1000, n=1), 10.0)
    cache.put("tools/list", {"cursor": "2"}, None, answer(2000, n=2), 10.0)

    assert cache.fresh("tools/list", {}, None, 10.999) == answer(1000, n=1)
    assert cache.fresh("tools/list", None, None, 11.0) is None
    assert cache.fresh("tools/list", {"cursor": "2"}, None, 11.0) == answer(2000, n=2)
    assert cache.fresh("tools/list", {"cursor": "3"}, None, 10.0) is None


def test_the_key_is_what_affects_the_result():
    """The order of members and `_meta` do not; everything else does (F06)."""
    assert cache_key("resources/read", {"uri": "a", "x": {"b": 1, "a": 2}}) == cache_key(
        "resources/read", {"x": {"a": 2, "b": 1}, "uri": "a", "_meta": {"progressToken": 1}}
    )
    keys = [
        cache_key("tools/list", None),
        cache_key("prompts/list", None),
        cache_key("tools/list", {"cursor": ""}),
        cache_key("tools/list", {"cursor": "1"}),
        cache_key("tools/list", {"cursor": [1, "a"]}),
    ]
    assert len(set(keys)) == len(keys)


def test_a_private_answer_is_for_its_credentials():
    """It is never served to others, not even to nobody; a public one is served to all (E12)."""
    cache = ResponseCache()
    cache.put("tools/list", None, "alice", answer(scope="private"), 0.0)
    cache.put("prompts/list", None, "alice", answer(scope="public"), 0.0)

    assert [cache.fresh("tools/list", None, who, 0.0) is not None for who in ("alice", "bob", None)] == [
        True,
        False,
        False,
    ]
    assert [cache.fresh("prompts/list", None, who, 0.0) is not None for who in ("alice", "bob", None)] == [True] * 3


def test_the_newest_answer_replaces_the_old():
    """Also when it must not be kept itself, or is of another scope."""
    cache = ResponseCache()
    cache.put("tools/list", None, "a", answer(scope="private", n=1), 0.0)
    cache.put("tools/list", None, "a", answer(scope="public", n=2), 0.0)
    assert cache.fresh("tools/list", None, "a", 0.0) == answer(scope="public", n=2)
    assert len(cache) == 1

    cache.put("tools/list", None, "a", answer(0), 0.0)
    assert len(cache) == 0


def test_a_list_change_makes_its_lists_stale():
    """At once, all pages, for everybody, and no other list (F05)."""
    cache = ResponseCache()
    lists = ["tools/list", "prompts/list", "resources/list", "resources/templates/list"]
    for method in lists:
        cache.put(method, None, "a", answer(), 0.0)
        cache.put(method, {"cursor": "2"}, None, answer(scope="public"), 0.0)

    cache.invalidate_list("resources")
    cache.invalidate_list("unheard-of")

    fresh = [
        method
        for method in lists
        if cache.fresh(method, None, "a", 0.0) or cache.fresh(method, {"cursor": "2"}, "b", 0.0)
    ]
    assert fresh == ["tools/list", "prompts/list"]
    assert len(cache) == 4


@pytest.mark.parametrize(
    ("told", "stale"),
    [("file:///a", ["file:///a"]), ("file:///a/b", ["file:///a", "file:///a/b"]), ("file:///ab", []), ("x", [])],
)
def test_an_update_makes_its_resource_stale(told, stale):
    """The resource itself and what contains it, by whole path segments (spec_client 7.8)."""
    cache = ResponseCache()
    uris = ["file:///a", "file:///a/b"]
    for uri in uris:
        cache.put("resources/read", {"uri": uri}, None, answer(), 0.0)

    cache.invalidate_resource(told)

    assert [uri for uri in uris if cache.fresh("resources/read", {"uri": uri}, None, 0.0) is None] == stale


def test_pages_are_dropped_together():
    """A refused cursor means that the pages do not belong together any more."""
    cache = ResponseCache()
    cache.put("tools/list", None, None, answer(), 0.0)
    cache.put("tools/list", {"cursor": "2"}, None, answer(), 0.0)
    cache.put("prompts/list", None, None, answer(), 0.0)

    cache.forget_list("tools/list")
    assert len(cache) == 1
    cache.clear()
    assert len(cache) == 0
    assert cache.fresh("prompts/list", None, None, 0.0) is None


def test_it_is_bounded_and_keeps_what_is_used():
    """By entries and by bytes; what was used longest ago goes first; what is too large is not kept."""
    cache = ResponseCache(max_bytes=4 * len(answer(n=0)), max_entries=3)
    for number in range(3):
        cache.put("resources/read", {"uri": str(number)}, None, answer(n=number), 0.0)
    cache.fresh("resources/read", {"uri": "0"}, None, 0.0)

    cache.put("resources/read", {"uri": "3"}, None, answer(n=3), 0.0)
    kept = [uri for uri in "0123" if cache.fresh("resources/read", {"uri": uri}, None, 0.0)]
    cache.put("resources/read", {"uri": "4"}, None, answer(n=4, more="x" * len(answer(n=0))), 0.0)

    assert kept == ["0", "2", "3"]
    assert len(cache) == 2 or len(cache) == 3
    assert not cache.put("resources/read", {"uri": "5"}, None, answer(n=5, more="x" * 10_000), 0.0)
