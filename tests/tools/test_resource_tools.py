"""The two tools through which a model finds and reads resources."""

from __future__ import annotations

import json

import pytest

from mcp_actors.errors import RemoteProtocolError
from mcp_actors.tools.items import resources_from_items
from mcp_actors.tools.permissions import FREE_TOOLS
from mcp_actors.tools.resource_tools import contents_as_blocks, list_answer, plan_contents, resource_tools
from mcp_actors.tools.schemas import AcceptedSchema, accept_schema


def test_the_pair_is_offered_once_where_it_is_of_use() -> None:
    """Both tools are there when some server has resources, once for all of them (S326)."""
    assert resource_tools([]) == resource_tools([{"tools": {}}]) == ()
    pair = resource_tools([{"tools": {}}, {"resources": {}}, {"resources": {}}])

    assert {tool.name for tool in pair} == FREE_TOOLS
    assert [accept_schema(tool.input_schema) for tool in pair] == [AcceptedSchema(tool.input_schema) for tool in pair]


def test_one_failing_server_costs_the_others_nothing() -> None:
    """Resources of the others are listed, and the failure is told (S320, S331)."""
    found, _ = resources_from_items("s", [b'{"uri":"x:\\u200by","name":"n","mimeType":"text/plain"}'])

    assert list_answer([found, ()], {"t": "timed out"}) == {
        "resources": [{"uri": "x:\u200by", "name": "n", "server": "s", "mimeType": "text/plain"}],
        "errors": {"t": "timed out"},
    }
    assert list_answer([()], {}) == {"resources": []}


def test_contents_are_text_or_saved() -> None:
    """Text is cleaned, blobs are saved, and what cannot be read says so (S321)."""
    contents = [
        {"uri": "a:1", "text": "x\u202ey"},
        {"uri": "a:2", "blob": "JVBERg==", "mimeType": "application/pdf"},
        {"uri": "a:3", "blob": "***"},
        {"uri": "a:4"},
        {"uri": "a:5", "blob": ""},
    ]
    plan = plan_contents(json.dumps({"contents": contents}).encode())

    assert [(file.data, file.extension) for file in plan.files] == [(b"%PDF", "pdf"), (b"", "bin")]
    assert plan.finish(["/f", None]) == {
        "contents": [
            {"uri": "a:1", "text": "xy"},
            {"uri": "a:2", "mimeType": "application/pdf", "blobSavedTo": "/f"},
            {"uri": "a:3", "error": "its contents could not be decoded"},
            {"uri": "a:4"},
            {"uri": "a:5", "error": "its contents could not be saved"},
        ]
    }
    with pytest.raises(ValueError, match="2 files"):
        plan.finish([])


@pytest.mark.parametrize("raw", [b"{}", b'{"contents":{}}', b'{"contents":[1]}', b"[]"])
def test_a_result_of_the_wrong_shape(raw: bytes) -> None:
    """What is no result is the server's fault."""
    with pytest.raises(RemoteProtocolError):
        plan_contents(raw)


def test_contents_become_blocks_of_a_result() -> None:
    """What is no object is left out."""
    assert contents_as_blocks({"contents": [{"uri": "x"}, 5]}) == [{"type": "resource", "resource": {"uri": "x"}}]
    assert contents_as_blocks({}) == []
