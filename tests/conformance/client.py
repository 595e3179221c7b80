"""Drives our client through one scenario of the public conformance suite: ``python tests/conformance/client.py URL``.

What this is not: a client of its own. Everything goes through the public API; a row below says what a program would do.

The harness starts it once per scenario and says in the environment which one, and what the scenario gives in advance.
Any exception ends it with a non-zero status, which the runner takes as a failure.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any, Final, TypeAlias

import trio

from mcp_actors import Host, Runtime, ServerRequest, Tool, open_runtime
from mcp_actors.errors import RemoteProtocolError

sys.path.insert(0, str(Path(__file__).resolve().parent))
from auth_client import ApprovingPrompter, employ, oauth_block

# What the one server is called.
NAME: Final = "suite"
# Longer than any scenario takes, shorter than the harness waits.
SECONDS: Final = 25.0

# What a scenario gives in advance, decoded from MCP_CONFORMANCE_CONTEXT.
Context: TypeAlias = Mapping[str, Any]
Row: TypeAlias = Callable[[Runtime, Context], Awaitable[None]]


def tools(runtime: Runtime) -> list[Tool]:
    """The tools that a program may call."""
    return list(runtime.catalog.tools.values())


async def just_connect(runtime: Runtime, _: Context) -> None:
    """Nothing more: connecting shakes hands and lists."""


async def succeed(runtime: Runtime, tool: str, arguments: Mapping[str, Any]) -> None:
    """Call a tool that must not fail."""
    result = await runtime.call_tool(f"{NAME}.{tool}", dict(arguments))
    if result.is_error:
        raise SystemExit(f"{tool} failed: {result.text}")


def call(*calls: tuple[str, Mapping[str, Any]]) -> Row:
    """Call these tools, one after the other."""

    async def run(runtime: Runtime, _: Context) -> None:
        for tool, arguments in calls:
            await succeed(runtime, tool, arguments)

    return run


async def call_everything(runtime: Runtime, _: Context) -> None:
    """Call each tool that is offered, without arguments."""
    for tool in tools(runtime):
        await succeed(runtime, tool.name, {})


async def replay(runtime: Runtime, context: Context) -> None:
    """Make the calls that the scenario dictates."""
    for wanted in context["toolCalls"]:
        await succeed(runtime, wanted["name"], wanted["arguments"])


async def touch_everything(runtime: Runtime, _: Context) -> None:
    """Send one request of each method that has a header of its own."""
    await succeed(runtime, "test_headers", {})
    listed = json.loads(await runtime.request(NAME, "resources/list"))
    for resource in listed["resources"]:
        await runtime.request(NAME, "resources/read", {"uri": resource["uri"]})
    await runtime.request(NAME, "prompts/list")
    await runtime.request(NAME, "prompts/get", {"name": "test_prompt"})


async def sign_in(runtime: Runtime, _: Context) -> None:
    """Connecting signed in; what a call is refused for is met as well, so call the first tool."""
    for tool in tools(runtime)[:1]:
        await succeed(runtime, tool.name, {})


async def echo_schema(runtime: Runtime, _: Context) -> None:
    """Give a tool's schema back as our catalog has it."""
    (tool,) = (tool for tool in tools(runtime) if tool.name == "json_schema_2020_12_tool")
    await succeed(runtime, "json_schema_echo", {"schema": tool.input_schema})


async def list_skills(runtime: Runtime, _: Context) -> None:
    """Look at what there is, and read nothing."""
    if not await runtime.server(NAME).skills():
        raise SystemExit("no skills")


def refuse_skill(because: str) -> Row:
    """Load the first skill and read its files, as a model would that follows it; it must be refused for this reason."""

    async def run(runtime: Runtime, _: Context) -> None:
        server = runtime.server(NAME)
        skill, *_ = await server.skills()
        try:
            loaded = await server.load_skill(skill)
            for uri in skill.files or ():
                await loaded.read(uri)
        except RemoteProtocolError as error:
            if because in error.reason:
                return
            raise
        raise SystemExit("it was loaded")

    return run


# Scenario -> what to do once connected.
ROWS: Final[Mapping[str, Row]] = {
    "initialize": just_connect,
    "tools_call": call(("add_numbers", {"a": 5, "b": 3})),
    "elicitation-sep1034-client-defaults": call(("test_client_elicitation_defaults", {})),
    "sse-retry": call(("test_reconnection", {})),
    "request-metadata": just_connect,
    "sep-2322-client-request-state": call(
        ("test_mrtr_echo_state", {}),
        ("test_mrtr_unrelated", {}),
        ("test_mrtr_no_state", {}),
        ("test_mrtr_no_result_type", {}),
    ),
    "http-standard-headers": touch_everything,
    "http-custom-headers": replay,
    "http-invalid-tool-headers": call_everything,
    "json-schema-ref-no-deref": just_connect,
    "json-schema-2020-12-preservation": echo_schema,
    "sep-2640-client-no-prefetch": list_skills,
    "sep-2640-client-verify-digest": refuse_skill("digest"),
    "sep-2640-client-verify-size": refuse_skill("bytes"),
    "sep-2640-client-verify-frontmatter": refuse_skill("they differ in 'description'"),
}
# Scenarios of signing in: one of these wants more than another in what it gives in advance, not in what is done.
AUTH: Final = "auth/"
COMPANY: Final = "auth/enterprise-managed-authorization"


def row_of(scenario: str) -> Row:
    """What to do in this scenario, once connected."""
    return sign_in if scenario.startswith(AUTH) else ROWS[scenario]


# ── what servers may ask ─────────────────────────────────────────────────────────────────────────────────────────────


async def no_roots(_: ServerRequest) -> dict[str, Any]:
    """Offer no directory."""
    return {"roots": []}


async def no_model(_: ServerRequest) -> dict[str, Any]:
    """Play a model that has one thing to say."""
    return {"role": "assistant", "model": "none", "content": {"type": "text", "text": "nothing"}}


async def accept_defaults(request: ServerRequest) -> dict[str, Any]:
    """Accept every form with its defaults; where there is none, a yes."""
    schema = request.params.get("requestedSchema")
    fields = schema.get("properties") if isinstance(schema, Mapping) else None
    content = {
        name: form.get("default", True)
        for name, form in (fields.items() if isinstance(fields, Mapping) else ())
        if isinstance(form, Mapping) and ("default" in form or form.get("type") == "boolean")
    }
    return {"action": "accept", "content": content}


HOST: Final = Host(
    handlers={
        "roots/list": no_roots,
        "sampling/createMessage": no_model,
        "elicitation/create": accept_defaults,
    }
)


async def drive(url: str, scenario: str, context: Context) -> None:
    """Connect to `url`, do what the scenario's row says, disconnect."""
    entry: dict[str, Any] = {"type": "http", "url": url}
    with trio.fail_after(SECONDS), oauth_block(scenario, context) as block:
        if scenario.startswith(AUTH):
            entry["oauth"] = block
        servers = {} if scenario == COMPANY else {NAME: entry}
        async with open_runtime({"mcpServers": servers}, host=HOST, sign_in=ApprovingPrompter()) as runtime:
            if scenario == COMPANY:
                await employ(runtime, NAME, url, context)
            status = (await runtime.wait_ready([NAME]))[NAME]
            if not status.is_connected:
                raise SystemExit(f"not connected: {status.reason} {status.error}")
            await row_of(scenario)(runtime, context)


if __name__ == "__main__":
    trio.run(
        drive,
        sys.argv[-1],
        os.environ["MCP_CONFORMANCE_SCENARIO"],
        json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT") or "{}"),
    )
