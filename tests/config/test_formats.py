"""Tests of `config.formats` and `config.dialects`: each program's realistic file loads to the expected specs."""

from __future__ import annotations

import pytest

from mcp_actors.config.dialects import input_variable
from mcp_actors.config.formats import FORMATS, NATIVE, format_of_path, parse_env_file
from mcp_actors.config.source_texts import read_source
from mcp_actors.config.sources import SourceReading, SourceText, Surroundings
from mcp_actors.config.specs import RemoteTarget, Scope, StdioTarget, TransportName

ENVIRON = {"API_KEY": "key", "MCP_INPUT_GITHUB_TOKEN": "asked", "REGION": "eu"}
SSE = TransportName.SSE


def read(name: str, text: str) -> SourceReading:
    def read_file(path: str, directory: str) -> bytes:
        if path == "secret.txt":
            return b"${API_KEY} from file\n"
        if path == f"{directory}/.env":
            return b"FROM_FILE=1\nBOTH=file\n"
        raise FileNotFoundError(path)

    around = Surroundings(ENVIRON, "/repo", "/home/u", read_file=read_file)
    return read_source(SourceText(text.encode(), "f", Scope.USER, format=FORMATS[name], directory="/repo"), around)


CASES = {
    "claude-code": (
        """{
          "mcpServers": {
            "fs": {"type": "stdio", "command": "npx", "args": ["-y", "server-fs", "${HOME}"], "env": {}},
            "api": {"type": "http", "url": "https://${REGION}.example.com/mcp",
                    "headers": {"Authorization": "Bearer ${API_KEY}"}}
          }
        }""",
        {
            "fs": StdioTarget("npx", ("-y", "server-fs", "/home/u")),
            "api": RemoteTarget("https://eu.example.com/mcp", headers={"Authorization": "Bearer key"}),
        },
    ),
    "claude-desktop": (
        """{
          "globalShortcut": "",
          "mcpServers": {
            "files": {"command": "npx", "args": ["-y", "server-files", "/Users/u/Desktop"]},
            "db": {"command": "uvx", "args": ["db-server"], "env": {"DSN": "postgres://localhost"}}
          }
        }""",
        {
            "files": StdioTarget("npx", ("-y", "server-files", "/Users/u/Desktop")),
            "db": StdioTarget("uvx", ("db-server",), {"DSN": "postgres://localhost"}),
        },
    ),
    "cursor": (
        """{
          "mcpServers": {
            "py": {"type": "stdio", "command": "python", "args": ["${workspaceFolder}/tools.py", "${pathSeparator}"],
                   "env": {"KEY": "${env:API_KEY}", "BOTH": "env"}, "envFile": "${workspaceFolder}/.env"},
            "home": {"command": "${userHome}/bin/x", "args": ["${workspaceFolderBasename}"]},
            "remote": {"url": "https://h/mcp", "headers": {"Authorization": "Bearer ${env:API_KEY}"}}
          }
        }""",
        {
            "py": StdioTarget("python", ("/repo/tools.py", "/"), {"FROM_FILE": "1", "BOTH": "env", "KEY": "key"}),
            "home": StdioTarget("/home/u/bin/x", ("repo",)),
            "remote": RemoteTarget("https://h/mcp", headers={"Authorization": "Bearer key"}, is_guess=True),
        },
    ),
    "vscode": (
        """{
          // asked for once, then kept by the editor
          "inputs": [
            {"type": "promptString", "id": "github-token", "description": "Token", "password": true},
            {"type": "pickString", "id": "region", "options": ["eu", "us"], "default": "us"},
          ],
          "servers": {
            "github": {"type": "http", "url": "https://api.example.com/${input:region}/mcp",
                       "headers": {"Authorization": "Bearer ${input:github-token}"}},
            "local": {"type": "stdio", "command": "node", "args": ["${workspaceFolder}/srv.js"],
                      "env": {"K": "${env:API_KEY}"}, "envFile": "${workspaceFolder}/.env"},
            "old": {"type": "sse", "url": "https://h/sse",},
          },
        }""",
        {
            "github": RemoteTarget("https://api.example.com/us/mcp", headers={"Authorization": "Bearer asked"}),
            "local": StdioTarget("node", ("/repo/srv.js",), {"FROM_FILE": "1", "BOTH": "file", "K": "key"}),
            "old": RemoteTarget("https://h/sse", SSE),
        },
    ),
    "gemini": (
        """{
          "theme": "dark",
          "mcpServers": {
            "py": {"command": "python", "args": ["-m", "srv"], "cwd": "./srv", "timeout": 15000, "trust": true,
                   "env": {"KEY": "$API_KEY", "B": "${API_KEY}", "PRICE": "$5 pa$word"}},
            "http": {"httpUrl": "https://h/mcp", "headers": {"Authorization": "Bearer $API_KEY"}},
            "sse": {"url": "https://h/sse"},
            "new": {"type": "http", "url": "https://h/new"}
          }
        }""",
        {
            "py": StdioTarget("python", ("-m", "srv"), {"KEY": "key", "B": "key", "PRICE": "$5 pa$word"}, "./srv"),
            "http": RemoteTarget("https://h/mcp", headers={"Authorization": "Bearer key"}),
            "sse": RemoteTarget("https://h/sse", SSE),
            "new": RemoteTarget("https://h/new"),
        },
    ),
    "codex": (
        """
        model = "o"
        [mcp_servers.docs]
        command = "npx"
        args = ["-y", "docs-server"]
        env = { MODE = "fast" }
        env_vars = ["API_KEY", "ABSENT"]
        startup_timeout_sec = 20
        tool_timeout_sec = 90.5

        [mcp_servers.figma]
        url = "https://mcp.example.com/mcp"
        bearer_token_env_var = "API_KEY"
        http_headers = { "X-Region" = "eu" }
        env_http_headers = { "X-Key" = "API_KEY" }
        enabled = false
        """,
        {
            "docs": StdioTarget("npx", ("-y", "docs-server"), {"MODE": "fast", "API_KEY": "key", "ABSENT": ""}),
            "figma": RemoteTarget(
                "https://mcp.example.com/mcp",
                headers={"X-Region": "eu", "Authorization": "Bearer key", "X-Key": "key"},
                is_guess=True,
            ),
        },
    ),
    "opencode": (
        """{
          "$schema": "https://opencode.ai/config.json",
          "mcp": {
            "local": {"type": "local", "command": ["npx", "-y", "srv"], "environment": {"K": "{env:API_KEY}"},
                      "enabled": true, "timeout": 9000},
            "remote": {"type": "remote", "url": "https://h/mcp",
                       "headers": {"Authorization": "Bearer {file:secret.txt}"}}, // literal, not expanded
          },
        }""",
        {
            "local": StdioTarget("npx", ("-y", "srv"), {"K": "key"}),
            "remote": RemoteTarget(
                "https://h/mcp", headers={"Authorization": "Bearer ${API_KEY} from file"}, is_guess=True
            ),
        },
    ),
    "mcporter": (
        """{
          "imports": ["cursor"],
          "mcpServers": {
            "a": {"description": "x", "baseUrl": "https://h/mcp", "bearerTokenEnv": "API_KEY"},
            "b": {"command": "npx -y 'my server' --flag"},
            "c": {"command": ["uvx", "srv"], "args": ["x"], "env": {"K": "$env:API_KEY", "L": "${NONE:-l}"}},
            "d": {"url": "https://h/d", "bearer_token": "literal", "headers": {"X": "y"}}
          }
        }""",
        {
            "a": RemoteTarget("https://h/mcp", headers={"Authorization": "Bearer key"}, is_guess=True),
            "b": StdioTarget("npx", ("-y", "my server", "--flag")),
            "c": StdioTarget("uvx", ("srv", "x"), {"K": "key", "L": "l"}),
            "d": RemoteTarget("https://h/d", headers={"X": "y", "Authorization": "Bearer literal"}, is_guess=True),
        },
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_each_format_loads_to_the_expected_targets(name: str) -> None:
    """A realistic file of each program gives its servers, variables filled in and nothing dropped."""
    text, expected = CASES[name]

    reading = read(name, text)

    assert reading.problems == ()
    assert {spec.name: spec.target for spec in reading.specs} == expected
    assert [note for note in reading.notes if note.is_warning] == []


def test_every_format_has_its_case() -> None:
    """The table of formats and the table of cases have the same rows."""
    assert set(CASES) == set(FORMATS)


def test_times_are_carried_over() -> None:
    """Seconds of Codex and milliseconds of opencode and Gemini end in the same fields."""
    specs = {spec.name: spec for name in ("codex", "opencode", "gemini") for spec in read(name, CASES[name][0]).specs}

    assert (specs["docs"].connect_timeout, specs["docs"].call_timeout) == (20.0, 90.5)
    assert specs["local"].connect_timeout == 9.0
    assert specs["py"].call_timeout == 15.0
    assert not specs["figma"].is_enabled


def test_foreign_references_stay_visible_as_variables() -> None:
    """The raw entry holds names, never values, so that it can be shown and written (S030)."""
    [github, *_] = read("vscode", CASES["vscode"][0]).specs

    assert github.raw["headers"] == {"Authorization": "Bearer ${MCP_INPUT_GITHUB_TOKEN}"}
    assert input_variable("github-token") == "MCP_INPUT_GITHUB_TOKEN"


def test_what_only_the_editor_knows_is_noted() -> None:
    """A reference that cannot be resolved here is told, not guessed."""
    reading = read("vscode", '{"servers": {"a": {"command": "x", "args": ["${command:pick}", "${config:y}"]}}}')

    assert [note.code for note in reading.notes] == ["unsupported", "unsupported"]


def test_input_without_answer_is_an_unset_variable() -> None:
    """An input that nobody answered names the variable that would answer it."""
    reading = read("vscode", '{"inputs": [{"id": "x"}], "servers": {"a": {"command": "c", "args": ["${input:x}"]}}}')

    assert [note.text for note in reading.notes if "MCP_INPUT_X" in note.text]


def test_unreadable_file_reference_is_a_problem() -> None:
    """opencode's {file:...} that cannot be read keeps the entry from running."""
    reading = read("opencode", '{"mcp": {"a": {"type": "local", "command": ["x", "{file:none}"]}}}')

    assert (reading.specs, [problem.key for problem in reading.problems]) == ((), ["mcp.a.args"])


@pytest.mark.parametrize(
    ("name", "entry"),
    [
        ("vscode", '{"servers": {"a": {"command": ["x"], "args": "y", "env": [1]}}}'),
        ("cursor", '{"mcpServers": {"a": {"command": 1, "env": 2, "headers": 3}}}'),
        ("gemini", '{"mcpServers": {"a": {"httpUrl": 1, "args": 3}}, "mcp": {"allowed": 1, "excluded": {}}}'),
        ("opencode", '{"mcp": {"a": {"type": "local", "command": []}}}'),
        ("opencode", '{"mcp": {"a": {"type": "local", "command": [1, 2]}}}'),
        ("mcporter", '{"mcpServers": {"a": {"baseUrl": 1, "bearerToken": 2, "headers": []}}}'),
        ("mcporter", '{"mcpServers": {"a": {"command": "npx \\"open"}, "b": {"command": 3}}}'),
        ("codex", '[mcp_servers.a]\ncommand = 1\nenv_vars = 3\nenv_http_headers = 4\nstartup_timeout_sec = "x"'),
    ],
)
def test_wrong_kinds_are_problems_of_the_entry(name: str, entry: str) -> None:
    """A translator passes on what it does not understand, and validation names it."""
    reading = read(name, entry)

    assert reading.problems
    assert all(problem.server for problem in reading.problems)


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("/w/.mcp.json", "claude-code"),
        ("/h/.claude.json", "claude-code"),
        ("/any/thing.json", "claude-code"),
        ("C:\\Users\\u\\AppData\\Roaming\\Claude\\claude_desktop_config.json", "claude-desktop"),
        ("/w/.cursor/mcp.json", "cursor"),
        ("/w/.vscode/mcp.json", "vscode"),
        ("/h/.config/Code/User/settings.json", "vscode"),
        ("/h/.gemini/settings.json", "gemini"),
        ("/h/.codex/config.toml", "codex"),
        ("/w/opencode.jsonc", "opencode"),
        ("/w/config/mcporter.json", "mcporter"),
    ],
)
def test_format_is_known_by_path(path: str, name: str) -> None:
    """A file of another program is recognised by where it lies."""
    assert format_of_path(path).name == name


def test_known_paths_lead_back_to_their_format() -> None:
    """Each place where a program keeps its file is recognised as that program's."""
    for row in FORMATS.values():
        for path in (*row.user_paths, *row.project_paths):
            assert format_of_path(f"/root/{path}") is row
    assert format_of_path("") is NATIVE


@pytest.mark.parametrize(
    ("name", "path", "directory"),
    [
        ("vscode", "/w/.vscode/mcp.json", "/w"),
        ("cursor", "/w/.cursor/mcp.json", "/w"),
        ("opencode", "/w/opencode.json", "/w"),
        ("mcporter", "/w/config/mcporter.json", "/w"),
        ("vscode", "/h/.config/Code/User/mcp.json", "/h/.config/Code/User"),
        ("claude-code", "/w/.mcp.json", "/w"),
        ("claude-code", "/.mcp.json", "/"),
        ("claude-code", "/w/x.json", "/w"),
    ],
)
def test_the_directory_of_a_file(name: str, path: str, directory: str) -> None:
    """A project's file speaks of the project, also from a folder of its own inside it."""
    assert FORMATS[name].directory_of(path) == directory


def test_env_file_lines() -> None:
    """Comments, quotes, blanks and other lines are treated as editors do."""
    text = "\ufeffA=1\n#B=2\n C = 3 \nexport D='x # y'\nE=\"a\\nb\"\nF=a#b # c\n=x\nG\n1H=1\nA=2\nI=\nJ='\n"

    assert parse_env_file(text) == {
        "A": "2", "C": "3", "D": "x # y", "E": "a\nb", "F": "a#b", "I": "", "J": "'",
    }  # fmt: skip
