"""The MCP server's side of tests of the auth room: what it answers to a request, driven as the HTTP client does."""

from __future__ import annotations

from oauth_peer import MCP

from mcp_actors.transports.http_client import httpx_library

META = 'Bearer resource_metadata="https://mcp.example.com/.well-known/oauth-protected-resource/mcp"'


class Server:
    """The MCP server: takes one token, and can be told what else to say."""

    def __init__(self, *script, token="access-1", scheme="Bearer"):
        self.script = list(script)
        self.token = token
        self.scheme = scheme
        self.seen = []

    def answer(self, request):
        sent = request.headers.get("authorization")
        self.seen.append((sent, request.headers.get("dpop")))
        if self.script:
            return self.script.pop(0)
        return (200, []) if sent == f"{self.scheme} {self.token}" else (401, [META])


async def send(auth, server, url=MCP, method="POST", **headers):
    """Drive one request as the HTTP client does; returns the last status."""
    library = httpx_library()
    request = library.Request(method, url, headers=headers)
    flow = auth.async_auth_flow(request)
    try:
        request = await anext(flow)
        while True:
            status, challenges, *more = server.answer(request)
            pairs = [("www-authenticate", value) for value in challenges] + list(more)
            response = library.Response(status, headers=pairs, request=request)
            try:
                request = await flow.asend(response)
            except StopAsyncIteration:
                return status
    finally:
        await flow.aclose()
