"""Resources, templates and prompts as their servers defined them."""

from __future__ import annotations

import json

import pytest

from mcp_actors.tools.items import prompts_from_items, resources_from_items, templates_from_items


def raws(*definitions: object) -> list[bytes]:
    return [json.dumps(one).encode() for one in definitions]


def test_a_resource_keeps_its_uri_and_shows_cleaned_texts() -> None:
    """The URI goes back as the server wrote it; name and description are for a reader (S194, S322)."""
    [resource], warnings = resources_from_items(
        "s", raws({"uri": "file:///a\u200b", "name": "n\u202e", "title": "T\u200b", "description": " d\u200b", "x": 1})
    )

    assert warnings == ()
    assert (resource.uri, resource.shown_key) == ("file:///a\u200b", "file:///a")
    assert (resource.name, resource.shown_name, resource.description) == ("n\u202e", "T", "d")
    assert resource.row() == {"uri": "file:///a\u200b", "name": "T", "server": "s", "description": "d"}
    assert resource.definition["x"] == 1


def test_bad_items_are_left_out_alone() -> None:
    """Each is told by its place; the others stay (S149)."""
    items = [*raws({"uri": "a:1"}, {"name": "x"}, {"uri": 7}), b"[", *raws({"uri": "a:1"}, {"uri": "a:2"})]

    found, warnings = resources_from_items("s", items)

    assert [resource.uri for resource in found] == ["a:1", "a:2"]
    assert [warning.partition(":")[0] for warning in warnings] == [f"resource {n} was skipped" for n in (2, 3, 4, 5)]


def test_templates() -> None:
    """A template is known by its pattern (S325)."""
    [template], warnings = templates_from_items("s", raws({"uriTemplate": "x:{y}", "name": "n"}, {"uri": "x:y"}))

    assert (template.uri_template, template.name) == ("x:{y}", "n")
    assert warnings == ("template 2 was skipped: it has no uriTemplate",)


def test_prompts_are_commands() -> None:
    """Names are made as for tools; arguments keep their raw names (S332)."""
    arguments = [{"name": "who\u200b", "required": True, "description": "d"}, {"name": "how"}, {"x": 1}, 7]
    [prompt], _ = prompts_from_items("my.server", raws({"name": "say hello", "arguments": arguments}))

    assert prompt.callable_name == "mcp__my_server__say_hello"
    assert [tuple(argument) for argument in prompt.arguments] == [
        ("who\u200b", "who", "d", True),
        ("how", "how", "", False),
    ]


@pytest.mark.parametrize("order", [("a b", "a_b", "a.b"), ("a_b", "a.b", "a b")])
def test_prompts_of_one_command_name(order: tuple[str, ...]) -> None:
    """The same one has the name in whatever order they are listed, and the others are told."""
    found, warnings = prompts_from_items("s", raws(*({"name": name} for name in order)))

    assert [prompt.key for prompt in found] == ["a b"]
    assert len(warnings) == 2


@pytest.mark.parametrize("arguments", [None, 7, {}, "x"])
def test_malformed_arguments_are_none(arguments: object) -> None:
    """A prompt whose arguments cannot be read takes none."""
    [prompt], _ = prompts_from_items("s", raws({"name": "p", "arguments": arguments}))

    assert prompt.arguments == ()
