"""Owns the bare floor: raw pipes and raw sockets on trio, without supervision, bounds or error handling.

What this is not: a way to use MCP. It shows what the machine and trio cost before a client does anything.
"""

from __future__ import annotations

import subprocess
import time
from urllib.parse import urlsplit

import trio

from benchmarks import measures, messages


class Pipes:
    """One child process, one line at a time."""

    def __init__(self, process: trio.Process) -> None:
        self.process = process
        self.buffer = bytearray()

    @classmethod
    async def open(cls, command: list[str]) -> Pipes:
        return cls(await trio.lowlevel.open_process(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE))

    async def exchange(self, body: bytes, *_: object) -> bytes:
        await self.process.stdin.send_all(body + b"\n")
        return await self.read_line()

    async def read_line(self) -> bytes:
        start = 0
        while (end := self.buffer.find(b"\n", start)) < 0:
            start = len(self.buffer)
            self.buffer += await self.process.stdout.receive_some(262_144)
        line = bytes(self.buffer[:end])
        del self.buffer[: end + 1]
        return line

    async def aclose(self) -> None:
        await self.process.stdin.aclose()
        await self.process.wait()
        await self.process.stdout.aclose()


class Socket:
    """One kept-alive connection, one exchange at a time; answers are JSON with a content length."""

    def __init__(self, stream: trio.SocketStream, path: str, host: str) -> None:
        self.stream, self.path, self.host = stream, path, host

    @classmethod
    async def open(cls, url: str) -> Socket:
        parts = urlsplit(url)
        return cls(await trio.open_tcp_stream(parts.hostname, parts.port), parts.path, parts.netloc)

    async def exchange(self, body: bytes, method: str, name: str | None = None) -> bytes:
        await self.stream.send_all(messages.post(self.path, self.host, body, method, name))
        data = bytearray(await self.stream.receive_some(65_536))
        while (head := data.find(b"\r\n\r\n")) < 0:
            data += await self.stream.receive_some(65_536)
        length = int(bytes(data[:head]).lower().split(b"content-length:")[1].split(b"\r\n")[0])
        while len(data) < head + 4 + length:
            data += await self.stream.receive_some(262_144)
        return bytes(data[head + 4 :])

    async def aclose(self) -> None:
        await self.stream.aclose()


async def connect(target: object) -> Pipes | Socket:
    return await (Socket.open(target) if isinstance(target, str) else Pipes.open(target))


async def connect_all(job: dict) -> int:
    limit = trio.CapacityLimiter(job["limit"])
    links: list[Pipes | Socket] = []
    listed = 0

    async def one(target: object) -> None:
        nonlocal listed
        async with limit:
            link = await connect(target)
            links.append(link)
            messages.result_of(await link.exchange(messages.request(1, "server/discover"), "server/discover"))
            answer = await link.exchange(messages.request(2, "tools/list"), "tools/list")
            listed += len(messages.result_of(answer)["tools"])

    async with trio.open_nursery() as nursery:
        for target in job["targets"]:
            nursery.start_soon(one, target)
    async with trio.open_nursery() as nursery:
        for link in links:
            nursery.start_soon(link.aclose)
    return listed


async def call_in_turn(job: dict) -> list[float]:
    link = await connect(job["targets"][0])
    spent = []
    for number in range(job["count"]):
        began = time.perf_counter()
        answer = await link.exchange(messages.call(number, "echo", text="hello"), "tools/call", "echo")
        assert messages.result_of(answer)["content"][0]["text"] == "hello"
        spent.append(time.perf_counter() - began)
    await link.aclose()
    return spent


async def call_at_once(job: dict) -> float:
    link = await Pipes.open(job["targets"][0])
    sent = min(job["at_once"], job["count"])
    answered = 0
    began = time.perf_counter()
    await link.process.stdin.send_all(b"".join(messages.call(n, "echo", text="hello") + b"\n" for n in range(sent)))
    rest = b""
    while answered < job["count"]:
        *lines, rest = (rest + await link.process.stdout.receive_some(262_144)).split(b"\n")
        for line in lines:
            messages.result_of(line)
        answered += len(lines)
        more = min(len(lines), job["count"] - sent)
        if more:
            out = b"".join(messages.call(sent + n, "echo", text="hello") + b"\n" for n in range(more))
            sent += more
            await link.process.stdin.send_all(out)
    spent = time.perf_counter() - began
    await link.aclose()
    return spent


async def call_big(job: dict) -> list[float]:
    link = await connect(job["targets"][0])
    spent = []
    for number in range(job["count"]):
        began = time.perf_counter()
        answer = await link.exchange(messages.call(number, "blob", n=job["bytes"]), "tools/call", "blob")
        assert len(messages.result_of(answer)["content"][0]["text"]) >= job["bytes"]
        spent.append(time.perf_counter() - began)
    await link.aclose()
    return spent


if __name__ == "__main__":
    measures.main(trio.run, connect=connect_all, turn=call_in_turn, once=call_at_once, big=call_big)
