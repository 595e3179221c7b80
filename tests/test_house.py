"""The house rules: the arrow, the tags, the exports, the documentation, the size of files."""

from __future__ import annotations

import ast
import inspect
import re
import shutil
import subprocess
import sys
import tomllib
from importlib import import_module
from pathlib import Path

import pytest

from mcp_actors import errors
from mcp_actors.cli.options import VERBS

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "mcp_actors"
DOCS = ROOT / "docs"
TAGS = {"pure", "wire", "live", "door", "kit"}
MAX_LINES = 400

FILES = sorted(PACKAGE.rglob("*.py"))
ROOMS = sorted(path.parent for path in PACKAGE.glob("*/__init__.py"))
MODULES = [path for path in FILES if path.name not in {"__init__.py", "__main__.py"}]


def relative(path: Path) -> str:
    return str(path.relative_to(ROOT))


def module_name(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text("utf-8"))


def tag_of(room: Path) -> str | None:
    match = re.match(r'"""\[(\w+)\] +\S.*\."""$', (room / "__init__.py").read_text("utf-8").splitlines()[0])
    return match and match[1]


def contracts() -> list[dict[str, object]]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    return project["tool"]["importlinter"]["contracts"]


def documentation() -> str:
    return "\n".join(path.read_text("utf-8") for path in sorted(DOCS.rglob("*.rst")))


# ── rooms, tags, arrow ───────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("room", ROOMS, ids=relative)
def test_each_room_opens_with_its_tag(room: Path) -> None:
    """The first line of every room says which law holds inside and which question it answers."""
    assert tag_of(room) in TAGS


def test_the_pure_tag_is_what_the_contract_says() -> None:
    """The rooms tagged pure are exactly those that the import contract keeps pure, so the map cannot lie."""
    [contract] = [contract for contract in contracts() if str(contract["name"]).startswith("Pure rooms")]
    sources = contract["source_modules"]
    assert isinstance(sources, list)

    tagged = {f"mcp_actors.{room.name}" for room in ROOMS if tag_of(room) == "pure"}

    assert tagged == {source for source in sources if (ROOT / Path(*source.split("."))).is_dir()}


def test_every_room_and_file_of_the_package_has_a_floor() -> None:
    """No room stands outside the arrow."""
    [contract] = [contract for contract in contracts() if contract["type"] == "layers"]
    layers = contract["layers"]
    assert isinstance(layers, list)
    floors = {name.strip() for layer in layers for name in layer.strip("()").split("|")}

    inside = {f"mcp_actors.{path.stem}" for path in PACKAGE.glob("*.py") if not path.stem.startswith("__")}
    inside |= {f"mcp_actors.{room.name}" for room in ROOMS}

    assert inside == floors


def check_imports(root: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(ROOT / ".ci" / "check_imports.py")]
    return subprocess.run(command, cwd=root, capture_output=True, text=True, check=False, timeout=60)


def test_the_arrow_holds() -> None:
    """The import contracts are kept: configuration, connections and tools are layers (S045, S134)."""
    checked = check_imports(ROOT)

    assert checked.returncode == 0, checked.stdout + checked.stderr


@pytest.mark.parametrize(
    ("file", "line", "imports"),
    [
        ("config/planted.py", "import trio", "trio"),
        ("config/planted.py", "import os", "os"),
        ("tools/planted.py", "from time import monotonic", "time"),
        ("elicitation/planted.py", "import trio", "trio"),
        ("elicitation/planted.py", "from mcp_actors.tools.sanitise import clean_text", "mcp_actors.tools.sanitise"),
        ("protocol/planted.py", "from mcp_actors.transports.base import Sink", "mcp_actors.transports.base"),
        ("protocol/planted.py", "from mcp_actors.config.specs import Batch", "mcp_actors.config.specs"),
        ("transports/planted.py", "from mcp_actors.actors.lifecycle import Phase", "mcp_actors.actors.lifecycle"),
        ("transports/planted.py", "import httpx", "httpx"),
        ("actors/planted.py", "from mcp_actors.questions.asking import Asking", "mcp_actors.questions.asking"),
        ("actors/planted.py", "import asyncio", "asyncio"),
        ("actors/restarts.py", "import trio", "trio"),
        ("actors/planted.py", "from msgspec import json", "msgspec"),
        ("config/planted.py", "from cattrs import Converter", "cattrs"),
    ],
)
def test_a_planted_violation_is_found(tmp_path: Path, file: str, line: str, imports: str) -> None:
    """An import that breaks a law fails the contract, which names file and line."""
    shutil.copytree(PACKAGE, tmp_path / "mcp_actors", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    (tmp_path / "mcp_actors" / file).write_text(f'"""Planted."""\n\n{line}\n', "utf-8")

    checked = check_imports(tmp_path)

    assert checked.returncode == 1
    assert f"mcp_actors/{file}:3: imports {imports}" in checked.stdout.splitlines()


PURE_FILES = [path for room in ROOMS if tag_of(room) == "pure" for path in sorted(room.rglob("*.py"))]


@pytest.mark.parametrize("path", PURE_FILES, ids=relative)
def test_pure_rooms_read_no_files(path: Path) -> None:
    """A pure room opens nothing, awaits nothing and prints nothing."""
    for node in ast.walk(tree_of(path)):
        assert not isinstance(node, ast.AsyncFunctionDef | ast.Await), f"line {node.lineno}"
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            assert node.func.id not in {"open", "print", "input", "__import__"}, f"line {node.lineno}"


@pytest.mark.parametrize("path", MODULES, ids=relative)
def test_classes_are_made_by_values(path: Path) -> None:
    """Nobody takes attrs' own decorators, which compile at import what `values` compiles when it is used."""
    taken = [node for node in ast.walk(tree_of(path)) if isinstance(node, ast.ImportFrom) and node.module == "attrs"]

    if path.name != "values.py":
        assert [
            each.name for node in taken for each in node.names if each.name in {"define", "frozen", "mutable"}
        ] == []


# ── exports ──────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("path", MODULES, ids=relative)
def test_all_is_what_the_module_exports(path: Path) -> None:
    """`__all__` is complete, true and free of privates: every public class and function, and nothing absent."""
    module = import_module(module_name(path))
    public = {
        node.name
        for node in tree_of(path).body
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and not node.name.startswith("_")
    }

    exported = module.__all__

    assert public <= set(exported)
    assert [name for name in exported if name.startswith("_") or not hasattr(module, name)] == []
    assert len(set(exported)) == len(exported)


def test_the_front_door_opens_on_everything_it_names() -> None:
    """Every name of the package's `__all__` can be imported."""
    package = import_module("mcp_actors")

    assert [name for name in package.__all__ if not hasattr(package, name)] == []


# What methods of the front door give that is not meant to be written down: actors, and what doors look at.
INNER_TYPES = {"Connection", "Rule", "Snapshot"}


def types_given() -> dict[str, str]:
    """Maps each class of ours that a public method of the front door returns -> one such method."""
    package = import_module("mcp_actors")
    ours = {node.name for path in MODULES for node in tree_of(path).body if isinstance(node, ast.ClassDef)}
    found: dict[str, str] = {}
    for thing in (getattr(package, name) for name in package.__all__):
        members = vars(thing) if inspect.isclass(thing) else {}
        for key, value in members.items():
            if inspect.isfunction(value) and not key.startswith("_"):
                names = set(re.findall(r"\w+", str(value.__annotations__.get("return", ""))))
                found |= dict.fromkeys(names & ours, f"{thing.__name__}.{key}")
    return found


def test_what_the_front_door_gives_can_be_named() -> None:
    """A typed program can write down what every public method returns: its class stands in the package's `__all__`."""
    given = types_given()
    exported = set(import_module("mcp_actors").__all__)

    assert {"Listing", "ToolResult"} <= given.keys()
    assert {name: method for name, method in given.items() if name not in exported | INNER_TYPES} == {}
    assert given.keys() >= INNER_TYPES


# ── words ────────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("path", MODULES, ids=relative)
def test_each_module_says_what_it_owns(path: Path) -> None:
    """A module's docstring opens with what it owns and goes on with what it is not."""
    docstring = ast.get_docstring(tree_of(path)) or ""

    assert docstring.startswith("Owns ")
    assert "What this is not:" in docstring


@pytest.mark.parametrize("path", FILES, ids=relative)
def test_files_are_short_or_say_why(path: Path) -> None:
    """A file of more than 400 lines gives its reason in its docstring, as ``Long because ...``."""
    lines = path.read_text("utf-8").count("\n")

    assert lines <= MAX_LINES or "Long because" in (ast.get_docstring(tree_of(path)) or ""), f"{lines} lines"


def front_door_coroutines() -> dict[str, str]:
    """Maps name -> docstring of every async function, method and context manager that the front door leads to."""
    package = import_module("mcp_actors")
    found: dict[str, str] = {}
    for name in package.__all__:
        thing = getattr(package, name)
        members = {name: thing} if inspect.isfunction(thing) else {}
        if inspect.isclass(thing):
            members = {f"{name}.{key}": value for key, value in vars(thing).items() if not key.startswith("_")}
        for key, value in members.items():
            bare = inspect.unwrap(value) if callable(value) else value
            if inspect.iscoroutinefunction(bare) or inspect.isasyncgenfunction(bare):
                found[key] = bare.__doc__ or ""
    return found


def test_public_coroutines_say_what_cancelling_does() -> None:
    """Every async function that a user calls says what cancelling it does."""
    coroutines = front_door_coroutines()

    assert {"open_runtime", "Runtime.call_tool"} <= coroutines.keys()
    assert [name for name, doc in coroutines.items() if "Cancellation:" not in doc] == []


def test_every_error_is_drawn_and_documented() -> None:
    """Each exception stands in the tree of its module's docstring, has a docstring and is in the reference."""
    drawn = errors.__doc__ or ""
    reference = documentation()

    for name in errors.__all__:
        assert re.search(rf"\b{name}\b", drawn), name
        assert getattr(errors, name).__doc__, name
        assert re.search(rf"\b{name}\b", reference), name


def test_every_setting_is_documented() -> None:
    """Each environment variable that the package reads stands in the reference."""
    reference = documentation()
    names = {
        name
        for path in FILES
        for name in re.findall(r"""["'](MCP_[A-Z_]+|CLAUDE_[A-Z_]+)["']""", path.read_text("utf-8"))
    }

    assert names
    assert sorted(name for name in names if name not in reference) == []


def test_no_environment_and_no_headers_are_in_a_repr() -> None:
    """Conventions, Logging: what may hold secrets by its nature is in no repr that attrs makes."""
    shown = [
        f"{relative(path)}: {cls.name}.{ast.unparse(line.target)}"
        for path in FILES
        for cls in ast.walk(tree_of(path))
        if isinstance(cls, ast.ClassDef)
        and any(ast.unparse(each).startswith(("define", "frozen")) for each in cls.decorator_list)
        for line in cls.body
        if isinstance(line, ast.AnnAssign)
        and ast.unparse(line.target).lstrip("_") in {"environ", "environment", "headers"}
        and "Mapping" in ast.unparse(line.annotation)
        and "repr=" not in ast.unparse(line)
    ]

    assert shown == []


@pytest.mark.parametrize("verb", VERBS)
def test_every_command_is_documented(verb: str) -> None:
    """Each verb of the command line has its entry in the reference."""
    assert re.search(rf"^mcp-actors {verb}$", (DOCS / "reference" / "commands.rst").read_text("utf-8"), re.MULTILINE)


@pytest.mark.parametrize("path", sorted((ROOT / "tests").rglob("test_*.py")), ids=relative)
def test_every_test_states_one_behaviour(path: Path) -> None:
    """Each test has a docstring."""
    silent = [
        f"{node.name} (line {node.lineno})"
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and node.name.startswith("test_")
        and not ast.get_docstring(node)
    ]

    assert silent == []
