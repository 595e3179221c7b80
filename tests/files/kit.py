"""Writing configuration files, and loading them as from a project's directory."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from mcp_actors.files.loading import LoadedConfig, load_config
from mcp_actors.files.places import CHOICES_FILE

if TYPE_CHECKING:
    from pathlib import Path


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


def memory(home: Path) -> Path:
    file = home / "state" / CHOICES_FILE
    file.parent.mkdir(exist_ok=True)
    return file


def remembered(project: Path, home: Path, text: str) -> LoadedConfig:
    memory(home).write_text(text)
    environ = {"MCP_ACTORS_STATE_DIR": str(home / "state")}
    return load(project, home, environ=environ, approve_project=False)
