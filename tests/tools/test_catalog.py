"""The catalog: an immutable answer to who offers what."""

from __future__ import annotations

import itertools
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_actors.errors import RemoteProtocolError
from mcp_actors.tools.catalog import Catalog, Tool, tools_from_items

OPTIONAL = ("title", "description", "inputSchema", "outputSchema", "annotations")


def item(name: object, **rest: object) -> bytes:
    return json.dumps({"name": name, **rest}, ensure_ascii=False).encode()


def tools(server: str, *names: str) -> tuple[Tool, ...]:
    return tools_from_items(server, [item(name) for name in names]).tools


# ── tools ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_tool_keeps_every_key_of_its_definition() -> None:
    """A definition is what the server sent, unknown keys included (invariant 9)."""
    definition = {
        "name": "t",
        "x-new": {"deep": [1, None]},
        "inputSchema": {"type": "object", "$defs": {}},
        "icons": [],
    }

    [tool] = tools_from_items("s", [json.dumps(definition).encode()]).tools

    assert tool.definition == definition
    assert tool.definition is tool.definition


def test_a_tool_offers_its_known_fields() -> None:
    """Title, description, schemas, annotations and meta are read from the definition."""
    [tool] = tools_from_items(
        "my.server",
        [
            item(
                "do it",
                title="Do it",
                description="Does it.",
                inputSchema={"type": "object", "properties": {"n": {"type": "integer"}}},
                outputSchema={"type": "object"},
                annotations={"readOnlyHint": True},
                _meta={"k": 1},
            )
        ],
    ).tools

    assert tool.callable_name == "mcp__my_server__do_it"
    assert (tool.server, tool.name) == ("my.server", "do it")
    assert (tool.title, tool.description) == ("Do it", "Does it.")
    assert tool.input_schema["properties"] == {"n": {"type": "integer"}}
    assert tool.output_schema == {"type": "object"}
    assert tool.annotations == {"readOnlyHint": True}
    assert tool.meta == {"k": 1}


@pytest.mark.parametrize("rest", [{}, dict.fromkeys(OPTIONAL)])
def test_fields_that_are_missing_or_null(rest: dict[str, object]) -> None:
    """A missing or null schema means an object without parameters; other fields are empty (fault 83)."""
    [tool] = tools_from_items("s", [item("t", **rest)]).tools

    assert (tool.title, tool.description, tool.output_schema, tool.annotations) == (None, "", None, {})
    assert tool.input_schema == {"type": "object"}


def test_the_definition_is_not_in_the_repr() -> None:
    """A repr tells the size of a definition, not its text."""
    [tool] = tools_from_items("s", [item("t", description="canary")]).tools

    assert "canary" not in repr(tool)


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        (b'{"description":"x"}', "name"),
        (b'{"name":null}', "name"),
        (b'{"name":7}', "name"),
        (b'{"name":""}', "empty"),
        (b'"text"', ""),
        (b"[]", ""),
        (b"null", ""),
    ],
)
def test_an_invalid_item_is_skipped_alone(bad: bytes, reason: str) -> None:
    """One item without a usable name is left out with a warning; its neighbours stay (S149, fault 81)."""
    read = tools_from_items("s", [item("a"), bad, item("b")])

    assert [tool.name for tool in read.tools] == ["a", "b"]
    assert len(read.warnings) == 1
    assert read.warnings[0].startswith("tool 2 was skipped: ")
    assert reason in read.warnings[0]


def test_the_first_of_two_equal_names_wins() -> None:
    """Within a server one tool keeps the callable name, another one gets a hash, a repeated one is left out (S173)."""
    read = tools_from_items(
        "s", [item("a.b", description="1"), item("a_b"), item("a.b", description="2"), item("constructor")]
    )

    assert [(tool.name, tool.callable_name) for tool in read.tools] == [
        ("a.b", "mcp__s__a_b"),
        ("a_b", "mcp__s__a_b_8d47d403"),
        ("constructor", "mcp__s__constructor"),
    ]
    assert read.tools[0].description == "1"
    assert read.warnings == (
        "tool 2 ('a_b') is named mcp__s__a_b_8d47d403: 'a.b' has the name mcp__s__a_b",
        "tool 3 ('a.b') was skipped: 'a.b' has the name mcp__s__a_b",
    )


@given(st.permutations(["工具", "天气", "搜索", "地图", "😀😀", "__", "工具"]))
def test_names_in_other_scripts_are_all_offered_and_lead_back(names: list[str]) -> None:
    """Names of one length that become underscores stay apart, the same in any order of arrival (faults 81, 82)."""
    catalog = Catalog(("s",)).replace_servers({"s": tools_from_items("s", [item(name) for name in names]).tools})

    raw = {name: tool.name for name, tool in catalog.tools.items()}
    assert sorted(raw.values()) == sorted(set(names))
    assert raw["mcp__s____"] == min(names)
    again = Catalog(("s",)).replace_servers({"s": tools_from_items("s", [item(n) for n in sorted(names)]).tools})
    assert {name: tool.name for name, tool in again.tools.items()} == raw
    assert all(catalog.resolve(f"s.{name}") is not None for name in names)


@given(st.permutations(["a.b", "a_b", "a.b_8d47d403", "a_b_8d47d403", "a~b", "a~b"]))
def test_a_name_that_is_another_ones_way_out_is_its_own(names: list[str]) -> None:
    """A tool that is called what another one's hash would make keeps its name; no order of arrival changes that."""
    read = tools_from_items("s", [item(name) for name in names])

    assert {tool.callable_name: tool.name for tool in read.tools} == {
        "mcp__s__a_b": "a.b",
        "mcp__s__a_b_8d47d403": "a.b_8d47d403",
        "mcp__s__a_b_8d47d403_b24e9525": "a_b_8d47d403",
        "mcp__s__a_b_0f214f37": "a~b",
    }
    assert [tool.name for tool in read.tools] == [name for name in dict.fromkeys(names) if name != "a_b"]
    assert len(read.warnings) == 4


def test_a_definition_that_is_broken_inside_is_the_servers_fault() -> None:
    """Reading a definition that is no JSON object raises what says so."""
    with pytest.raises(RemoteProtocolError):
        _ = Tool("mcp__s__t", "s", "t", b"[1]").definition


# ── catalogs ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_change_gives_a_new_catalog() -> None:
    """A reader may keep the catalog that it has."""
    before = Catalog(("a", "b")).replace_servers({"a": tools("a", "x")})

    after = before.replace_servers({"a": tools("a", "y")}).replace_servers({"b": tools("b", "z")})

    assert list(before.tools) == ["mcp__a__x"]
    assert list(after.tools) == ["mcp__a__y", "mcp__b__z"]
    assert after.replace_servers({"a": None}).replace_servers({"nobody": None}).servers == ("b",)


def test_a_server_whose_name_begins_like_another_stays() -> None:
    """Replacing or removing `git` leaves `github` alone (S177, S367)."""
    catalog = Catalog().replace_servers({"git": tools("git", "log"), "github": tools("github", "issues")})

    assert list(catalog.replace_servers({"git": None}).tools) == ["mcp__github__issues"]
    assert list(catalog.replace_servers({"git": ()}).tools) == ["mcp__github__issues"]


@pytest.mark.parametrize("arrival", list(itertools.permutations(["b", "a", "extra-2", "extra-1"])))
def test_order_does_not_depend_on_arrival(arrival: tuple[str, ...]) -> None:
    """Servers stand in the order of the configuration, tools in their server's (invariant 10)."""
    catalog = Catalog(("b", "absent", "a"))
    for server in arrival:
        catalog = catalog.replace_servers({server: tools(server, "z", "y")})

    assert catalog.servers == ("b", "a", "extra-1", "extra-2")
    assert list(catalog.tools) == [f"mcp__{server}__{name}" for server in catalog.servers for name in "zy"]
    assert len(catalog) == 8


@pytest.mark.parametrize("arrival", [("a.b", "a_b"), ("a_b", "a.b")])
def test_the_server_of_higher_precedence_keeps_the_name(arrival: tuple[str, ...]) -> None:
    """Of two servers with one normal form the first configured answers; the other is listed, not lost (S184)."""
    catalog = Catalog(("a.b", "a_b")).replace_servers(
        {server: tools(server, "t", f"only {server}") for server in arrival}
    )

    assert catalog.tools["mcp__a_b__t"].server == "a.b"
    assert [(found.name, found.winner.server, found.loser.server) for found in catalog.collisions] == [
        ("mcp__a_b__t", "a.b", "a_b"),
        ("mcp__a_b__only_a_b", "a.b", "a_b"),
    ]
    loser = catalog.resolve_route("a_b", "t")
    assert loser is not None
    assert loser.server == "a_b"


def test_a_collision_ends_with_its_winner() -> None:
    """When the winner leaves, the other answers to the name."""
    catalog = Catalog(("a.b", "a_b")).replace_servers({"a.b": tools("a.b", "t"), "a_b": tools("a_b", "t")})

    after = catalog.replace_servers({"a.b": None})

    assert after.tools["mcp__a_b__t"].server == "a_b"
    assert after.collisions == ()
    assert catalog.with_order(("a_b", "a.b")).tools["mcp__a_b__t"].server == "a_b"


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("mcp__time__now", ("time", "now")),
        ("time.now", ("time", "now")),
        ("my.server.do.it", ("my.server", "do.it")),
        ("mcp__my_server__do_it", ("my.server", "do.it")),
        ("time", None),
        ("time.", None),
        (".now", None),
        ("time.nothing", None),
        ("", None),
    ],
)
def test_resolve(name: str, expected: tuple[str, str] | None) -> None:
    """A tool is found by its callable name or by server and raw name with a dot between (S182)."""
    catalog = Catalog().replace_servers({"time": tools("time", "now"), "my.server": tools("my.server", "do.it")})

    tool = catalog.resolve(name)

    assert (tool and (tool.server, tool.name)) == expected


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("mcp__time__nwo", ("mcp__time__now",)),
        ("mcp__time__xyz", ()),
        ("time.nwo", ("time.now",)),
        ("time.xyz", ()),
        ("tiem.now", ("time.now",)),
        ("mcp__tiem__now", ("mcp__time__now",)),
        ("qqq", ()),
    ],
)
def test_nearest(name: str, expected: tuple[str, ...]) -> None:
    """The nearest names are given in the form that was asked for."""
    catalog = Catalog().replace_servers({"time": tools("time", "now", "convert"), "github": tools("github", "issues")})

    assert catalog.nearest(name)[: len(expected)] == expected
    assert bool(catalog.nearest(name)) is bool(expected)
    assert len(catalog.nearest(name, limit=1)) <= 1


def test_a_catalog_describes_itself() -> None:
    """The repr is a status line."""
    assert repr(Catalog().replace_servers({"a": tools("a", "x", "y")})) == "<Catalog 2 tools of 1 servers>"


@given(st.lists(st.tuples(st.sampled_from("abc"), st.lists(st.text(min_size=1, max_size=5), max_size=4)), max_size=8))
def test_the_last_offer_of_each_server_counts(changes: list[tuple[str, list[str]]]) -> None:
    """However servers replace their tools, the catalog equals one built from the last offers alone (S368)."""
    stepwise = Catalog(("c", "a"))
    last: dict[str, tuple[Tool, ...]] = {}
    for server, names in changes:
        last[server] = tools(server, *names)
        stepwise = stepwise.replace_servers({server: last[server]})

    at_once = Catalog(("c", "a")).replace_servers(last)

    assert list(stepwise.tools.items()) == list(at_once.tools.items())
    assert stepwise.collisions == at_once.collisions
    assert all(stepwise.resolve_route(tool.server, tool.name) is tool for tool in stepwise.tools.values())
