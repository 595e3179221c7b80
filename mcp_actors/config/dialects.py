"""Owns the translation of one entry from another program's spelling into Claude Code's, the one we validate and write.

What this is not: the table of formats (`formats`), nor checks (`validate`): whatever has the wrong kind is passed on as
it is and reported there. Unknown keys are kept.

Foreign references become ``${NAME}`` ones here, as text; values are filled in later and once (`expand`).
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, TypeAlias

from attrs import field

from mcp_actors.values import frozen

if TYPE_CHECKING:
    from mcp_actors.config.notes import Findings, KeyPath
    from mcp_actors.jsontypes import Json, JsonObject

__all__ = [
    "PROJECT_DIRECTORY",
    "WORKSPACE_NAME",
    "Translation",
    "Translator",
    "codex",
    "copy_of",
    "cursor",
    "gemini",
    "input_variable",
    "mcporter",
    "opencode",
    "same",
    "vscode",
]

# Names that we provide for what other programs call workspaceFolder and workspaceFolderBasename.
PROJECT_DIRECTORY = "CLAUDE_PROJECT_DIR"
WORKSPACE_NAME = "MCP_WORKSPACE_NAME"

NAME = r"[A-Za-z_][A-Za-z0-9_]*"
TEXT_FIELDS = ("command", "cwd", "url", "envFile")


@frozen
class Translation:
    """One entry on its way: `entry` is a copy that a translator changes in place."""

    name: str
    entry: dict[str, Json]
    path: KeyPath
    findings: Findings
    # The whole document: VS Code keeps its `inputs` beside the servers.
    document: Json = None
    # Reads a file; raises OSError.
    read_file: Callable[[str], bytes] = field(kw_only=True, repr=False)
    # Values under dotted names that the expansion may use; a translator adds what it read.
    fixed: dict[str, str] = field(factory=dict, repr=False)

    def unsupported(self, key: str, text: str) -> None:
        """Say that a part of the entry has no meaning here."""
        self.findings.note((*self.path, key), "unsupported", text, server=self.name)

    def rename(self, names: Mapping[str, str]) -> None:
        """Move values to our keys; ours wins when both are there."""
        for old, new in names.items():
            if old in self.entry:
                value = self.entry.pop(old)
                self.entry.setdefault(new, value)

    def rewrite(self, change: Callable[[str, str], str]) -> None:
        """Apply ``change(text, key)`` to every text whose variables are filled in."""
        for key in TEXT_FIELDS:
            if isinstance(text := self.entry.get(key), str):
                self.entry[key] = change(text, key)
        args = self.entry.get("args")
        if isinstance(args, list):
            self.entry["args"] = [change(arg, "args") if isinstance(arg, str) else arg for arg in args]
        for key in ("env", "headers"):
            values = self.entry.get(key)
            if isinstance(values, Mapping):
                self.entry[key] = {
                    name: change(value, key) if isinstance(value, str) else value for name, value in values.items()
                }

    def table(self, key: str) -> dict[str, Json]:
        """The object under `key` as a copy that is part of the entry; made when missing."""
        value = self.entry.get(key)
        copy = dict(value) if isinstance(value, Mapping) else {}
        if not value or isinstance(value, Mapping):
            self.entry[key] = copy
        return copy

    def seconds_to_milliseconds(self, names: Mapping[str, str]) -> None:
        """Like `rename`, for durations written in seconds."""
        for old, new in names.items():
            value = self.entry.pop(old, None)
            if isinstance(value, int | float) and not isinstance(value, bool):
                self.entry.setdefault(new, value * 1000)
            elif value is not None:
                self.entry.setdefault(new, value)  # validate says what is wrong with it


Translator: TypeAlias = Callable[[Translation], None]


def input_variable(name: str) -> str:
    """The environment variable that answers VS Code's input `name`: ``api-key`` -> ``MCP_INPUT_API_KEY``."""
    return "MCP_INPUT_" + re.sub(r"[^A-Za-z0-9]", "_", name).upper()


EDITOR_REFERENCE = r"\$\{(?:(env|input|config|command):([^{}]*)|([A-Za-z]+|/))\}"
EDITOR_NAMES: Mapping[str, str] = {
    "workspaceFolder": f"${{{PROJECT_DIRECTORY}}}",
    "workspaceRoot": f"${{{PROJECT_DIRECTORY}}}",
    "workspaceFolderBasename": f"${{{WORKSPACE_NAME}}}",
    "userHome": "${HOME}",
    "pathSeparator": "/",
    "/": "/",
}


def _editor(translation: Translation, defaults: Mapping[str, str]) -> None:
    def change(text: str, key: str) -> str:
        def one(match: re.Match[str]) -> str:
            kind, name, word = match.groups()
            if word is not None:
                return EDITOR_NAMES.get(word, match.group())
            if kind == "env" and re.fullmatch(NAME, name):
                return f"${{{name}}}"
            if kind == "input":
                default = defaults.get(name)
                return f"${{{input_variable(name)}" + ("}" if default is None else f":-{default}}}")
            translation.unsupported(key, f"holds a ${{{kind}:...}} reference, which only the editor can resolve")
            return match.group()

        return re.sub(EDITOR_REFERENCE, one, text)

    translation.rewrite(change)


def vscode(translation: Translation) -> None:
    """VS Code: ``${env:X}``, ``${input:id}``, ``${workspaceFolder}``; `inputs` stand beside the servers."""
    defaults: dict[str, str] = {}
    inputs = translation.document.get("inputs") if isinstance(translation.document, Mapping) else None
    for asked in inputs if isinstance(inputs, list) else ():
        if isinstance(asked, Mapping) and isinstance(name := asked.get("id"), str):
            default = asked.get("default")
            # A default with braces could end its own reference.
            if isinstance(default, str) and not set(default) & set("{}"):
                defaults[name] = default
    _editor(translation, defaults)


def cursor(translation: Translation) -> None:
    """Cursor: VS Code's references without inputs."""
    _editor(translation, {})


SHELL_REFERENCE = r"\$([A-Z_][A-Z0-9_]*)"


def gemini(translation: Translation) -> None:
    """Gemini CLI: `httpUrl` is streamable HTTP, and `url` without type is the older SSE; ``$NAME`` is a reference."""
    entry = translation.entry
    if entry.get("httpUrl") is not None:
        entry["url"] = entry.pop("httpUrl")
        entry["type"] = "http"
    elif entry.get("url") is not None and entry.get("type") is None:
        entry["type"] = "sse"
    if entry.get("url") is not None and entry.get("command") is not None:
        entry.pop("command")
        translation.unsupported("command", "is not used: Gemini prefers the address")
    # Its other form, ${NAME}, is ours already.
    translation.rewrite(lambda text, _: re.sub(SHELL_REFERENCE, r"${\1}", text))


def codex(translation: Translation) -> None:
    """Codex: TOML with times in seconds; secrets by the name of their variable."""
    entry = translation.entry
    translation.rename({"http_headers": "headers", "startup_timeout_ms": "connectTimeout"})
    translation.seconds_to_milliseconds({"startup_timeout_sec": "connectTimeout", "tool_timeout_sec": "timeout"})
    bearer = entry.pop("bearer_token_env_var", None)
    if isinstance(bearer, str):
        translation.table("headers")["Authorization"] = f"Bearer ${{{bearer}}}"
    by_variable = entry.pop("env_http_headers", None)
    for header, variable in by_variable.items() if isinstance(by_variable, Mapping) else ():
        if isinstance(variable, str):
            translation.table("headers")[header] = f"${{{variable}}}"
    forwarded = entry.pop("env_vars", None)
    for item in forwarded if isinstance(forwarded, list) else ():
        name = item.get("name") if isinstance(item, Mapping) else item
        if isinstance(name, str):
            translation.table("env").setdefault(name, f"${{{name}:-}}")


OPENCODE_REFERENCE = r"\{(env|file):([^{}]*)\}"


def opencode(translation: Translation) -> None:
    """opencode: `type` is local or remote, `command` a list; ``{env:X}`` and ``{file:path}``."""
    entry = translation.entry
    # Remote leaves the transport open, as opencode does: streamable HTTP first.
    if entry.get("type") in ("local", "remote"):
        entry.pop("type")
    _split_command_list(entry)
    translation.rename({"environment": "env", "timeout": "connectTimeout"})

    def change(text: str, key: str) -> str:
        def one(match: re.Match[str]) -> str:
            kind, name = match.groups()
            if kind == "env":
                return f"${{{name}}}" if re.fullmatch(NAME, name) else match.group()
            try:
                content = translation.read_file(name).decode().strip()
            except (OSError, UnicodeDecodeError):
                translation.findings.problem(
                    (*translation.path, key), "names a file that cannot be read", server=translation.name
                )
                return match.group()
            # By name, so that what the file holds is never expanded.
            slot = f"file.{len(translation.fixed)}"
            translation.fixed[slot] = content
            return f"${{{slot}}}"

        return re.sub(OPENCODE_REFERENCE, one, text)

    translation.rewrite(change)


MCPORTER_NAMES: Mapping[str, str] = {
    "baseUrl": "url",
    "base_url": "url",
    "serverUrl": "url",
    "server_url": "url",
    "httpUrl": "url",
    "bearer_token": "bearerToken",
    "bearer_token_env": "bearerTokenEnv",
}


def mcporter(translation: Translation) -> None:
    """mcporter: `baseUrl`, bearer tokens as keys, a command line as one text; ``$env:NAME``."""
    entry = translation.entry
    translation.rename(MCPORTER_NAMES)
    command = entry.get("command")
    if isinstance(command, str) and entry.get("args") is None and " " in command.strip():
        try:
            words: list[Json] = list(shlex.split(command))
        except ValueError:
            translation.unsupported("command", "holds a quotation that never ends; taken as one word")
            words = [command]
        entry["command"] = words
    _split_command_list(entry)
    variable, token = entry.pop("bearerTokenEnv", None), entry.pop("bearerToken", None)
    if isinstance(variable, str):
        translation.table("headers").setdefault("Authorization", f"Bearer ${{{variable}}}")
    elif isinstance(token, str):
        translation.table("headers").setdefault("Authorization", f"Bearer {token}")
    translation.rewrite(lambda text, _: re.sub(r"\$env:([A-Za-z_][A-Za-z0-9_]*)", r"${\1}", text))


def _split_command_list(entry: dict[str, Json]) -> None:
    """``command: [program, arg...]`` -> command and args; `args` that stand beside it follow."""
    command = entry.get("command")
    if isinstance(command, list) and command:
        rest = entry.get("args")
        entry["command"] = command[0]
        entry["args"] = [*command[1:], *(rest if isinstance(rest, list) else ())]


def same(translation: Translation) -> None:
    """Claude Code and Claude Desktop: nothing to translate."""


def copy_of(entry: JsonObject) -> dict[str, Json]:
    """A copy whose leaves are all JSON: TOML's dates become text."""

    def plain(value: Json) -> Json:
        if isinstance(value, Mapping):
            return {str(key): plain(item) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [plain(item) for item in value]
        return value if value is None or isinstance(value, bool | int | float | str) else str(value)

    return {key: plain(value) for key, value in entry.items()}
