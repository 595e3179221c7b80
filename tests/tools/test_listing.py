"""What a model may call: filtered, quarantined, and rebuilt only where something changed."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_actors.tools.catalog import Catalog, tools_from_items
from mcp_actors.tools.filters import hide_by, is_listed_for_ide
from mcp_actors.tools.listing import clean_instructions, list_for_model
from mcp_actors.tools.permission_rules import read_rules
from mcp_actors.tools.sanitise import TRUNCATED

if TYPE_CHECKING:
    from mcp_actors.tools.view import ToolView


def items(*definitions: dict[str, object] | str) -> list[bytes]:
    return [json.dumps({"name": one} if isinstance(one, str) else one).encode() for one in definitions]


def catalog(**servers: list[bytes]) -> Catalog:
    return Catalog(tuple(servers)).replace_servers(
        {name: tools_from_items(name, offered).tools for name, offered in servers.items()}
    )


BAD = {"name": "bad", "inputSchema": {"type": "string"}}


def test_a_bad_tool_is_left_out_alone() -> None:
    """Its neighbours are listed, it is told with name and reason, and its route still resolves (fault 83)."""
    fleet = catalog(s=items("a", BAD, "b"), t=items("c"))

    listing = list_for_model(fleet)

    assert list(listing.views) == ["mcp__s__a", "mcp__s__b", "mcp__t__c"]
    assert [(tool.view.name, tool.is_quarantined) for tool in listing.hidden] == [("mcp__s__bad", True)]
    assert listing.warnings == ("mcp__s__bad was left out: inputSchema has the type 'string' instead of object",)
    assert fleet.resolve("s.bad") is not None


def test_hidden_text_is_told_by_place() -> None:
    """The warning names tool and fields and holds none of the text (S195, fault 103)."""
    listing = list_for_model(catalog(s=items({"name": "a", "description": "secret\u200b\u202e"})))

    assert listing.warnings == ("mcp__s__a: 2 hidden code points were removed from description",)


def test_the_filter_of_a_host() -> None:
    """Deny rules, app-only and suspended tools are hidden, each with its reason (S165, S236, E15, fault 104)."""
    app = {"name": "app", "_meta": {"ui": {"visibility": ["app"]}}}
    fleet = catalog(s=items("a", "b", app, "c", "d"))
    hide = hide_by(read_rules({"deny": ["mcp__s__b", "mcp__s__a(x:1)"]}), {"mcp__s__c"})

    listing = list_for_model(fleet, hide)

    assert list(listing.views) == ["mcp__s__a", "mcp__s__d"]
    assert [(tool.view.tool.name, tool.reason) for tool in listing.hidden] == [
        ("b", "denied by mcp__s__b"),
        ("app", "meant for the server's own user interface"),
        ("c", "its definition changed since it was approved"),
    ]
    assert listing.warnings == ()


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("mcp__ide__executeCode", True),
        ("mcp__ide__getDiagnostics", True),
        ("mcp__ide__openFile", False),
        ("mcp__ide__", False),
        ("mcp__ide2__openFile", True),
        ("mcp__my_ide__openFile", True),
        ("mcp__ide", True),
    ],
)
def test_the_editors_list(name: str, expected: bool) -> None:
    """Of the server `ide` two tools pass; other servers are not affected (S164)."""
    assert is_listed_for_ide(name) is expected


def test_the_editors_list_applies_before_registration() -> None:
    """What the editor's list keeps out is not even in the catalog (S164)."""
    assert [tool.name for tool in tools_from_items("ide", items("openFile", "getDiagnostics")).tools] == [
        "getDiagnostics"
    ]


def test_a_change_costs_work_for_its_server_alone() -> None:
    """Shelves of servers that did not change are taken over; another filter makes all of them anew (S367)."""
    seen: list[str] = []

    def hide(view: ToolView) -> str | None:
        seen.append(view.tool.name)
        return None

    fleet = catalog(s=items("a", "b"), t=items("c"))
    first = list_for_model(fleet, hide)
    seen.clear()

    second = list_for_model(fleet.replace_servers({"t": tools_from_items("t", items("d")).tools}), hide, previous=first)

    assert seen == ["d"]
    assert list(second.views) == ["mcp__s__a", "mcp__s__b", "mcp__t__d"]
    assert second.views["mcp__s__a"] is first.views["mcp__s__a"]
    assert list_for_model(fleet, previous=second).shelves[0] is not first.shelves[0]
    assert list_for_model(fleet.replace_servers({"s": None}), hide, previous=second).views.keys() == {"mcp__t__c"}


def test_the_loser_of_a_collision_is_not_listed() -> None:
    """Of two servers with one normal form the first is listed, until it leaves; what the other loses is told (S184)."""
    fleet = Catalog(("a.b", "a_b")).replace_servers(
        {server: tools_from_items(server, items("t", f"only {server}")).tools for server in ("a_b", "a.b")}
    )

    listing = list_for_model(fleet)

    assert [(view.server, view.tool.name) for view in listing] == [("a.b", "t"), ("a.b", "only a.b")]
    assert len(listing) == 2
    assert [hidden.view.tool.name for hidden in listing.hidden] == ["t", "only a_b"]
    assert listing.warnings[0] == "mcp__a_b__t was left out: the one of a.b, which comes first, has this name"
    assert list(map(id, list_for_model(fleet, previous=listing).shelves)) == list(map(id, listing.shelves))
    rest = fleet.replace_servers({"a.b": None})
    assert [view.server for view in list_for_model(rest, previous=listing)] == ["a_b", "a_b"]


NAMES = st.lists(st.text("ab._/\u200b", min_size=1, max_size=4), max_size=6, unique=True)


@given(NAMES, st.randoms())
def test_names_do_not_depend_on_the_order_of_a_list(names: list[str], random: object) -> None:
    """Which tool has which callable name is the same however its server orders its list (invariant 10)."""
    shuffled = names.copy()
    random.shuffle(shuffled)  # type: ignore[attr-defined]

    one, other = (
        {t.callable_name: t.name for t in tools_from_items("s", items(*order)).tools} for order in (names, shuffled)
    )

    assert one == other


@given(NAMES)
def test_each_name_leads_back_to_its_tool(names: list[str]) -> None:
    """Callable names are unique, and each leads to the raw name that goes to the server (S183, fault 81)."""
    fleet = catalog(s=items(*names))

    for name, view in list_for_model(fleet).views.items():
        assert fleet.resolve(name) is view.tool
        assert view.tool.name in names


def test_instructions_are_cleaned_and_capped() -> None:
    """A server's instructions are treated as its descriptions are (S157, S169)."""
    assert clean_instructions(None) == ""
    assert clean_instructions("a\u200bb ") == "ab"
    assert clean_instructions("x" * 3_000).endswith(TRUNCATED)
    assert len(clean_instructions("x" * 3_000)) == 2_048
