"""`configured`: by whose word a server runs."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from scripted_fleet import echo_server, spec

from mcp_actors.config.specs import RemoteTarget, ServerSpec, StdioTarget
from mcp_actors.errors import ServerNotReady
from mcp_actors.files.loading import load_config
from mcp_actors.runtime import open_runtime

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("target", [StdioTarget("true"), RemoteTarget("https://h.example/mcp")])
async def test_a_program_adds_nothing_beside_an_exclusive_file(
    tmp_path: Path, target: StdioTarget | RemoteTarget, autojump_clock: object
) -> None:
    """S016, S026: what a program adds while an administrator is in charge is disabled, and is never started."""
    (tmp_path / "managed-mcp.json").write_text(json.dumps({"mcpServers": {}}))
    loaded = load_config(environ={}, cwd=tmp_path, home=tmp_path, managed_dir=tmp_path)

    async with open_runtime(loaded, environ={}) as runtime:
        await runtime.add_server(ServerSpec("mine", target))
        await runtime.add_server(spec("inside", echo_server()))
        await runtime.wait_ready()
        states = {name: (str(status.state), status.reason) for name, status in runtime.status().items()}
        with pytest.raises(ServerNotReady):
            await runtime.enable("mine")

    assert states == {"mine": ("disabled", "policy"), "inside": ("connected", "ready")}
