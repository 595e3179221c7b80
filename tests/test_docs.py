"""The documentation: every example runs and prints what the page says."""

from __future__ import annotations

import csv
import re
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).resolve().parent.parent
BLOCK = re.compile(
    r"^\.\. code-block:: (?P<language>\w+)\n(?P<options>(?:   :.*\n)*)\n(?P<body>(?:   .*\n|\n)+)", re.MULTILINE
)


class Example(NamedTuple):
    """A program of a page, and what it prints; None: anything."""

    place: str
    program: str
    prints: str | None


def examples_of_page(path: Path) -> list[Example]:
    """Python blocks of a page; a text block that follows one is its output."""
    found: list[Example] = []
    for number, block in enumerate(BLOCK.finditer(path.read_text("utf-8")), 1):
        body = textwrap.dedent(block["body"]).strip() + "\n"
        name = re.search(r":name: (\S+)", block["options"])
        if block["language"] == "python":
            found.append(Example(f"{path.name}:{name[1] if name else number}", body, None))
        elif block["language"] == "text" and found and found[-1].prints is None:
            found[-1] = found[-1]._replace(prints=body)
    return found


def examples_of_readme() -> list[Example]:
    text = (ROOT / "README.md").read_text("utf-8")
    programs = re.findall(r"^```python\n(.+?)^```$", text, re.MULTILINE | re.DOTALL)
    return [Example("README.md", program, None) for program in programs]


EXAMPLES = [
    *examples_of_readme(),
    *(example for page in sorted((ROOT / "docs").rglob("*.rst")) for example in examples_of_page(page)),
]


def test_the_pages_have_examples() -> None:
    """The readme and the tutorial have examples to run."""
    places = [example.place for example in EXAMPLES]

    assert places.count("README.md") == 1
    assert sum(place.startswith("tutorial.rst") for place in places) >= 5


@pytest.mark.slow
@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.place)
def test_example_runs(example: Example, tmp_path: Path) -> None:
    """The program runs as it stands on the page, prints what the page says, and is silent on standard error."""
    program = tmp_path / "program.py"
    program.write_text(example.program, "utf-8")

    ran = subprocess.run(
        [sys.executable, "-W", "error", str(program)], cwd=ROOT, capture_output=True, text=True, timeout=60, check=False
    )

    assert ran.stderr == ""
    assert ran.returncode == 0
    if example.prints is not None:
        assert ran.stdout == example.prints


def test_the_readme_example_is_twenty_lines() -> None:
    """The embedding example stays a glance."""
    [example] = examples_of_readme()

    assert sum(bool(line.strip()) for line in example.program.splitlines()) <= 20


@pytest.mark.parametrize("section", ["Run it", "Test it"])
def test_the_readme_commands_are_single_lines(section: str) -> None:
    """Each of the two sections has one fenced block with exactly one line."""
    text = (ROOT / "README.md").read_text("utf-8")
    [body] = re.findall(rf"^## {section}\n(.*?)(?=^## )", text, re.MULTILINE | re.DOTALL)

    blocks = re.findall(r"^```\w*\n(.*?)^```$", body, re.MULTILINE | re.DOTALL)

    assert len(blocks) == 1
    assert len(blocks[0].splitlines()) == 1


def test_the_readme_map_is_the_houses() -> None:
    """The map of the readme says of every room, once, what the room says of itself."""
    text = (ROOT / "README.md").read_text("utf-8")

    rooms = {
        init.parent.name: re.match(r'"""(\[\w+\]) +(.*)"""', init.read_text("utf-8").splitlines()[0])
        for init in (ROOT / "mcp_actors").glob("*/__init__.py")
    }

    assert sorted(name for name, line in rooms.items() if line is None) == []
    assert [name for name, line in rooms.items() if line and f"| `{name}/` {line[1]} | {line[2]} |" not in text] == []
    assert sorted(re.findall(r"^\| `(\w+)/` ", text, re.MULTILINE)) == sorted(rooms)


def test_links_between_files_are_not_broken() -> None:
    """Every relative link of the readmes leads to a file."""
    for page in (ROOT / "README.md", ROOT / "benchmarks" / "README.md"):
        for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text("utf-8")):
            assert (page.parent / target).exists(), f"{page.name}: {target}"


def test_the_list_of_what_goes_wrong_has_its_questions() -> None:
    """No connect, no tools, clashing names, variables, the two timeouts; README leads there (S363)."""
    page = (ROOT / "docs" / "troubleshooting.rst").read_text("utf-8")

    words = ("does not connect", "MCP_DEBUG", "no tools", "underscore", "${VAR}", "MCP_TIMEOUT", "MCP_TOOL_TIMEOUT")
    assert [word for word in words if word not in page] == []
    assert "docs/troubleshooting.rst" in (ROOT / "README.md").read_text("utf-8")


RULE_NAMES = re.compile(r"\b(?:S\d{3}|[A-H]\d{2}|faults? \d+|spec_client \d+(?:\.\d+)?)\b")


@pytest.mark.parametrize("tree", ["mcp_actors", "tests"])
def test_every_rule_that_is_cited_can_be_looked_up(tree: str) -> None:
    """Each name of a rule in the sources stands, with what it says, on the page of the rules."""
    known: set[str] = set()
    for table in (ROOT / "docs" / "reference").glob("rules_*.csv"):
        with table.open(encoding="utf-8", newline="") as lines:
            known |= {rule for rule, text in csv.reader(lines) if text}

    cited = {
        name.replace("faults", "fault"): path.relative_to(ROOT)
        for path in sorted((ROOT / tree).rglob("*.py"))
        for name in RULE_NAMES.findall(path.read_text("utf-8"))
    }

    elsewhere = [
        path
        for path in sorted((ROOT / tree).rglob("*.py"))
        if re.search(r"\b(?:field (?:pain )?|[Ii]ssue )\d", path.read_text("utf-8"))
    ]

    assert elsewhere == [], "a reader cannot look that up"
    assert len(cited) > 300
    assert {name: path for name, path in cited.items() if name not in known} == {}
