"""Owns the directives that draw the code's own tables into the documentation, so that neither can lie about the other.

What this is not: prose. Each directive reads the object that the code uses.
"""

from __future__ import annotations

import inspect
import os
import re
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from docutils import nodes
from docutils.parsers.rst import Directive
from docutils.statemachine import StringList

if TYPE_CHECKING:
    import enum
    from collections.abc import Iterable, Sequence

    from sphinx.application import Sphinx

PACKAGE = Path(__file__).resolve().parent.parent.parent / "mcp_actors"


def comments(cls: type) -> dict[str, str]:
    """Maps attribute of a class -> the comment on its line, or the comment lines above it."""
    found: dict[str, str] = {}
    above: list[str] = []
    for line in inspect.getsource(cls).splitlines():
        text = line.strip()
        if text.startswith("#"):
            above.append(text.lstrip("# "))
            continue
        match = re.match(r"(\w+)\s*(?::[^=]+)?=\s*[^#]+(?:#\s*(.*))?$", text)
        if match:
            found[match[1]] = match[2] or " ".join(above)
        # Neighbours share the comment above the first of them.
        if not match or not text:
            above = []
    return found


def enum_comments(cls: type[enum.Enum]) -> Iterable[tuple[str, str]]:
    """Value and comment of each member, in order."""
    said = comments(cls)
    return [(str(member.value), said.get(member.name, "")) for member in cls]


class TableDirective(Directive):
    """A directive that draws rows."""

    head: ClassVar[Sequence[str]] = ()

    def rows(self) -> Iterable[Sequence[str]]:
        raise NotImplementedError

    def run(self) -> list[nodes.Node]:
        lines = [".. list-table::", "   :header-rows: 1", ""]
        for row in (self.head, *self.rows()):
            for number, cell in enumerate(row):
                lines.append(f"   {'* -' if number == 0 else '  -'} {cell}")
        holder = nodes.container()
        self.state.nested_parse(StringList([*lines, ""], source="house"), self.content_offset, holder)
        return holder.children


class Rooms(TableDirective):
    head = ("room", "law", "question")

    def rows(self) -> Iterable[Sequence[str]]:
        for init in sorted(PACKAGE.glob("*/__init__.py")):
            match = re.match(r'"""\[(\w+)\] +(.*?)"""$', init.read_text("utf-8").splitlines()[0])
            assert match is not None
            yield f"``{init.parent.name}/``", match[1], match[2]


class RootModules(TableDirective):
    head = ("module", "owns")

    def rows(self) -> Iterable[Sequence[str]]:
        floors = [name for floor in layers() for name in floor]
        paths = [path for path in PACKAGE.glob("*.py") if path.stem in floors]
        for path in sorted(paths, key=lambda path: -floors.index(path.stem)):
            first = path.read_text("utf-8").splitlines()[0]
            yield f"``{path.name}``", first.removeprefix('"""Owns ').rstrip('".')


def layers() -> list[list[str]]:
    """The floors of the import contract, top first: names of rooms and of modules beside them."""
    contracts = tomllib.loads((PACKAGE.parent / "pyproject.toml").read_text("utf-8"))["tool"]["importlinter"]
    [arrow] = [contract for contract in contracts["contracts"] if contract["type"] == "layers"]
    return [[name.removeprefix("mcp_actors.") for name in floor.split(" | ")] for floor in arrow["layers"]]


class Arrow(Directive):
    """The floors, each under the one that may import it."""

    def run(self) -> list[nodes.Node]:
        lines = []
        for depth, floor in enumerate(layers()):
            shown = [f"{name}.py" if (PACKAGE / f"{name}.py").is_file() else name for name in floor]
            lines.append(("    " * (depth - 1) + " -> " if depth else "") + " · ".join(shown))
        return [literal("\n".join(lines))]


class Transitions(TableDirective):
    head = ("from", "to")

    def rows(self) -> Iterable[Sequence[str]]:
        from mcp_actors.actors.lifecycle import TRANSITIONS, ServerState

        for state in ServerState:
            yield f"``{state}``", ", ".join(f"``{after}``" for after in ServerState if after in TRANSITIONS[state])


class Phases(TableDirective):
    head = ("phase", "meaning")

    def rows(self) -> Iterable[Sequence[str]]:
        from mcp_actors.actors.lifecycle import Phase

        for value, text in enum_comments(Phase):
            yield f"``{value}``", text


class ExitKinds(TableDirective):
    head = ("how a child ended", "meaning")

    def rows(self) -> Iterable[Sequence[str]]:
        from mcp_actors.actors.restarts import ExitKind

        for value, text in enum_comments(ExitKind):
            yield f"``{value}``", text


class StopLadder(TableDirective):
    head = ("rung", "what is done", "waits at most")

    def rows(self) -> Iterable[Sequence[str]]:
        from mcp_actors.config.settings import Settings
        from mcp_actors.transports.ladder import rungs

        for rung in rungs(Settings()):
            action = f"{rung.signal.name} to the whole process group"
            action += ", and SIGCONT, for who was stopped" if rung.wakes else ""
            yield (
                rung.name,
                ("standard input is closed, and " if rung.closes_input else "") + action,
                f"{rung.wait:g} s",
            )


class Revisions(TableDirective):
    head = ("revision", "era")

    def rows(self) -> Iterable[Sequence[str]]:
        from mcp_actors.protocol.revisions import REVISIONS

        for revision in REVISIONS.values():
            yield revision.name, str(revision.era)


class SettingsTable(TableDirective):
    head = ("field", "default", "meaning")

    def rows(self) -> Iterable[Sequence[str]]:
        import attrs

        from mcp_actors.config.settings import Settings

        said = comments(Settings)
        for field in attrs.fields(Settings):
            default = f"{type(field.default).__name__}()" if attrs.has(type(field.default)) else field.default
            yield f"``{field.name}``", f"``{default}``", said.get(field.name, "")


class RestartTable(SettingsTable):
    def rows(self) -> Iterable[Sequence[str]]:
        import attrs

        from mcp_actors.config.specs import RestartPolicy

        said = comments(RestartPolicy)
        for field in attrs.fields(RestartPolicy):
            yield f"``{field.name}``", f"``{field.default}``", said.get(field.name, "")


class Formats(TableDirective):
    head = ("format", "servers stand under", "files below the home directory", "files of a project")

    def rows(self) -> Iterable[Sequence[str]]:
        from mcp_actors.config.formats import FORMATS

        def quoted(texts: Iterable[str]) -> str:
            return ", ".join(f"``{text}``" for text in texts)

        for row in FORMATS.values():
            roots = quoted(".".join(map(str, root)) for root in row.roots)
            yield f"``{row.name}``", roots, quoted(row.user_paths), quoted(row.project_paths)


def literal(text: str) -> nodes.literal_block:
    block = nodes.literal_block(text, text)
    block["language"] = "none"
    return block


class ErrorTree(Directive):
    """The tree in the docstring of `errors`."""

    def run(self) -> list[nodes.Node]:
        from mcp_actors import errors

        tree = (errors.__doc__ or "").split("::\n\n")[1].split("\n\nWhat this is not")[0]
        return [literal(inspect.cleandoc(tree))]


class CommandHelp(Directive):
    """What ``mcp-actors VERB --help`` prints; the options of every verb stand with the program's own."""

    optional_arguments = 1

    def run(self) -> list[nodes.Node]:
        import contextlib
        import io

        from mcp_actors.cli.main import main

        os.environ["COLUMNS"] = "100"
        data = io.BytesIO()
        with io.TextIOWrapper(data) as text:
            with contextlib.redirect_stdout(text), contextlib.suppress(SystemExit):
                main([*self.arguments, "--help"])
            told = data.getvalue().decode().rstrip()
        if not told:
            raise self.error(f"mcp-actors {' '.join(self.arguments)} --help printed nothing")
        return [literal(told.partition("\n\noptions of every verb:")[0] if self.arguments else told)]


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the directives."""
    tables = {
        "rooms-table": Rooms,
        "transitions-table": Transitions,
        "phases-table": Phases,
        "exits-table": ExitKinds,
        "stop-ladder": StopLadder,
        "revisions-table": Revisions,
        "settings-table": SettingsTable,
        "restart-table": RestartTable,
        "formats-table": Formats,
        "root-modules": RootModules,
        "arrow": Arrow,
        "error-tree": ErrorTree,
        "command-help": CommandHelp,
    }
    for name, directive in tables.items():
        app.add_directive(name, directive)
    return {"parallel_read_safe": True}
