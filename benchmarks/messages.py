"""Owns the messages of the bare floor: prepared bytes and the least reading that still is reading.

What this is not: a client. Nothing here survives a peer that misbehaves.
"""

from __future__ import annotations

import json

MODERN = "2026-07-28"
META = {
    "io.modelcontextprotocol/protocolVersion": MODERN,
    "io.modelcontextprotocol/clientInfo": {"name": "floor", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}


def request(number: int, method: str, **params: object) -> bytes:
    """One modern request without its line end."""
    return json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": {**params, "_meta": META}}).encode()


def call(number: int, tool: str, **arguments: object) -> bytes:
    """One ``tools/call`` without its line end."""
    return request(number, "tools/call", name=tool, arguments=arguments)


def post(path: str, host: str, body: bytes, method: str, name: str | None = None) -> bytes:
    """One POST of streamable HTTP, whole."""
    head = (
        f"POST {path} HTTP/1.1\r\nhost: {host}\r\naccept: application/json, text/event-stream\r\n"
        f"content-type: application/json\r\nmcp-protocol-version: {MODERN}\r\nmcp-method: {method}\r\n"
        + (f"mcp-name: {name}\r\n" if name else "")
        + f"content-length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


def result_of(line: bytes) -> dict:
    """The result in one answer; fails when it is an error."""
    return json.loads(line)["result"]
