"""Owns `Server`: one server of the running fleet, with all that MCP lets a client ask of it.

What this is not: its life; a `Server` is a cheap view by name, valid whatever connection there is.
"""

from __future__ import annotations

import enum
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from mcp_actors.errors import LocalProtocolError, UnknownServer
from mcp_actors.protocol.features import missing_capability
from mcp_actors.protocol.jsonrpc import decode_object
from mcp_actors.protocol.lists import LIST_KEYS, PageCollector
from mcp_actors.tools.items import prompts_from_items, resources_from_items, templates_from_items
from mcp_actors.tools.sanitise import cap_text
from mcp_actors.tools.skills import skills_from_items
from mcp_actors.values import frozen

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping, Sized

    from mcp_actors.actors.connection import Connection
    from mcp_actors.actors.lifecycle import ServerStatus
    from mcp_actors.actors.listening import LogWatcher, ResourceWatcher
    from mcp_actors.actors.slots import ProgressCallback
    from mcp_actors.auth.driving import SignInPrompter
    from mcp_actors.auth.status import AuthStatus
    from mcp_actors.config.specs import ServerSpec
    from mcp_actors.fleet.running import Runtime
    from mcp_actors.fleet.skills import LoadedSkill
    from mcp_actors.jsontypes import JsonObject
    from mcp_actors.protocol.questions import InputRequired
    from mcp_actors.tools.catalog import Tool
    from mcp_actors.tools.items import Prompt, Resource, ResourceTemplate
    from mcp_actors.tools.skills import Skill

__all__ = ["RefreshOutcome", "Refreshed", "Server"]


class RefreshOutcome(enum.StrEnum):
    """How a refresh went (S172)."""

    REFRESHED = "refreshed"
    # Some list could not be fetched; it stays as it was.
    ERROR = "error"
    NOT_CONNECTED = "not_connected"


@frozen
class Refreshed:
    """What fetching a server's lists again came to."""

    server: str
    outcome: RefreshOutcome
    # How many there are now; None where it offers none of the kind, or nothing is known of them.
    tools: int | None = None
    resources: int | None = None
    prompts: int | None = None
    # Raw names of the tools that came, and of those that went.
    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    error: str | None = None


class Server:
    """One server of a running fleet. Made by `Runtime.server`.

    Every coroutine brings the server up first if it may be, joining what is under way (S125), and raises as
    `Runtime.call_tool` does. What a server did not declare is not asked for: lists are empty, the rest is a
    `LocalProtocolError` (fault 69).
    """

    def __init__(self, runtime: Runtime, spec: ServerSpec) -> None:
        self.name = spec.name
        self._spec = spec
        self._runtime = runtime

    # ── looking: none of these connects or blocks ────────────────────────────────────────────────────────────────────

    @property
    def status(self) -> ServerStatus:
        """Its status now. Raises `UnknownServer` when it was removed."""
        status = self._runtime.status().get(self.name)
        if status is None:
            raise UnknownServer(name=self.name)
        return status

    @property
    def tools(self) -> tuple[Tool, ...]:
        """Its tools in its own order; empty while it is not connected."""
        return self._runtime.catalog.tools_of(self.name)

    @property
    def resources(self) -> tuple[Resource, ...]:
        """Its resources in its own order; empty while it is not connected."""
        listing = self._runtime.snapshot.listings.get(self.name)
        return resources_from_items(self.name, listing.resources or ())[0] if listing is not None else ()

    @property
    def prompts(self) -> tuple[Prompt, ...]:
        """Its prompts in its own order; empty while it is not connected."""
        listing = self._runtime.snapshot.listings.get(self.name)
        return prompts_from_items(self.name, listing.prompts or ())[0] if listing is not None else ()

    @property
    def instructions(self) -> str | None:
        """What it wants a model to know of it; untrusted. None while it is not connected, or has nothing to say."""
        connection = self._runtime.snapshot.connections.get(self.name)
        if connection is None or connection.info is None or connection.info.instructions is None:
            return None
        return cap_text(connection.info.instructions)

    async def refresh(self) -> Refreshed:
        """Fetch its lists anew, whatever it announced. Does not connect a server that is not connected.

        Raises:
            ActorGone: the runtime was closed meanwhile.

        Cancellation:
            Safe.

        Source:
            S153, S172.
        """
        connection = self._runtime.snapshot.connections.get(self.name)
        if connection is None or not connection.is_open:
            return Refreshed(self.name, RefreshOutcome.NOT_CONNECTED)
        before = [tool.name for tool in connection.lists.listing.tools or ()]
        listing = await connection.lists.refresh()
        if connection.lists.is_over:
            return Refreshed(self.name, RefreshOutcome.NOT_CONNECTED)
        after = [tool.name for tool in listing.tools or ()]
        failures = [f"{kind}: {reason}" for kind, reason in connection.lists.failures.items()]
        return Refreshed(
            self.name,
            RefreshOutcome.ERROR if failures else RefreshOutcome.REFRESHED,
            tools=_count(listing.tools),
            resources=_count(listing.resources),
            prompts=_count(listing.prompts),
            added=tuple(name for name in after if name not in set(before)),
            removed=tuple(name for name in before if name not in set(after)),
            error="; ".join(failures) or None,
        )

    # ── asking ───────────────────────────────────────────────────────────────────────────────────────────────────────

    async def templates(self) -> tuple[ResourceTemplate, ...]:
        """List its resource templates, all pages. Cancellation: safe."""
        return templates_from_items(self.name, await self._items("resources/templates/list"))[0]

    async def skills(self) -> tuple[Skill, ...]:
        """List the skills that it publishes, all pages; none of their files is read. Cancellation: safe.

        An entry that breaks the rules is left out. There may be more than a server lists (`skill`).

        Source:
            MCP skills extension (SEP-2640), "Listing Skills".
        """
        return skills_from_items(self.name, await self._items("skills/list"))[0]

    async def skill(self, uri: str, *, timeout: float | None = None) -> Skill:
        """Ask for the entry of one skill, by the URI of its SKILL.md; also one that is not listed. Cancellation: safe.

        Raises:
            RemoteProtocolError: its entry breaks the rules: it must not be loaded.
            RpcError: there is no such skill (-32602), or the server refused.
        """
        from mcp_actors.fleet.skills import read_entry

        connection, timeout = await self._runtime.reach(self.name, timeout)
        self._require(connection, "skills/get")
        return read_entry(self.name, uri, await connection.request("skills/get", {"uri": uri}, timeout=timeout))

    async def load_skill(self, skill: Skill, *, timeout: float | None = None) -> LoadedSkill:
        """Read the SKILL.md of a skill and verify it; its other files are read when they are needed.

        Ask a person before: a skill is instructions by the server for a model. What was agreed to is the skill's entry.

        Raises:
            RemoteProtocolError: what came is not what the entry describes: digest, size or frontmatter. It may have
                changed: `skill` gives the entry of now.
            ConfigError: PyYAML, which reads the frontmatter, is not installed.
            RpcError: the server refused.

        Cancellation:
            Safe.

        Source:
            MCP skills extension (SEP-2640), "Integrity and Verification".
        """
        from mcp_actors.fleet.skills import load_skill

        return await load_skill(self, skill, timeout)

    async def read_resource(self, uri: str, *, timeout: float | None = None) -> JsonObject:
        """Read a resource; the result as sent, with ``contents`` (blocks of text or blob). Cancellation: safe.

        Raises:
            RpcError: there is no such resource (-32002 or -32602, F15), or the server refused.
        """
        return await self._ask("resources/read", {"uri": uri}, timeout=timeout)

    async def get_prompt(
        self, name: str, arguments: Mapping[str, str] | None = None, *, timeout: float | None = None
    ) -> JsonObject:
        """Fill a prompt; the result as sent, with ``messages`` (S335: `Composer`). Cancellation: safe."""
        return await self._ask("prompts/get", {"name": name, "arguments": dict(arguments or {})}, timeout=timeout)

    async def complete(
        self, ref: JsonObject, argument: str, value: str, context: Mapping[str, str] | None = None
    ) -> JsonObject:
        """Ask for completions of one argument's value.

        Args:
            ref: ``{"type": "ref/prompt", "name": ...}`` or ``{"type": "ref/resource", "uri": ...}``.
            argument: its name.
            value: what is typed so far.
            context: arguments that are known already, name -> value.

        Returns:
            The ``completion`` object as sent: ``values`` (at most 100), ``total``, ``hasMore``.

        Cancellation:
            Safe.

        Source:
            S339, F18.
        """
        params: dict[str, JsonObject] = {"ref": ref, "argument": {"name": argument, "value": value}}
        if context:
            params["context"] = {"arguments": dict(context)}
        completion = (await self._ask("completion/complete", params)).get("completion")
        return completion if isinstance(completion, dict) else {}

    async def request(
        self,
        method: str,
        params: JsonObject | None = None,
        *,
        timeout: float | None = None,
        progress: ProgressCallback | None = None,
    ) -> JsonObject:
        """Send any request; the result decoded. Cancellation: safe."""
        raw = await self._runtime.request(self.name, method, params, timeout=timeout, progress=progress)
        return decode_object(raw)

    async def request_once(
        self, method: str, params: JsonObject | None = None, *, timeout: float | None = None
    ) -> JsonObject | InputRequired:
        """Send any request, and where the server wants to know something first, leave it to the caller to answer.

        Args:
            method: a modern server may ask back for ``tools/call``, ``prompts/get`` and ``resources/read``.
            params: as for `request`.
            timeout: seconds until the request is given up.

        Returns:
            The result, decoded; or the questions, of kinds that the `Host` declares. Answer them with `answer`, now or
            in another process (`InputRequired.to_json`). Questions of a legacy server go to the host's handlers.

        Cancellation:
            Safe.

        Source:
            B08; spec_client 9.2.
        """
        from mcp_actors.actors.rounds import ask_one_round
        from mcp_actors.protocol.mrtr import Complete

        connection, timeout = await self._runtime.reach(self.name, timeout)
        step = await ask_one_round(connection, method, params, timeout)
        return decode_object(step.result) if isinstance(step, Complete) else step

    async def answer(
        self, asked: InputRequired, answers: Mapping[str, JsonObject], *, timeout: float | None = None
    ) -> JsonObject | InputRequired:
        """Send a request of `request_once` again, with the answers; as it does, this may give further questions.

        Args:
            asked: what `request_once`, or this, gave.
            answers: maps key of each question -> result of its method; none for a server that only gains time.
            timeout: seconds until the request is given up.

        Raises:
            LocalProtocolError: an answer is missing, malformed, or for nothing; nothing was sent.

        Cancellation:
            Safe.

        Source:
            B07, B08.
        """
        from mcp_actors.protocol.question_rules import refuse_answer

        for question in asked.questions:
            reason = refuse_answer(question.method, question.params, answers.get(question.key))
            if reason is not None:
                raise LocalProtocolError(server=self.name, reason=reason)
        return await self.request_once(asked.method, asked.retry(answers), timeout=timeout)

    # ── signing in ───────────────────────────────────────────────────────────────────────────────────────────────────

    async def log_in(self, prompter: SignInPrompter, *, scopes: tuple[str, ...] | None = None) -> AuthStatus:
        """Have a person sign in to it, then connect anew (S249, S250). The old login stays until the new one works.

        Raises:
            AuthFailed: nobody signed in, or what came back was refused.
            ConfigError: there is nothing to sign in to.

        Cancellation:
            Safe; nothing is kept then.
        """
        status = await self._runtime.desk.log_in(self._spec, prompter, scopes=scopes)
        await self._runtime.restart(self.name)
        return status

    async def log_out(self) -> bool:
        """Forget its login, here and where the server allows it, then connect anew; false when there was none.

        Cancellation:
            Safe; what was forgotten stays so.
        """
        was_in = await self._runtime.desk.log_out(self._spec)
        await self._runtime.restart(self.name)
        return was_in

    async def auth_status(self) -> AuthStatus:
        """How its login stands: issuer, scopes, expiry, store; never a token. Contacts nobody. Cancellation: safe."""
        return await self._runtime.desk.status(self._spec)

    # ── listening ────────────────────────────────────────────────────────────────────────────────────────────────────

    async def set_log_level(self, level: str) -> None:
        """Have it send log messages of at least this level, also after a reconnect (F13). Cancellation: safe."""
        await (await self._runtime.connection(self.name)).set_log_level(level)

    @asynccontextmanager
    async def watch_resource(self, uri: str) -> AsyncIterator[ResourceWatcher]:
        """Iterate over the changes of a resource, and of those below it, while the block runs.

        Subscribed in the era's way, again after every reconnect (S329, F01, F04, A10). The block begins when the server
        has answered, or has not for 5 s. Nothing is replayed: read it in the block. After a reconnect it is told as
        changed, for it may be.

        Raises:
            NotWatched: the server does not tell of it, though it offers to: it leaves it out of our subscription, or
                refused. Raised by the iteration where that happens later, such as after a reconnect.

        Cancellation:
            Safe; leaving the block unsubscribes.
        """
        connection = await self._runtime.connection(self.name)
        self._require(connection, "resources/subscribe")
        with connection.listening.watch(uri) as watcher:
            await connection.listening.wait_answered()
            watcher.check()
            yield watcher

    @asynccontextmanager
    async def watch_log(self) -> AsyncIterator[LogWatcher]:
        """Iterate over its log messages while the block runs; untrusted. Cancellation: safe."""
        connection = await self._runtime.connection(self.name)
        with connection.listening.watch_log() as watcher:
            yield watcher

    async def _items(self, method: str) -> list[bytes]:
        """Fetch a list, all pages, undecoded; empty where the server did not declare it."""
        connection = await self._runtime.connection(self.name)
        if connection.info is None or missing_capability(method, connection.info) is not None:
            return []
        pages = PageCollector(method, LIST_KEYS[method])
        params: JsonObject | None = pages.first()
        while params is not None:
            params = pages.feed(await connection.request(method, params))
        return pages.items

    async def _ask(self, method: str, params: JsonObject, *, timeout: float | None = None) -> JsonObject:
        connection, timeout = await self._runtime.reach(self.name, timeout)
        self._require(connection, method)
        return decode_object(await connection.request(method, params, timeout=timeout))

    def _require(self, connection: Connection, method: str) -> None:
        assert connection.info is not None
        missing = missing_capability(method, connection.info)
        if missing is not None:
            raise LocalProtocolError(server=self.name, reason=f"the server does not offer {missing}")

    def __repr__(self) -> str:
        status = self._runtime.status().get(self.name)
        return f"<Server {self.name} {'removed' if status is None else status.state}>"


def _count(items: Sized | None) -> int | None:
    return None if items is None else len(items)
