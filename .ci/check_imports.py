"""Checks the import contracts of pyproject.toml and prints each violation as file:line.

What this is not: the contracts; import-linter reads those from pyproject.toml in the current directory.
"""

from __future__ import annotations

import contextlib
import io
import re
import sys
from pathlib import Path

from importlinter.cli import lint_imports

# import-linter writes "- mcp_actors.a.b -> c (l.3)"; an indirect chain has its head on such a line too.
LINK = re.compile(r"(?P<importer>mcp_actors[\w.]*) -> (?P<imported>[\w.]+) \((?P<lines>l\.\d+(?:, l\.\d+)*)\)")


def violations(report: str) -> list[str]:
    """Give ``file:line: imports module`` for each link that the report names, in its order, each once."""
    found: dict[str, None] = {}
    for link in LINK.finditer(report):
        stem = Path(*link["importer"].split("."))
        file = stem / "__init__.py" if stem.is_dir() else stem.with_suffix(".py")
        for line in re.findall(r"\d+", link["lines"]):
            found[f"{file}:{line}: imports {link['imported']}"] = None
    return list(found)


def main() -> int:
    """Run the check; 0 when every contract is kept."""
    sys.path.insert(0, str(Path.cwd()))  # the package in this directory is meant, not an installed one
    text = io.StringIO()
    with contextlib.redirect_stdout(text):
        code = lint_imports(no_logo=True, no_cache=True)
    print(text.getvalue().strip())
    for violation in violations(text.getvalue()):
        print(violation)
    return code


if __name__ == "__main__":
    sys.exit(main())
