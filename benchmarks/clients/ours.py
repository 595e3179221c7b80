"""Owns this package as a program uses it: `open_runtime` with supervision, registry, naming and limits all on.

What this is not: a shortcut. Nothing private is touched.
"""

from __future__ import annotations

import time

import trio

from benchmarks import measures
from mcp_actors import open_runtime


def config(job: dict) -> dict:
    servers = {}
    for number, target in enumerate(job["targets"]):
        if isinstance(target, str):
            servers[f"s{number}"] = {"type": "http", "url": target}
        else:
            servers[f"s{number}"] = {"command": target[0], "args": target[1:]}
    return {"mcpServers": servers}


def environ(job: dict) -> dict[str, str]:
    limit = str(job.get("limit", 3))
    return {"MCP_SERVER_CONNECTION_BATCH_SIZE": limit, "MCP_REMOTE_SERVER_CONNECTION_BATCH_SIZE": limit}


async def connect_all(job: dict) -> int:
    async with open_runtime(config(job), environ=environ(job)) as runtime:
        await runtime.wait_ready()
        return len(runtime.catalog.tools)


async def call_in_turn(job: dict) -> list[float]:
    spent = []
    async with open_runtime(config(job), environ=environ(job)) as runtime:
        await runtime.wait_ready()
        for _ in range(job["count"]):
            began = time.perf_counter()
            result = await runtime.call_tool("mcp__s0__echo", {"text": "hello"})
            assert result.text == "hello"
            spent.append(time.perf_counter() - began)
    return spent


async def call_at_once(job: dict) -> float:
    async with open_runtime(config(job), environ=environ(job)) as runtime:
        await runtime.wait_ready()
        numbers = iter(range(job["count"]))

        async def caller() -> None:
            for _ in numbers:
                await runtime.call_tool("mcp__s0__echo", {"text": "hello"})

        began = time.perf_counter()
        async with trio.open_nursery() as nursery:
            for _ in range(job["at_once"]):
                nursery.start_soon(caller)
        return time.perf_counter() - began


async def call_big(job: dict) -> list[float]:
    spent = []
    async with open_runtime(config(job), environ=environ(job)) as runtime:
        await runtime.wait_ready()
        for _ in range(job["count"]):
            began = time.perf_counter()
            result = await runtime.call_tool("mcp__s0__blob", {"n": job["bytes"]})
            assert len(result.text) >= job["bytes"]
            spent.append(time.perf_counter() - began)
    return spent


if __name__ == "__main__":
    measures.main(trio.run, connect=connect_all, turn=call_in_turn, once=call_at_once, big=call_big)
