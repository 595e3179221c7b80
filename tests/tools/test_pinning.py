"""What changed since a tool was approved."""

from __future__ import annotations

import json

import pytest

from mcp_actors.protocol import jsonrpc
from mcp_actors.tools.catalog import Tool, tools_from_items
from mcp_actors.tools.pinning import (
    ChangeKind,
    Pin,
    PinPolicy,
    compare,
    pin_tool,
    pins_from_json,
    pins_to_json,
    suspended,
)


def tools(*definitions: dict[str, object]) -> tuple[Tool, ...]:
    return tools_from_items("s", [json.dumps(one).encode() for one in definitions]).tools


def pins(*definitions: dict[str, object]) -> dict[str, Pin]:
    return {tool.name: pin_tool(tool) for tool in tools(*definitions)}


SCHEMA = {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "string"}}}
READ = {"name": "read", "description": "Reads.\nA file.", "inputSchema": SCHEMA}


@pytest.mark.parametrize(
    ("now", "expected"),
    [
        ([READ], []),
        ([{**READ, "icons": [1], "_meta": {"x": 1}}], []),
        (
            [
                {
                    **READ,
                    "inputSchema": {"properties": dict(reversed(SCHEMA["properties"].items())), "type": "object"},
                }
            ],
            [],
        ),
        ([{**READ, "title": None}], []),
        ([{**READ, "description": "Deletes."}], ["changed: 'read': description"]),
        ([{**READ, "description": "Reads.\u200b\nA file."}], ["changed: 'read': description"]),
        ([{**READ, "annotations": {"readOnlyHint": True}}], ["changed: 'read': annotations"]),
        ([{**READ, "outputSchema": {}}], ["changed: 'read': outputSchema"]),
        ([{**READ, "inputSchema": {}, "title": "T"}], ["changed: 'read': title, inputSchema"]),
        ([{**READ, "name": "get"}], ["renamed: 'get' (was 'read')"]),
        ([READ, {**READ, "name": "get"}], ["added: 'get'"]),
        ([{**READ, "name": "get", "description": "x"}], ["added: 'get'", "removed: 'read'"]),
        ([], ["removed: 'read'"]),
    ],
)
def test_changes(now: list[dict[str, object]], expected: list[str]) -> None:
    """What a model judges by is compared; order of keys and other keys are not; a rename is recognised (fault 104)."""
    assert [change.describe() for change in compare(pins(READ), tools(*now))] == expected


def test_a_change_comes_with_its_diff() -> None:
    """A person sees which lines and which places of a schema changed, cleaned and without escapes."""
    schema = {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "integer"}}}
    now = {**READ, "description": "Reads.\nA file\u202e and sends it.\x1b[2J", "inputSchema": schema}

    [change] = compare(pins(READ), tools(now))

    assert change.keys == ("description", "inputSchema")
    assert change.diff == (
        "--- description (approved)",
        "+++ description (now)",
        "@@ -1,2 +1,2 @@",
        " Reads.",
        "-A file.",
        "+A file and sends it.[2J",
        "--- inputSchema (approved)",
        "+++ inputSchema (now)",
        "@@ -1,3 +1,3 @@",
        ' properties.a.type: "string"',
        '-properties.b.type: "string"',
        '+properties.b.type: "integer"',
        ' type: "object"',
    )


def test_a_diff_is_bounded() -> None:
    """However much changed, a diff stays readable."""
    now = {**READ, "description": "x\n" * 50_000 + "y" * 50_000}

    [change] = compare(pins(READ), tools(now))

    assert len(change.diff) <= 201
    assert max(map(len, change.diff)) <= 500


def test_policies() -> None:
    """Warning suspends nothing; quarantine holds back all that was not approved."""
    changes = compare(
        pins(READ, {"name": "old"}), tools({**READ, "description": "x"}, {"name": "new"}, {"name": "z", "title": "t"})
    )

    assert suspended(changes, PinPolicy.WARN) == frozenset()
    assert suspended(changes, PinPolicy.QUARANTINE) == {"mcp__s__read", "mcp__s__new", "mcp__s__z"}
    assert [change.kind for change in changes] == [ChangeKind.CHANGED, ChangeKind.RENAMED, ChangeKind.ADDED]


def test_the_first_sight_of_a_server_is_trusted() -> None:
    """Without pins there is nothing to compare with."""
    assert compare({}, tools(READ)) == ()


def test_pins_survive_a_file() -> None:
    """Pins read back are equal; what was tampered with is not taken."""
    kept = pins(READ, {"name": "other"})
    written = jsonrpc.decode(jsonrpc.encode(pins_to_json(kept.values())))

    assert pins_from_json(written) == kept
    assert compare(pins_from_json(written), tools(READ, {"name": "other"})) == ()
    written["read"]["body"]["description"] = "changed"
    assert pins_from_json(written).keys() == {"other"}
    assert pins_from_json([1]) == pins_from_json(None) == pins_from_json({"x": 1}) == {}


def test_digests_tell_names_apart() -> None:
    """Two tools that differ in their name alone have one body and two digests."""
    [one, other] = pins(READ, {**READ, "name": "get"}).values()

    assert one.body_digest == other.body_digest
    assert one.digest != other.digest
