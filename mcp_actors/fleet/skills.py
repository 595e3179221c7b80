"""Owns reading the skills of one server: the list, one entry, and the loading of one, file by file.

What this is not: the rules (`tools.skills`); nor consent, which a host asks for before it loads a skill.

Nothing is fetched ahead of need: listing reads no file, loading reads SKILL.md alone (extension, "Lazy Retrieval").
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import trio
from attrs import field

from mcp_actors.errors import RemoteProtocolError
from mcp_actors.protocol.jsonrpc import raw_members
from mcp_actors.tools.skills import check_main_file, read_file, read_skill
from mcp_actors.values import frozen

if TYPE_CHECKING:
    from mcp_actors.fleet.server import Server
    from mcp_actors.tools.skills import Skill

__all__ = ["LoadedSkill", "load_skill", "read_entry"]


@frozen(eq=False)
class LoadedSkill:
    """A skill whose SKILL.md was read and verified. Made by `Server.load_skill`.

    Its words are the server's and untrusted: say whose they are where a model reads them, grant nothing that its
    frontmatter asks for (``allowed-tools``), and let nothing in it run without a person's consent.
    """

    # The entry that it was loaded by; files are held against this one, whatever the server publishes meanwhile.
    skill: Skill
    # SKILL.md, whole, as the server wrote it.
    text: str = field(repr=lambda text: f"<{len(text)} characters>")
    _server: Server = field(repr=False)

    async def read(self, path: str, *, timeout: float | None = None) -> bytes:
        """Read a file of the skill and verify it.

        Args:
            path: as the skill names it, below its directory (``references/FORMS.md``); or its URI.
            timeout: seconds; None: the server's setting.

        Raises:
            RemoteProtocolError: it is not in the manifest, or not what the manifest describes; ask for the skill's
                entry anew (`Server.skill`), and for consent: it has changed.
            RpcError: the server refused.

        Cancellation:
            Safe.

        Source:
            MCP skills extension, "The Acting Window and the Held Entry".
        """
        return await _read(self._server, self.skill, self.skill.resolve(path), timeout)


def read_entry(server: str, uri: str, result: bytes) -> Skill:
    """Take the entry out of a ``skills/get`` result. Raises `RemoteProtocolError` for one that must not be loaded."""
    raw = raw_members(result).get("skill")
    if raw is None:
        raise RemoteProtocolError(server=server, reason="the answer to skills/get has no 'skill'")
    skill = read_skill(server, raw)
    if skill.uri != uri:
        raise RemoteProtocolError(server=server, reason="the answer to skills/get is another skill")
    return skill


async def load_skill(server: Server, skill: Skill, timeout: float | None) -> LoadedSkill:
    """Read SKILL.md; see `Server.load_skill`. Cancellation: safe."""
    content = await _read(server, skill, skill.uri, timeout)
    # In a thread: what a hostile file costs is bounded, yet too much for everybody to wait for.
    text = await trio.to_thread.run_sync(check_main_file, skill, content)
    return LoadedSkill(skill, text, server)


async def _read(server: Server, skill: Skill, uri: str, timeout: float | None) -> bytes:
    return read_file(skill, uri, await server.read_resource(uri, timeout=timeout))
