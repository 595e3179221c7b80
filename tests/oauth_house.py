"""A desk in a scripted world: who we are towards one server, with a person or without."""

from __future__ import annotations

from attrs import evolve
from oauth_peer import MCP, Clock, World

from mcp_actors.auth.desk import AuthDesk
from mcp_actors.auth.messages import Purpose, WebRequest
from mcp_actors.auth.store import CredentialStore, StoreChoice
from mcp_actors.config.specs import RemoteTarget, ServerSpec

SPEC = ServerSpec("srv", RemoteTarget(MCP))


class House:
    """A desk in a world."""

    def __init__(self, world=None, *, has_person=True, state_dir=None, oauth=None, spec=SPEC):
        self.clock = Clock()
        self.world = world or World()
        self.desk = AuthDesk(
            self.exchange,
            {},
            CredentialStore(StoreChoice.MEMORY),
            state_dir=state_dir,
            prompter=self.world.prompter if has_person else None,
            resolve=self.resolve,
            sources=self.clock.sources,
        )
        self.auth = self.desk.for_server(spec if oauth is None else evolve(spec, raw={"oauth": oauth}))

    async def resolve(self, host):
        return ["93.184.216.34"]

    async def exchange(self, method, url, headers, body, *, address, max_bytes):
        said = self.world.answer(WebRequest(Purpose.TOKEN, url, method, tuple(headers), body))
        return said.status, said.headers, said.body
