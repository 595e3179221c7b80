"""Echo every message, on the `websockets` library: an implementation that shares no code with ours. Prints its port."""

import asyncio
import sys

from websockets.asyncio.server import serve


async def echo(connection):
    print(connection.request.path, connection.subprotocol, connection.request.headers.get("X-Team"), flush=True)
    async for message in connection:
        if message == '"close"':
            await connection.close(4001, "as you wish")
        elif message == '"binary"':
            await connection.send(b"{}")
        elif message == '"pieces"':
            await connection.send(["{", '"a":', "1}"])
        else:
            await connection.send(message)


def check(connection, request):
    return connection.respond(401, "who are you?\n") if request.path == "/locked" else None


async def main():
    async with serve(
        echo, "127.0.0.1", 0, subprotocols=["mcp"], process_request=check, max_size=2**30, compression="deflate"
    ) as server:
        print(server.sockets[0].getsockname()[1], flush=True)
        await asyncio.to_thread(sys.stdin.read)


asyncio.run(main())
