"""The grammar of the command line, as tables."""

from __future__ import annotations

import subprocess
import sys

import pytest

from mcp_actors.cli.exits import UsageError
from mcp_actors.cli.options import VERBS, GlobalOptions, parse


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("list", GlobalOptions()),
        ("--config a list", GlobalOptions(configs=("a",))),
        ("list --config a", GlobalOptions(configs=("a",))),
        ("--config a list --config b", GlobalOptions(configs=("a", "b"))),
        ("--config=a --config=b list --config=c", GlobalOptions(configs=("a", "b", "c"))),
        ("--strict-config list", GlobalOptions(is_strict=True)),
        ("list --strict-config", GlobalOptions(is_strict=True)),
        ("--debug list", GlobalOptions(is_debug=True)),
        ("list --debug --json", GlobalOptions(is_debug=True)),
        ("list --debug-file f", GlobalOptions(is_debug=True, debug_file="f")),
        ("--debug-file f list --debug-file g", GlobalOptions(is_debug=True, debug_file="g")),
        ("--approve-project list", GlobalOptions(approves_project=True)),
        ("list --json --approve-project", GlobalOptions(approves_project=True)),
        ("--settings s list", GlobalOptions(settings="s")),
        ("--settings s list --settings t", GlobalOptions(settings="t")),
        ("--ide list", GlobalOptions(has_ide=True)),
        ("list --ide", GlobalOptions(has_ide=True)),
        ("--config list list", GlobalOptions(configs=("list",))),
    ],
)
def test_global_options_stand_anywhere(line, expected):
    """Global options are taken before and after the verb, in order."""
    words = parse(line.split(), environ={})

    assert words.verb == "list"
    assert words.shared == expected


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        ({"MCP_DEBUG": "1"}, GlobalOptions(is_debug=True)),
        ({"MCP_DEBUG": "TRUE"}, GlobalOptions(is_debug=True)),
        ({"MCP_DEBUG": " on "}, GlobalOptions(is_debug=True)),
        ({"MCP_DEBUG": "0"}, GlobalOptions()),
        ({"MCP_DEBUG": ""}, GlobalOptions()),
        ({"MCP_ACTORS_APPROVE_PROJECT": "1"}, GlobalOptions(approves_project=True)),
        ({"MCP_ACTORS_APPROVE_PROJECT": "no"}, GlobalOptions()),
    ],
)
def test_environment_switches(environ, expected):
    """MCP_DEBUG and MCP_ACTORS_APPROVE_PROJECT say the same as their flags (S349)."""
    assert parse(["list"], environ=environ).shared == expected


@pytest.mark.parametrize(
    "line",
    [
        "call s.t a=1 b:=2 --timeout 3 --output json",
        "call --timeout 3 --output json s.t a=1 b:=2",
        "call s.t --timeout 3 a=1 --output json b:=2",
        "call --timeout=3 s.t a=1 --output=json b:=2",
        "--debug call s.t a=1 b:=2 --output json --timeout 3",
    ],
)
def test_call_options_mix_with_names(line):
    """Options and names mix in any order."""
    own = parse(line.split(), environ={}).own

    assert (own.tool, own.words, own.timeout, own.output) == ("s.t", ["a=1", "b:=2"], 3.0, "json")


def test_call_takes_words_that_look_like_options():
    """Behind two dashes everything is a word."""
    own = parse(["call", "s.t", "--", "--a=1"], environ={}).own

    assert own.words == ["--a=1"]


@pytest.mark.parametrize(
    "line",
    [
        "",
        "--debug",
        "lst",
        "--frobnicate list",
        "list --frobnicate",
        "list a b",
        "list --js",
        "--conf x list",
        "--config",
        "call",
        "call s.t --timeout x",
        "call s.t --timeout 0",
        "call s.t --timeout -1",
        "call s.t --timeout nan",
        "call s.t --timeout inf",
        "call s.t --output xml",
        "get",
        "get a b",
        "tools a b",
        "storm --transport pigeon",
        "storm --servers 0",
        "storm --servers x",
        "run now",
        "demo now",
    ],
)
def test_usage_errors(line):
    """What cannot be understood is a usage error; options are never abbreviated."""
    with pytest.raises(UsageError):
        parse(line.split(), environ={})


def test_usage_is_the_verbs_own():
    """An error shows what the verb takes, not what every verb takes."""
    with pytest.raises(UsageError) as error:
        parse(["get"], environ={})

    assert str(error.value).splitlines()[1:] == ["usage: mcp-actors get [-h] [--json] NAME"]


def test_unknown_verb_names_the_nearest():
    """A mistyped verb is answered with the one that was meant."""
    with pytest.raises(UsageError, match="did you mean tools"):
        parse(["tool"], environ={})


@pytest.mark.parametrize("verb", [None, *VERBS])
def test_help(verb, capsys):
    """Each verb has a help text, and the top one names every verb."""
    with pytest.raises(SystemExit) as exit_:
        parse([*([verb] if verb else []), "--help"], environ={})

    shown = capsys.readouterr().out
    assert exit_.value.code == 0
    assert "--strict-config" in shown
    assert verb is not None or all(name in shown for name in VERBS)


HEAVY = {"trio", "attr", "attrs", "httpx", "msgspec", "rich", "logging", "mcp_actors.runtime", "mcp_actors.errors"}


def test_help_imports_nothing_heavy():
    """Help is printed without trio, attrs or any room beside this door, for every verb."""
    code = (
        "import sys\nfrom mcp_actors.cli.main import main\n"
        f"for line in {[[], *([verb] for verb in VERBS)]!r}:\n"
        "    try:\n        main([*line, '--help'])\n    except SystemExit:\n        pass\n"
        f"    if heavy := sorted({HEAVY!r} & set(sys.modules)): sys.exit(f'{{line}} imports {{heavy}}')"
    )

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)

    assert (done.returncode, done.stderr) == (0, "")
