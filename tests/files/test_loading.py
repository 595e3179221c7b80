"""Tests of `loading`: which files count, in which order, and what they cannot break."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

import pytest

from mcp_actors.config.approvals import Approvals, definition_hash
from mcp_actors.config.specs import Scope, StdioTarget
from mcp_actors.files.loading import APPROVE_PROJECT, LoadedConfig
from mcp_actors.files.places import read_bounded
from tests.files.kit import commands, load, servers, write

if TYPE_CHECKING:
    from pathlib import Path


def test_nothing_anywhere_is_no_problem(project: Path, home: Path) -> None:
    """Missing files are fine."""
    assert load(project, home, approve_project=False) == LoadedConfig()


def test_project_files_are_found_upward(project: Path, home: Path) -> None:
    """`.mcp.json` counts in every directory upward; the nearest wins for each name (S010, S011)."""
    write(project / ".mcp.json", servers(a="near", b="near"))
    write(project.parent / ".mcp.json", servers(a="far", c="far"))
    write(project.parents[1] / ".mcp.json", servers(d="stop"))
    write(project.parents[2] / ".mcp.json", servers(e="above the stop"))

    loaded = load(project, home)

    assert commands(loaded) == {
        "d": ("stop", "project"),
        "c": ("far", "project"),
        "a": ("near", "project"),
        "b": ("near", "project"),
    }
    assert [(lost.name, lost.source) for lost in loaded.shadowed] == [("a", str(project.parent / ".mcp.json"))]


def test_given_configs_override_everything(project: Path, home: Path) -> None:
    """`--config` is a file or a JSON text, later overrides earlier, all override files (S016, S039)."""
    write(project / ".mcp.json", servers(a="project", b="project"))
    write(project / "one.json", servers(a="one", c="one"))

    loaded = load(project, home, configs=["one.json", ' {"mcpServers": {"c": {"command": "text"}}}'])

    assert commands(loaded) == {"b": ("project", "project"), "a": ("one", "dynamic"), "c": ("text", "dynamic")}
    assert loaded.specs[0].source == "<--config 2>"


def test_strict_means_only_given_configs(project: Path, home: Path) -> None:
    """With strict no file is looked for (S039)."""
    write(project / ".mcp.json", servers(a="project"))
    write(home / ".claude.json", "broken")
    write(project / "one.json", servers(c="one"))

    loaded = load(project, home, configs=[project / "one.json"], strict=True)

    assert (commands(loaded), loaded.problems) == ({"c": ("one", "dynamic")}, ())


def test_given_config_in_another_format(project: Path, home: Path) -> None:
    """A file that lies where another program keeps its own is read as that program's."""
    (project / ".vscode").mkdir()
    write(project / ".vscode" / "mcp.json", '{"servers": {"v": {"command": "v"}}} // JSONC')
    write(project / "config.toml", '[mcp_servers.t]\ncommand = "t"')

    loaded = load(project, home, configs=[".vscode/mcp.json", "config.toml"])

    assert (list(commands(loaded)), loaded.problems) == (["t", "v"], ())


def test_missing_given_config_is_a_problem(project: Path, home: Path) -> None:
    """A file that somebody named must be there."""
    [problem] = load(project, home, configs=["none.json"]).problems

    assert (problem.file, problem.category, problem.server) == (str(project / "none.json"), "unreadable", None)


@pytest.mark.parametrize("kind", ["directory", "dangling", "fifo", "loop"])
def test_unreadable_file_is_a_problem(project: Path, home: Path, kind: str) -> None:
    """What stands in the place of a file and is none is told, and never blocks."""
    path = project / ".mcp.json"
    write(home / ".claude.json", servers(u="user"))
    if kind == "directory":
        path.mkdir()
    elif kind == "fifo":
        os.mkfifo(path)
    else:
        path.symlink_to(path if kind == "loop" else project / "nothing")

    loaded = load(project, home)

    assert [problem.category for problem in loaded.problems] == ["unreadable"]
    assert list(commands(loaded)) == ["u"]


def test_odd_paths_are_problems(project: Path, home: Path) -> None:
    """A path that no file system takes is told like a missing file."""
    loaded = load(project, home, configs=["a\0b", "x" * 5000, ""])

    assert [problem.category for problem in loaded.problems] == ["unreadable"] * 3


def test_file_above_the_bound_is_refused(tmp_path: Path) -> None:
    """No file is read beyond its bound."""
    path = tmp_path / "f"
    path.write_bytes(b"12345")

    assert read_bounded(path, 5) == b"12345"
    with pytest.raises(OSError, match="larger"):
        read_bounded(path, 4)


def test_broken_file_costs_only_itself(project: Path, home: Path) -> None:
    """A file that does not parse is told with its place; the others load (S001, fault 21)."""
    write(project / ".mcp.json", '{\n "mcpServers": {\n  "a": {"command": "x"}\n  "b": {}\n }\n}')
    write(home / ".claude.json", servers(u="user"))

    loaded = load(project, home)

    assert list(commands(loaded)) == ["u"]
    [problem] = loaded.problems
    assert (problem.file, problem.line, problem.column) == (str(project / ".mcp.json"), 4, 3)


@pytest.mark.parametrize("mark", [b"\xef\xbb\xbf", b"\xff\xfe"])
def test_byte_order_marks_are_accepted(project: Path, home: Path, mark: bytes) -> None:
    """A file that a Windows editor saved loads (fault 22)."""
    encoding = "utf-8" if len(mark) == 3 else "utf-16-le"
    (project / ".mcp.json").write_bytes(mark + json.dumps(servers(a="ä")).encode(encoding))

    assert commands(load(project, home)) == {"a": ("ä", "project")}


def test_project_servers_wait_for_approval(project: Path, home: Path) -> None:
    """Without a yes a project server is disabled and pending, and a note says what to do (S023, fault 109)."""
    write(project / ".mcp.json", {"mcpServers": {"a": {"command": "/bin/sh", "args": ["-c", "touch ran-unasked"]}}})

    loaded = load(project, home, approve_project=False)

    [spec] = loaded.specs
    assert (spec.is_enabled, spec.disabled_reason) == (False, "pending-approval")
    assert [note.code for note in loaded.notes] == ["pending-approval"]
    assert APPROVE_PROJECT in loaded.notes[0].text


@pytest.mark.parametrize("scope", ["user", "local", "dynamic"])
def test_other_scopes_need_no_approval(project: Path, home: Path, scope: str) -> None:
    """What the user configured runs without asking."""
    write(home / ".claude.json", servers(a="user") if scope == "user" else {"projects": {str(project): servers(a="l")}})
    configs = [json.dumps(servers(a="x"))] if scope == "dynamic" else []

    [spec] = load(project, home, approve_project=False, configs=configs).specs

    assert (spec.is_enabled, spec.scope) == (True, scope)


def test_ways_to_approve(project: Path, home: Path) -> None:
    """A yes comes by argument, by environment, or from stored choices; a stored no stands."""
    write(project / ".mcp.json", servers(a="x"))
    [spec] = load(project, home).specs
    hashes = Approvals(hashes=frozenset({definition_hash(spec)}))
    no = Approvals(disabled=frozenset({"a"}))

    def enabled(**options: object) -> tuple[bool, str]:
        [loaded] = load(project, home, **{"approve_project": False, **options}).specs
        return loaded.is_enabled, loaded.disabled_reason

    assert enabled(environ={APPROVE_PROJECT: "1"})[0]
    assert enabled(approvals=hashes)[0]
    assert not enabled(environ={APPROVE_PROJECT: "0"})[0]
    assert enabled(approvals=no, approve_project=True) == (False, "rejected")


def test_pending_project_server_hides_no_user_server(project: Path, home: Path) -> None:
    """A repository cannot switch off a server of the user by using its name (S017)."""
    write(project / ".mcp.json", servers(a="project"))
    write(home / ".claude.json", servers(a="user"))

    loaded = load(project, home, approve_project=False)

    assert commands(loaded) == {"a": ("user", "user")}
    assert [lost.scope for lost in loaded.shadowed] == [Scope.PROJECT]


def test_names_that_collide_are_noted(project: Path, home: Path) -> None:
    """Two names with one normal form, and a name that cannot be parsed back, are told (S175, S180)."""
    write(home / ".claude.json", servers(**{"my db": "x", "my_db": "y", "a__b": "z"}))

    codes = [note.code for note in load(project, home).notes]

    assert sorted(codes) == ["double-underscore", "name-collision"]


def test_env_file_beside_the_configuration(project: Path, home: Path) -> None:
    """A relative envFile is looked for beside its configuration; a pipe is refused, its entry alone is told (S420)."""
    write(project / ".env", "A=1")
    os.mkfifo(project / "pipe")
    text = {"mcpServers": {n: {"command": "x", "envFile": f} for n, f in [("a", ".env"), ("b", "pipe"), ("c", "\0")]}}
    write(project / ".mcp.json", text)

    loaded = load(project, home)

    assert [spec.target for spec in loaded.specs] == [StdioTarget("x", environment={"A": "1"})]
    assert [problem.server for problem in loaded.problems] == ["b", "c"]


def test_no_value_is_told(project: Path, home: Path) -> None:
    """Nothing that is loaded, told or shown holds a secret of file or environment (S030, S354)."""
    entry = {"command": "x", "args": ["--t=canary", "${T}"], "env": {"A": "canary ", "B": "${T} ", "C": "${NO}canary"}}
    remote = {"url": "https://u:canary@h/canary?canary", "headers": {"A": "canary", "B": "${T}"}}
    write(home / ".claude.json", {"mcpServers": {"a": entry, "b": remote, "c": {**entry, "era": "canary"}}})
    write(project / ".mcp.json", {"mcpServers": {"a": entry, "d": {**remote, "url": "canary://${T}"}}})

    loaded = load(project, home, environ={"T": "canary"}, configs=['{"mcpServers": {"x": canary}}'])

    assert len(loaded.problems) == 3
    assert "canary" not in repr(loaded) + "".join(map(str, (*loaded.problems, *loaded.notes, *loaded.shadowed)))


def test_unset_variable_may_be_fatal(project: Path, home: Path) -> None:
    """A host may refuse entries whose variables are not set (fault 26)."""
    write(home / ".claude.json", {"mcpServers": {"a": {"command": "x", "env": {"A": "${NO}"}}, "b": {"command": "y"}}})

    loaded = load(project, home, is_unset_fatal=True)

    assert list(commands(loaded)) == ["b"]
    assert [problem.category for problem in loaded.problems] == ["unset_variable"]


def test_a_thousand_servers_load_and_each_fault_is_placed(project: Path, home: Path) -> None:
    """A large file with every other entry wrong loads the rest and gives each problem its own line (fault 21)."""
    entries = {
        f"s{i}": {"command": "x", "args": ["${HOME}", str(i)], "env": {"A": 5}} if i % 2 else {"command": i}
        for i in range(1000)
    }
    write(project / ".mcp.json", "// commented\n" + json.dumps({"mcpServers": entries}, indent=2))

    loaded = load(project, home, environ={"HOME": "/h"})

    assert [spec.name for spec in loaded.specs] == [f"s{i}" for i in range(1, 1000, 2)]
    assert [problem.server for problem in loaded.problems] == [f"s{i}" for i in range(0, 1000, 2)]
    assert len({problem.line for problem in loaded.problems}) == 500


def test_managed_file_is_exclusive(project: Path, home: Path, managed: Path) -> None:
    """Where a managed file exists it alone counts, and `--config` is refused (S025, S016)."""
    write(managed / "managed-mcp.json", servers(m="managed"))
    write(home / ".claude.json", servers(u="user"))
    write(project / ".mcp.json", servers(p="project"))

    loaded = load(project, home, configs=[json.dumps(servers(d="x"))], strict=True)

    assert (commands(loaded), loaded.is_exclusive) == ({"m": ("managed", "enterprise")}, True)
    assert [type(problem).__name__ for problem in loaded.problems] == ["ServerNotAllowed"]


@pytest.mark.parametrize("text", ["{", "[]", "", '{"mcpServers": 1}', '{"servers": {}}', '{"mcpServers": {}}'])
def test_managed_file_fails_closed(project: Path, home: Path, managed: Path, text: str) -> None:
    """A managed file that cannot be read, or is empty, means no servers at all (S025)."""
    write(managed / "managed-mcp.json", text)
    write(home / ".claude.json", servers(u="user"))

    loaded = load(project, home)

    assert (loaded.specs, loaded.is_exclusive) == ((), True)
    assert len(loaded.problems) == (text != '{"mcpServers": {}}')


def test_managed_directory_in_place_of_the_file_fails_closed(project: Path, home: Path, managed: Path) -> None:
    """Whatever stands under the managed file's name is an administrator's will."""
    (managed / "managed-mcp.json").mkdir()
    write(home / ".claude.json", servers(u="user"))

    assert load(project, home).specs == ()


def test_managed_settings_and_drop_ins_block(project: Path, home: Path, managed: Path) -> None:
    """Lists of the managed file and its drop-ins hold for every source, with strict too (S039, S048, S062)."""
    write(managed / "managed-settings.json", {"deniedMcpServers": [{"serverName": "a"}]})
    (managed / "managed-settings.d").mkdir()
    write(managed / "managed-settings.d" / "10.json", {"deniedMcpServers": [{"serverCommand": ["bad"]}]})
    write(managed / "managed-settings.d" / "note.txt", "not read")
    write(home / ".claude.json", servers(a="user", b="bad", c="fine"))

    loaded = load(project, home)

    assert {spec.name: spec.disabled_reason for spec in loaded.specs if not spec.is_enabled} == {
        "a": "policy",
        "b": "policy",
    }
    assert [note.code for note in loaded.notes] == ["policy", "policy"]

    [spec] = load(project, home, configs=[json.dumps(servers(a="x"))], strict=True).specs
    assert (spec.is_enabled, spec.disabled_reason) == (False, "policy")


@pytest.mark.parametrize(("value", "is_refused"), [(True, True), ("yes", True), (None, True), (False, False)])
def test_sideloads_are_refused_where_an_administrator_says_so(
    project: Path, home: Path, managed: Path, value: object, is_refused: bool
) -> None:
    """S064: ``disableSideloadFlags`` refuses each --config as a whole; what is unclear closes (S059)."""
    write(home / ".claude.json", servers(u="user"))
    write(managed / "managed-settings.json", {"disableSideloadFlags": value})

    loaded = load(project, home, configs=['{"mcpServers": {"x": {"command": "x"}}}'])

    assert [spec.name for spec in loaded.specs] == (["u"] if is_refused else ["x", "u"])
    assert [(each.file, each.remedy) for each in loaded.problems] == (
        [("<--config 1>", "leave out --config")] if is_refused else []
    )


def test_plugins_only_stops_users_and_projects(project: Path, home: Path, managed: Path) -> None:
    """S064: their servers stay listed as blocked, and say by which setting of which file."""
    write(home / ".claude.json", servers(u="user"))
    write(project / ".mcp.json", servers(p="project"))
    write(managed / "managed-settings.json", {"strictPluginOnlyCustomization": ["mcp"]})

    loaded = load(project, home)

    assert {spec.name: spec.disabled_reason for spec in loaded.specs if not spec.is_enabled} == {
        "u": "policy",
        "p": "policy",
    }
    assert "strictPluginOnlyCustomization" in loaded.specs[0].disabled_detail


@pytest.mark.parametrize("broken", ["managed-settings.json", "managed-settings.d/20.json"])
@pytest.mark.parametrize("kind", ["text", "directory"])
def test_broken_managed_settings_close(project: Path, home: Path, managed: Path, broken: str, kind: str) -> None:
    """A piece of the managed settings that cannot be read stops every server (S059)."""
    (managed / "managed-settings.d").mkdir()
    write(managed / "managed-settings.d" / "10.json", {"allowedMcpServers": [{"serverName": "u"}]})
    if kind == "text":
        write(managed / broken, "{")
    else:
        (managed / broken).mkdir()
    write(home / ".claude.json", servers(u="user"))

    loaded = load(project, home)

    assert [(spec.is_enabled, spec.disabled_reason) for spec in loaded.specs] == [(False, "policy")]
    assert [problem.file for problem in loaded.problems] == [str(managed / broken)]
