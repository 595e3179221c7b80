"""Where pins are kept."""

from __future__ import annotations

import json

import pytest
from attrs import evolve

from mcp_actors.config.specs import RemoteTarget, ServerSpec, StdioTarget
from mcp_actors.model.pins import PinBook, PinStore
from mcp_actors.tools.catalog import tools_from_items

DB = ServerSpec("d/b", StdioTarget("db", ("--x",)))


def tools(**described: str):
    items = [json.dumps({"name": name, "description": text}).encode() for name, text in described.items()]
    return tools_from_items("d/b", items).tools


def test_pins_survive_and_the_file_is_private(tmp_path) -> None:
    """A second book finds what the first one wrote."""
    PinBook(PinStore(tmp_path)).look(DB, tools(a="1"))
    path = PinStore(tmp_path).path_of(DB)

    changes = PinBook(PinStore(tmp_path)).look(DB, tools(a="2", b="new"))

    assert [(str(change.kind), change.name) for change in changes] == [("changed", "a"), ("added", "b")]
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.name.startswith("d_b-")


@pytest.mark.parametrize(
    ("other", "is_same"),
    [
        (DB, True),
        (evolve(DB, target=StdioTarget("db", ("--x",), environment={"TOKEN": "new"})), True),
        (evolve(DB, target=StdioTarget("db", ("--y",))), False),
        (evolve(DB, target=RemoteTarget("https://h.example/mcp")), False),
        (evolve(DB, name="d_b"), False),
    ],
)
def test_pins_belong_to_a_server_and_what_it_runs(tmp_path, other: ServerSpec, is_same: bool) -> None:
    """Another program under the name is another server; a renewed token is not."""
    store = PinStore(tmp_path)

    assert (store.path_of(other) == store.path_of(DB)) is is_same


@pytest.mark.parametrize("data", [b"", b"[]", b"{", b'{"tools": 5}', b"[" * 100_000])
def test_a_broken_file_pins_nothing(tmp_path, data: bytes) -> None:
    """What cannot be read counts as never pinned; it is written anew."""
    store = PinStore(tmp_path)
    path = store.path_of(DB)
    path.parent.mkdir()
    path.write_bytes(data)

    assert store.load(DB) == {}
    assert PinBook(store).look(DB, tools(a="1")) == ()
    assert set(store.load(DB)) == {"a"}


def test_a_directory_that_cannot_be_written_costs_only_the_pins(tmp_path) -> None:
    """The tools are listed all the same."""
    (tmp_path / "state").write_text("in the way", "utf-8")

    assert PinBook(PinStore(tmp_path / "state")).look(DB, tools(a="1")) == ()
