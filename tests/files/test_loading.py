"""Tests of `loading`: which files count, in which order, and what they cannot break."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from attrs import evolve

from mcp_actors.config.approvals import Approvals, definition_hash
from mcp_actors.config.remembered import remember, switch
from mcp_actors.config.sources import SourceReading
from mcp_actors.config.specs import InProcessTarget, RemoteTarget, Scope, ServerSpec, StdioTarget
from mcp_actors.files.loading import (
    APPROVE_PROJECT,
    CHOICES_FILE,
    LoadedConfig,
    Plugin,
    load_choices,
    load_config,
    specs_from_mapping,
    with_readings,
)
from mcp_actors.files.places import Places, read_bounded


@pytest.fixture
def home(tmp_path: Path) -> Path:
    path = tmp_path / "home"
    path.mkdir()
    return path


@pytest.fixture
def project(tmp_path: Path) -> Path:
    path = tmp_path / "top" / "repo" / "sub"
    path.mkdir(parents=True)
    (tmp_path / "top" / "repo" / ".git").mkdir()
    return path


def servers(**commands: str) -> dict[str, object]:
    return {"mcpServers": {name: {"command": command} for name, command in commands.items()}}


def write(path: Path, value: object) -> Path:
    path.write_text(value if isinstance(value, str) else json.dumps(value), "utf-8")
    return path


def load(project: Path, home: Path, **options: object) -> LoadedConfig:
    options = {"environ": {}, "approve_project": True, "managed_dir": home / "managed", **options}
    return load_config(cwd=project, home=home, stop_at=project.parents[1], **options)


def commands(loaded: LoadedConfig) -> dict[str, tuple[str, str]]:
    return {spec.name: (spec.target.command, str(spec.scope)) for spec in loaded.specs}


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


def test_user_and_local_servers_are_in_one_file(project: Path, home: Path) -> None:
    """`~/.claude.json` holds user servers, and local ones under the path of the project (S009, S012)."""
    write(
        home / ".claude.json",
        {
            **servers(u="user", x="user"),
            "projects": {
                str(project): servers(x="local", l="local"),
                str(project.parent): servers(l="repo", r="repo"),
                str(project.parents[1]): servers(no="outside the repository"),
            },
        },
    )

    assert commands(load(project, home)) == {
        "u": ("user", "user"),
        "r": ("repo", "local"),
        "x": ("local", "local"),
        "l": ("local", "local"),
    }


def test_claude_config_dir_moves_the_file(project: Path, home: Path, tmp_path: Path) -> None:
    """CLAUDE_CONFIG_DIR names the directory of `.claude.json` (S042, S362)."""
    (tmp_path / "other").mkdir()
    write(tmp_path / "other" / ".claude.json", servers(o="other"))
    write(home / ".claude.json", servers(u="user"))

    loaded = load(project, home, environ={"CLAUDE_CONFIG_DIR": str(tmp_path / "other")})

    assert list(commands(loaded)) == ["o"]


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


async def serve(link: object) -> None:
    """A stand-in for an in-process server."""


def test_mapping_of_a_program() -> None:
    """A mapping holds entries as in a file, specs, and in-process servers, in its own order (S016, S087)."""
    given = ServerSpec(name="other", target=StdioTarget("y"))
    loaded = specs_from_mapping(
        {
            "mcpServers": {
                "calc": InProcessTarget(serve),
                "a": {"command": "x", "args": ("b", 1), "cwd": Path("/w"), "env": {"T": "${T}"}},
                "s": given,
                "r": {"type": "http", "url": "https://h"},
            }
        },
        {"T": "t"},
    )

    assert loaded.problems == ()
    assert [(spec.name, spec.target) for spec in loaded.specs] == [
        ("calc", InProcessTarget(serve)),
        ("a", StdioTarget("x", ("b", "1"), {"T": "t"}, "/w")),
        ("s", StdioTarget("y")),
        ("r", RemoteTarget("https://h")),
    ]
    assert loaded.specs[2] == evolve(given, name="s")


@pytest.mark.parametrize(
    "mapping", [{"servers": {"a": {"command": "x"}}}, {"mcpServers": [1]}, {"a": {"command": "x"}}]
)
def test_mapping_without_our_table(mapping: dict[str, object]) -> None:
    """A mapping of another shape is a problem, not an empty fleet (S001)."""
    loaded = specs_from_mapping(mapping, {})

    assert (loaded.specs, len(loaded.problems)) == ((), 1)


def test_mapping_with_an_object_of_no_json_kind() -> None:
    """An entry that holds something else is told with its key; the others run."""
    loaded = specs_from_mapping({"mcpServers": {"a": {"command": object()}, "b": object(), "c": {"command": "x"}}}, {})

    assert [spec.name for spec in loaded.specs] == ["c"]
    assert [problem.server for problem in loaded.problems] == ["a", "b"]


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


# ── the administrator, plugins, connectors ───────────────────────────────────────────────────────────────────────────
@pytest.fixture
def managed(home: Path) -> Path:
    path = home / "managed"
    path.mkdir()
    return path


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


@pytest.mark.parametrize("is_file", [True, False])
def test_settings_of_the_command_line_are_the_users_own(
    project: Path, home: Path, tmp_path: Path, is_file: bool
) -> None:
    """S024, S063: their yes counts without trust, their deny list adds to the others."""
    write(project / ".mcp.json", servers(a="a", b="b"))
    write(home / ".claude.json", servers(u="u"))
    says = {"enabledMcpjsonServers": ["a"], "deniedMcpServers": [{"serverName": "u"}]}
    given = write(tmp_path / "s.json", says) if is_file else json.dumps(says)

    loaded = load(project, home, approve_project=False, settings=given)

    assert {spec.name: spec.is_enabled or spec.disabled_reason for spec in loaded.specs} == {
        "a": True,
        "b": "pending-approval",
        "u": "policy",
    }
    assert (str(given) in loaded.files) is is_file


@pytest.mark.parametrize(
    ("given", "file"), [("absent.json", "absent.json"), ("{", "<--settings>"), ("{]}", "<--settings>")]
)
def test_settings_that_cannot_be_used_are_a_problem(project: Path, home: Path, given: str, file: str) -> None:
    """What was named and is not there, or is no JSON, is told."""
    [problem] = load(project, home, settings=given).problems

    assert problem.file is not None
    assert problem.file.endswith(file)


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


def test_settings_of_a_repository_cannot_approve(project: Path, home: Path) -> None:
    """A repository's settings approve nothing until the folder is trusted; the user's do (S023, S024, fault 109)."""
    write(project / ".mcp.json", servers(a="x", b="x", c="x"))
    for path in (project / ".claude", home / ".claude"):
        path.mkdir()
    write(project / ".claude" / "settings.json", {"enableAllProjectMcpServers": True, "disabledMcpjsonServers": ["c"]})
    write(project / ".claude" / "settings.local.json", {"enabledMcpjsonServers": ["a"]})
    write(home / ".claude" / "settings.json", {"enabledMcpjsonServers": ["b", "c"]})

    def states() -> dict[str, str]:
        loaded = load(project, home, approve_project=False)
        return {spec.name: "on" if spec.is_enabled else spec.disabled_reason for spec in loaded.specs}

    assert states() == {"a": "pending-approval", "b": "on", "c": "rejected"}

    write(home / ".claude.json", {"projects": {str(project.parent): {"hasTrustDialogAccepted": True}}})
    assert states() == {"a": "on", "b": "on", "c": "rejected"}


def test_choices_of_the_user_for_a_project(project: Path, home: Path) -> None:
    """`~/.claude.json` holds approvals and switches of this project (S023, S037)."""
    write(project / ".mcp.json", servers(a="x", b="x", c="x"))
    lists = {"enabledMcpjsonServers": ["a", "c"], "disabledMcpjsonServers": ["b"], "disabledMcpServers": ["c", "u"]}
    write(home / ".claude.json", {**servers(u="user"), "projects": {str(project): lists}})

    loaded = load(project, home, approve_project=False)

    assert {spec.name: "on" if spec.is_enabled else spec.disabled_reason for spec in loaded.specs} == {
        "u": "user",
        "a": "on",
        "b": "rejected",
        "c": "user",
    }


def test_plugins_bring_servers(project: Path, home: Path, tmp_path: Path) -> None:
    """A plugin's servers carry its name, know its root, and stand below the user's (S021, S031, S032)."""
    root = tmp_path / "plugin"
    (root / ".claude-plugin").mkdir(parents=True)
    write(
        root / ".mcp.json", {"mcpServers": {"db": {"command": "${CLAUDE_PLUGIN_ROOT}/run"}, "same": {"command": "x"}}}
    )
    write(root / "more.json", servers(extra="e"))
    write(tmp_path / "outside.json", servers(outside="o"))
    manifest = {"name": "p", "mcpServers": ["more.json", "../outside.json"]}
    write(root / ".claude-plugin" / "plugin.json", manifest)
    write(home / ".claude.json", servers(mine="x"))

    loaded = load(project, home, plugins={"p": root})

    assert commands(loaded) == {
        "plugin:p:db": (f"{root}/run", "plugin"),
        "plugin:p:extra": ("e", "plugin"),
        "mine": ("x", "user"),
    }
    assert [(lost.name, lost.winner, lost.by) for lost in loaded.shadowed] == [("plugin:p:same", "mine", "endpoint")]


def test_a_plugin_refers_to_its_data_and_to_what_its_user_chose(project: Path, home: Path, tmp_path: Path) -> None:
    """S031: in commands, addresses and headers; its helper is a shell's text and is told by variables instead."""
    (tmp_path / "plugin").mkdir()
    local = {"command": "run", "args": ["${CLAUDE_PLUGIN_DATA}"], "env": {"K": "${user_config.api-key}"}}
    remote = {
        "type": "http",
        "url": "https://h/${user_config.team}",
        "headersHelper": "echo ${user_config.team} ${CLAUDE_PLUGIN_DATA}",
    }
    odd = {"command": "${user_config.no}"}
    write(tmp_path / "plugin" / ".mcp.json", {"mcpServers": {"l": local, "r": remote, "o": odd}})
    plugin = Plugin(tmp_path / "plugin", user_config={"api-key": "s3cret", "team": "red"})
    given = {"a/b": plugin, "c": Plugin(tmp_path / "plugin", data=tmp_path / "kept")}

    loaded = load(project, home, plugins=given)
    spec = {spec.name: spec for spec in loaded.specs}

    assert spec["plugin:a/b:l"].target.args == (str(home / ".local/state/mcp-actors/plugins/a-b"),)
    assert spec["plugin:a/b:l"].target.environment == {"K": "s3cret"}
    assert spec["plugin:c:l"].target.args == (str(tmp_path / "kept"),)
    remote_target = spec["plugin:a/b:r"].target
    assert remote_target.url == "https://h/red"
    assert remote_target.headers_helper == remote["headersHelper"]
    assert remote_target.plugin_data == spec["plugin:a/b:l"].target.args[0]
    assert spec["plugin:a/b:o"].target.command == "${user_config.no}"
    assert "s3cret" not in repr(plugin) + repr(loaded)


def connector(name: str, url: str) -> SourceReading:
    spec = ServerSpec(name=name, target=RemoteTarget(url), scope=Scope.CLAUDEAI, source="connectors")
    return SourceReading(Scope.CLAUDEAI, "connectors", specs=(spec,))


def test_late_connectors_join(project: Path, home: Path) -> None:
    """A source that arrives late is decided with all the others (S015, S018, S022)."""
    write(home / ".claude.json", {"mcpServers": {"u": {"type": "http", "url": "https://h/mcp"}}})
    loaded = load(project, home)

    other = with_readings(loaded, [connector("Other", "https://other/mcp")])
    same = with_readings(loaded, [connector("Same", "https://h/mcp")])

    assert [spec.name for spec in other.specs] == ["u", "Other"]
    assert [spec.name for spec in same.specs] == ["u"]
    assert [spec.name for spec in with_readings(loaded, [connector("S", "https://h/mcp")], {"u"}).specs] == ["u", "S"]


@pytest.mark.parametrize(("is_allowed", "expected"), [(False, []), (True, ["C"])])
def test_connectors_beside_a_managed_file(
    project: Path, home: Path, managed: Path, is_allowed: bool, expected: list[str]
) -> None:
    """Connectors stand beside an exclusive file only when the administrator says so (S056)."""
    write(managed / "managed-mcp.json", {"mcpServers": {}})
    write(managed / "managed-settings.json", {"allowAllClaudeAiMcps": is_allowed})

    loaded = with_readings(load(project, home), [connector("C", "https://h")])

    assert ([spec.name for spec in loaded.specs], loaded.is_exclusive) == (expected, True)


def test_policy_holds_for_what_a_program_adds(project: Path, home: Path, managed: Path) -> None:
    """The choices of the machine can be read alone and hold for a program's mapping (S048, fault 29)."""
    write(managed / "managed-settings.json", {"deniedMcpServers": [{"serverUrl": "https://*.example.com/*"}]})
    places = Places.of({}, cwd=project, home=home, managed_dir=managed, stop_at=project)

    choices = load_choices({}, places=places)
    loaded = specs_from_mapping({"mcpServers": {"a": {"url": "https://h.example.com/x"}}}, {}, choices=choices)

    assert [(spec.is_enabled, spec.disabled_reason) for spec in loaded.specs] == [(False, "policy")]


# ── what we remember ─────────────────────────────────────────────────────────────────────────────────────────────────


def memory(home: Path) -> Path:
    file = home / "state" / CHOICES_FILE
    file.parent.mkdir(exist_ok=True)
    return file


def remembered(project: Path, home: Path, text: str) -> LoadedConfig:
    memory(home).write_text(text)
    environ = {"MCP_ACTORS_STATE_DIR": str(home / "state")}
    return load(project, home, environ=environ, approve_project=False)


def test_what_was_approved_before_runs(project: Path, home: Path) -> None:
    """An approval that is kept in our own directory counts for the definition that it was given to (S023)."""
    write(project / ".mcp.json", servers(a="a", b="b"))
    [a, _] = [spec for spec in load(project, home, approve_project=False).specs if spec.scope is Scope.PROJECT]

    loaded = remembered(project, home, remember(None, a, "f"))

    assert [(spec.name, spec.is_enabled) for spec in loaded.specs] == [("a", True), ("b", False)]


@pytest.mark.parametrize(("is_on", "overrides"), [(False, False), (True, True)])
def test_switches_have_the_last_word_in_their_project(project: Path, home: Path, is_on: bool, overrides: bool) -> None:
    """A server is on or off in this project as its user switched it, whatever its entry says (S037)."""
    write(home / ".claude.json", {"mcpServers": {"s": {"command": "x", "disabled": is_on}}})
    top = str(project.parent)

    here = remembered(project, home, switch(None, top, "s", "f", is_on=is_on, overrides=overrides))
    elsewhere = remembered(project, home, switch(None, "/other", "s", "f", is_on=is_on, overrides=overrides))

    assert [spec.is_enabled for spec in (*here.specs, *elsewhere.specs)] == [is_on, not is_on]


def test_a_switch_is_no_approval_and_no_permission(project: Path, home: Path) -> None:
    """Switched on is neither approved nor allowed."""
    write(project / ".mcp.json", servers(p="x"))
    write(home / ".claude.json", servers(u="y"))
    (home / ".claude").mkdir()
    write(home / ".claude" / "settings.json", {"deniedMcpServers": [{"serverName": "u"}]})
    text = None
    for name in ("p", "u"):
        text = switch(text, str(project.parent), name, "f", is_on=True, overrides=True)

    loaded = remembered(project, home, text or "")

    assert {spec.name: spec.disabled_reason for spec in loaded.specs} == {"p": "pending-approval", "u": "policy"}
    assert not any(spec.is_enabled for spec in loaded.specs)


@pytest.mark.parametrize("text", ["", "{", "[]", '{"approved": true}'])
def test_a_memory_that_cannot_be_read_approves_nothing(project: Path, home: Path, text: str) -> None:
    """It is told where it is broken, and never taken for a yes."""
    write(project / ".mcp.json", servers(p="x"))

    loaded = remembered(project, home, text)

    assert [spec.disabled_reason for spec in loaded.specs] == ["pending-approval"]
    assert [problem.file for problem in loaded.problems] == ([str(memory(home))] if text in ("", "{") else [])
