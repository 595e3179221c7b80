"""Owns the table of configuration formats: where each keeps its servers, and how its entries are spelled.

What this is not: the translators themselves (`dialects`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from mcp_actors.config import dialects
from mcp_actors.config.expand import expand
from mcp_actors.values import frozen

if TYPE_CHECKING:
    from mcp_actors.config.notes import Findings, KeyPath
    from mcp_actors.jsontypes import Json, JsonObject

__all__ = ["FORMATS", "NATIVE", "Format", "ServerTable", "fill_env_file", "format_of_path", "parse_env_file"]

# Tables of servers of other programs: found in a file of ours they mean a mistake, not an empty file (S001).
FOREIGN_TABLES: tuple[KeyPath, ...] = (("servers",), ("mcp_servers",), ("mcp", "servers"), ("context_servers",))


class ServerTable(NamedTuple):
    """The servers of a document: name -> entry, where they stand, and the names that it switches off elsewhere."""

    path: KeyPath
    entries: JsonObject
    disabled: frozenset[str] = frozenset()


@frozen
class Format:
    """How one program writes down servers."""

    name: str
    # Key paths of its table of servers; the first that exists counts.
    roots: tuple[KeyPath, ...] = (("mcpServers",),)
    translator: dialects.Translator = dialects.same
    is_toml: bool = False
    # False: the file holds other settings too, so that one without servers is in order.
    is_only_servers: bool = True
    # Lists of names that it switches on or off beside the entries (Gemini).
    allowed: KeyPath | None = None
    excluded: KeyPath | None = None
    # Where it keeps its files: below the home directory, and below a project's.
    user_paths: tuple[str, ...] = ()
    project_paths: tuple[str, ...] = ()
    # Recognises a file by its path, with forward slashes.
    pattern: str = "(?!)"

    def find_table(
        self, document: Json, findings: Findings, root: KeyPath | None, *, must_have: bool
    ) -> ServerTable | None:
        """Find the servers of `document`; what is in the way goes to `findings`."""
        if not isinstance(document, Mapping):
            findings.problem((), "must be an object", remedy='write {"mcpServers": {...}}')
            return None
        for path in (root,) if root is not None else self.roots:
            table = _at(document, path)
            if table is None:
                continue
            if not isinstance(table, Mapping):
                findings.problem(path, "must be an object that maps names to servers")
                return None
            return ServerTable(path, table, self._switched_off(document, table))
        if root is None and must_have and self.is_only_servers:
            self._report_missing(document, findings)
        return None

    def _switched_off(self, document: JsonObject, table: JsonObject) -> frozenset[str]:
        excluded = _at(document, self.excluded) if self.excluded else None
        allowed = _at(document, self.allowed) if self.allowed else None
        off = {name for name in excluded if isinstance(name, str)} if isinstance(excluded, list) else set()
        if isinstance(allowed, list):
            off |= {name for name in table if name not in allowed}
        return frozenset(off)

    def _report_missing(self, document: JsonObject, findings: Findings) -> None:
        wanted = ".".join(str(step) for step in self.roots[0])
        for path in FOREIGN_TABLES:
            if isinstance(_at(document, path), Mapping):
                findings.problem(
                    path,
                    f"is not read here: servers stand under {wanted}",
                    remedy=f"rename it to {wanted}, or use import",
                )
                return
        if document:
            findings.problem((), f"has no key {wanted}", remedy=f"put the servers under {wanted}")
        else:
            findings.note((), "no-servers", f"has no key {wanted}: no servers are defined")

    def directory_of(self, path: str) -> str:
        """The directory that a file of this format speaks of as its own: a project's, not the ``.vscode`` in it."""
        path = path.replace("\\", "/")
        for below in self.project_paths:
            if path.endswith(f"/{below}"):
                return path[: -len(below) - 1] or "/"
        return path.rpartition("/")[0]

    def translate(self, translation: dialects.Translation) -> dict[str, Json]:
        """The entry in Claude Code's spelling."""
        self.translator(translation)
        return translation.entry


def _at(document: JsonObject, path: KeyPath) -> Json:
    value: Json = document
    for step in path:
        if not isinstance(value, Mapping):
            return None
        value = value.get(str(step))
    return value


NATIVE = Format(
    "claude-code", user_paths=(".claude.json",), project_paths=(".mcp.json",), pattern=r"(^|/)(\.mcp|\.claude)\.json$"
)

FORMATS: Mapping[str, Format] = {
    row.name: row
    for row in (
        NATIVE,
        Format(
            "claude-desktop",
            is_only_servers=False,
            user_paths=(
                "Library/Application Support/Claude/claude_desktop_config.json",
                ".config/Claude/claude_desktop_config.json",
                "AppData/Roaming/Claude/claude_desktop_config.json",
            ),
            pattern=r"(^|/)claude_desktop_config\.json$",
        ),
        Format(
            "cursor",
            translator=dialects.cursor,
            user_paths=(".cursor/mcp.json",),
            project_paths=(".cursor/mcp.json",),
            pattern=r"(^|/)\.cursor/mcp\.json$",
        ),
        Format(
            "vscode",
            roots=(("servers",), ("mcp", "servers")),
            translator=dialects.vscode,
            user_paths=(
                ".config/Code/User/mcp.json",
                "Library/Application Support/Code/User/mcp.json",
                "AppData/Roaming/Code/User/mcp.json",
            ),
            project_paths=(".vscode/mcp.json",),
            pattern=r"(^|/)(\.vscode|Code/User)/(mcp|settings)\.json$",
        ),
        Format(
            "gemini",
            translator=dialects.gemini,
            is_only_servers=False,
            allowed=("mcp", "allowed"),
            excluded=("mcp", "excluded"),
            user_paths=(".gemini/settings.json",),
            project_paths=(".gemini/settings.json",),
            pattern=r"(^|/)\.gemini/settings\.json$",
        ),
        Format(
            "codex",
            roots=(("mcp_servers",),),
            translator=dialects.codex,
            is_toml=True,
            is_only_servers=False,
            user_paths=(".codex/config.toml",),
            project_paths=(".codex/config.toml",),
            pattern=r"\.toml$",
        ),
        Format(
            "opencode",
            roots=(("mcp", "servers"), ("mcp",)),
            translator=dialects.opencode,
            is_only_servers=False,
            user_paths=(".config/opencode/opencode.json", ".config/opencode/opencode.jsonc"),
            project_paths=("opencode.json", "opencode.jsonc"),
            pattern=r"(^|/)opencode\.jsonc?$",
        ),
        Format(
            "mcporter",
            translator=dialects.mcporter,
            user_paths=(".mcporter/mcporter.json",),
            project_paths=("config/mcporter.json",),
            pattern=r"(^|/)mcporter\.jsonc?$",
        ),
    )
}


def format_of_path(path: str) -> Format:
    """The format that a file of this name has; Claude Code's when nothing says otherwise."""
    path = path.replace("\\", "/")
    return next((row for row in FORMATS.values() if re.search(row.pattern, path)), NATIVE)


ENV_LINE = r"\s*(?:export\s+)?([A-Za-z_][A-Za-z0-9_.]*)\s*=\s*(.*?)\s*$"


def parse_env_file(text: str) -> dict[str, str]:
    """Parse the lines ``NAME=value`` of an environment file; later lines win, values are taken literally.

    Quotes around a value go; inside double quotes ``\\n`` is a line break. Comments and other lines are skipped.
    """
    values: dict[str, str] = {}
    for line in text.removeprefix("\ufeff").splitlines():
        match = re.match(ENV_LINE, line)
        if match is None or line.lstrip().startswith("#"):
            continue
        name, value = match.groups()
        if len(value) >= 2 and value[0] == value[-1] and value[0] in "'\"":
            value = value[1:-1].replace("\\n", "\n") if value[0] == '"' else value[1:-1]
        else:
            value = re.split(r"\s#", value, maxsplit=1)[0].rstrip()
        values[name] = value
    return values


def fill_env_file(
    translation: dialects.Translation, environ: Mapping[str, str], read: Callable[[str], bytes]
) -> dict[str, Json]:
    """The entry with the variables of its `envFile` added; those of `env` win. The given entry stays as it was."""
    entry = translation.entry
    written = entry.get("envFile")
    if not isinstance(written, str) or not written:
        return entry
    path = expand(written, environ, translation.fixed).text
    try:
        values = parse_env_file(read(path).decode())
    except (OSError, UnicodeDecodeError):
        translation.findings.problem(
            (*translation.path, "envFile"), "names a file that cannot be read", server=translation.name
        )
        return entry
    given = entry.get("env")
    env: dict[str, Json] = {}
    for index, (name, value) in enumerate(values.items()):
        # By name, so that what the file holds is never expanded.
        slot = f"envFile.{len(translation.fixed)}-{index}"
        translation.fixed[slot] = value
        env[name] = f"${{{slot}}}"
    return {**entry, "env": {**env, **(given if isinstance(given, Mapping) else {})}}
