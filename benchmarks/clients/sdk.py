"""Owns the official SDK on asyncio, used as its own documentation shows: one `Client` per server.

What this is not: a tuned SDK. With ``"is_shared": true`` all HTTP clients share one connection pool, its best case.
"""

from __future__ import annotations

import asyncio
import time
from contextlib import AsyncExitStack

from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import create_mcp_http_client, streamable_http_client

from benchmarks import measures


def client(target: object, shared: object = None) -> Client:
    if isinstance(target, str):
        return Client(streamable_http_client(target, http_client=shared) if shared else target, cache=None)
    return Client(StdioServerParameters(command=target[0], args=target[1:]), cache=None)


async def connect_all(job: dict) -> int:
    limit = asyncio.Semaphore(job["limit"])
    all_listed = asyncio.Barrier(len(job["targets"]))
    listed = 0

    async def one(target: object, shared: object) -> None:
        nonlocal listed
        async with AsyncExitStack() as stack:
            async with limit:
                connected = await stack.enter_async_context(client(target, shared))
                answer = await connected.list_tools()
                listed += len(answer.tools)
            await all_listed.wait()

    async with AsyncExitStack() as stack:
        shared = await stack.enter_async_context(create_mcp_http_client()) if job.get("is_shared") else None
        async with asyncio.TaskGroup() as group:
            for target in job["targets"]:
                group.create_task(one(target, shared))
    return listed


async def call_in_turn(job: dict) -> list[float]:
    spent = []
    async with client(job["targets"][0]) as connected:
        for _ in range(job["count"]):
            began = time.perf_counter()
            result = await connected.call_tool("echo", {"text": "hello"})
            assert result.content[0].text == "hello"
            spent.append(time.perf_counter() - began)
    return spent


async def call_at_once(job: dict) -> float:
    async with client(job["targets"][0]) as connected:
        numbers = iter(range(job["count"]))

        async def caller() -> None:
            for _ in numbers:
                await connected.call_tool("echo", {"text": "hello"})

        began = time.perf_counter()
        async with asyncio.TaskGroup() as group:
            for _ in range(job["at_once"]):
                group.create_task(caller())
        return time.perf_counter() - began


async def call_big(job: dict) -> list[float]:
    spent = []
    async with client(job["targets"][0]) as connected:
        for _ in range(job["count"]):
            began = time.perf_counter()
            result = await connected.call_tool("blob", {"n": job["bytes"]})
            assert len(result.content[0].text) >= job["bytes"]
            spent.append(time.perf_counter() - began)
    return spent


if __name__ == "__main__":
    measures.main(
        lambda work, job: asyncio.run(work(job)),
        connect=connect_all,
        turn=call_in_turn,
        once=call_at_once,
        big=call_big,
    )
