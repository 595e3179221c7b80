"""Searching for tools."""

from __future__ import annotations

import json

import pytest

from mcp_actors.tools.catalog import Catalog, tools_from_items
from mcp_actors.tools.listing import Listing, list_for_model
from mcp_actors.tools.search import SearchIndex, words_of

SERVERS = {
    "github": {
        "create_issue": "Create a new issue in a repository.",
        "list_issues": "List issues of a repository, open or closed.",
        "mergePullRequest": "Merge a pull request.",
    },
    "time": {"now": "Tell the current time.", "convert_time": "Convert a time between zones."},
    "weather": {"forecast": "天気予報を取得します。", "now": "Current weather of a city."},
}


def catalog(servers: dict[str, dict[str, str]] = SERVERS) -> Catalog:
    return Catalog(tuple(servers)).replace_servers(
        {
            server: tools_from_items(
                server, [json.dumps({"name": name, "description": text}).encode() for name, text in tools.items()]
            ).tools
            for server, tools in servers.items()
        }
    )


def listing() -> Listing:
    return list_for_model(catalog())


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("getHTTPServers", ["get", "http", "server"]),
        ("list_open-issues.v2", ["list", "open", "issue", "v", "2"]),
        ("mergePullRequest", ["merge", "pull", "request"]),
        ("class", ["class"]),
        ("Größe", ["größe"]),
        ("天気予報", ["天気", "気予", "予報"]),
        ("", []),
    ],
)
def test_words(text: str, expected: list[str]) -> None:
    """Joined words come apart, plurals lose their end, unspaced scripts give pairs."""
    assert words_of(text) == expected


@pytest.mark.parametrize(
    ("query", "first"),
    [
        ("create issue", "mcp__github__create_issue"),
        ("issues list", "mcp__github__list_issues"),
        ("merge pull requests", "mcp__github__mergePullRequest"),
        ("convert", "mcp__time__convert_time"),
        ("conver", "mcp__time__convert_time"),
        ("天気", "mcp__weather__forecast"),
        ("mcp__time__now", "mcp__time__now"),
        ("current weather", "mcp__weather__now"),
        ("now", "mcp__time__now"),
    ],
)
def test_the_best_match_is_first(query: str, first: str) -> None:
    """Names weigh more than descriptions, beginnings of words count, an exact name wins (S170)."""
    matches = SearchIndex().replace(listing()).search(query)

    assert matches[0].view.name == first


def test_limits_and_misses() -> None:
    """A search gives at most what was asked for, and nothing where nothing fits."""
    index = SearchIndex().replace(listing())

    assert len(index.search("time issue", 2)) == 2
    assert len(index.search("a the time repository issue weather pull")) == 5
    assert index.search("time", 0) == ()
    assert index.search("zzz") == ()
    assert index.search("") == ()
    assert SearchIndex().search("time") == ()


def test_scores_fall_and_ties_keep_the_catalogs_order() -> None:
    """The same query gives the same order (invariant 10)."""
    same = {"b": {"x": "same words"}, "a": {"x": "same words"}}
    index = SearchIndex().replace(list_for_model(catalog(same)))

    assert [match.view.server for match in index.search("same words")] == ["b", "a"]
    scores = [match.score for match in SearchIndex().replace(listing()).search("current time", 9)]
    assert scores == sorted(scores, reverse=True)


def test_shelves_that_did_not_change_are_not_indexed_again() -> None:
    """After one server's change the others' words are taken over."""
    fleet = catalog()
    before = list_for_model(fleet)
    index = SearchIndex().replace(before)
    index.search("time")
    tools = tools_from_items("time", [b'{"name":"sunrise"}']).tools

    after = index.replace(list_for_model(fleet.replace_servers({"time": tools}), previous=before))

    assert [one is other for one, other in zip(index._shelves, after._shelves, strict=True)] == [True, False, True]
    assert [match.view.tool.name for match in after.search("sunrise")] == ["sunrise"]
    assert after.search("convert") == ()
