"""Owns the synthetic stdio server: a real child process that is up in the time the interpreter needs to start.

What this is not: a server to judge a client with (`scripted`), nor a library to build servers on.

Rules. (1) Nothing is imported that is not compiled into the interpreter: `json`, `re`, `typing`, `argparse`, `signal`
cost ten milliseconds a process together, as much as the interpreter itself. The accelerator behind `json` does the
parsing; where there is none, `json` does. (2) One thread, one loop; what is due later is held in a list. (3) It ends
with status 0 at end-of-file, at SIGINT and at SIGTERM.

Run it as ``python -m mcp_actors.testing.stdio_server [OPTIONS]`` or, faster, as `synthetic.synthetic_command` says.

Options (each takes a value): ``--tools N`` tools in all (10), ``--era legacy|modern|both`` (both), ``--delay S`` holds
every answer back, ``--start-delay S`` sleeps before the first line is read, ``--page N`` tools on a page (0: all),
``--name TEXT``, ``--program NAME`` one of `demo_programs` instead of the synthetic tools.
"""

from __future__ import annotations

import os
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any, TypeAlias

    Tool: TypeAlias = tuple[str, Mapping[str, str], Callable[[dict[str, Any]], Any]]

__all__ = ["Held", "Refused", "StdioServer", "main", "synthetic_tools", "write"]

META = "io.modelcontextprotocol/"
MODERN = ("2026-07-28",)
LEGACY = ("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05")
ERAS = {"legacy": LEGACY, "modern": MODERN, "both": MODERN + LEGACY}
READ_BYTES = 256 * 1024
USAGE = b"""usage: stdio_server [--tools N] [--era legacy|modern|both] [--delay S] [--start-delay S] [--page N]
                    [--name TEXT] [--program NAME]
"""


def _make_codec() -> tuple[Callable[[str], Any], Callable[[Any], str]]:
    """Decoder and encoder of JSON: the C accelerator without the `json` package around it, or `json`."""
    try:
        import _json

        class Rules:
            strict = True
            object_hook = None
            object_pairs_hook = None
            parse_float = float
            parse_int = int
            parse_constant = _refuse_constant
            memo: dict[str, str] = {}  # noqa: RUF012 (the scanner asks for it)

        scan = _json.make_scanner(Rules)  # type: ignore[arg-type]
        make = _json.make_encoder(None, str, _json.encode_basestring_ascii, None, ":", ",", False, False, False)

        def decode(text: str) -> Any:
            value, end = scan(text, 0)
            if end != len(text):
                raise ValueError("extra data")
            return value

        def encode(value: Any) -> str:
            return "".join(make(value, 0))

        if decode(encode({"a": [1, "é", None]})) == {"a": [1, "é", None]}:
            return decode, encode
    except (ImportError, AttributeError, TypeError):  # another interpreter, or another shape of the accelerator
        pass
    import json

    return json.loads, lambda value: json.dumps(value, separators=(",", ":"))


def _refuse_constant(text: str) -> float:
    raise ValueError(f"{text} is not JSON")


decode, encode = _make_codec()


class Held:
    """What a tool returns to answer later: `result` after `seconds`, and `steps` progress reports on the way."""

    def __init__(self, seconds: float, result: Any, steps: int = 0) -> None:
        self.seconds = seconds
        self.result = result
        self.steps = steps


def synthetic_tools(count: int) -> dict[str, Tool]:
    """The first `count` of the named tools, filled up with echoes named ``tool_008`` and so on."""
    tools: dict[str, Tool] = {
        "echo": ("Returns its text.", {"text": "string"}, lambda a: str(a["text"])),
        "add": ("Adds two numbers.", {"a": "number", "b": "number"}, lambda a: str(a["a"] + a["b"])),
        "blob": ("Returns n bytes of text.", {"n": "integer"}, lambda a: "x" * int(a["n"])),
        "sleep": ("Answers after some seconds.", {"seconds": "number"}, lambda a: Held(float(a["seconds"]), "slept")),
        "progress": (
            "Reports so many steps, spread over some seconds.",
            {"steps": "integer", "seconds": "number"},
            lambda a: Held(float(a.get("seconds", 0)), "done", int(a["steps"])),
        ),
        "fail": ("Reports failure.", {"text": "string"}, _fail),
        "pid": ("Tells its process id.", {}, lambda _: str(os.getpid())),
        "die": ("Exits with a status, without an answer.", {"status": "integer"}, lambda a: os._exit(int(a["status"]))),
    }
    named = dict(list(tools.items())[:count])
    for number in range(len(named), count):
        named[f"tool_{number:03}"] = (f"Echo number {number}.", {"text": "string"}, lambda a: str(a["text"]))
    return named


def _fail(arguments: dict[str, Any]) -> str:
    raise ValueError(str(arguments.get("text", "failed on request")))


class Refused(Exception):
    """An error answer: code, message, data."""


class StdioServer:
    """One server on descriptors 0 and 1. `tools` maps name -> (description, argument -> JSON type, function)."""

    def __init__(
        self, tools: dict[str, Tool], *, name: str = "synthetic", era: str = "both", delay: float = 0.0, page: int = 0
    ) -> None:
        self.tools = tools
        self.info = {"name": name, "version": "1.0.0"}
        self.revisions = ERAS[era]
        self.delay = delay
        self.page = page or max(len(tools), 1)
        # (when it is due on the monotonic clock, the request it belongs to, the message), soonest first.
        self.held: list[tuple[float, Any, dict[str, Any]]] = []
        self.is_initialized = False
        self.listed = [_listing(name, tool) for name, tool in tools.items()]

    # ── one message ──────────────────────────────────────────────────────────────────────────────────────────────────

    def answer(self, line: bytes) -> list[dict[str, Any]]:
        """Answer one line: what to write now; what is due later goes to `held`."""
        try:
            message = decode(line.decode())
        except (ValueError, StopIteration, RecursionError):
            return [{"jsonrpc": "2.0", "id": None, "error": {"code": -32700, "message": "parse error"}}]
        if type(message) is not dict or type(message.get("method")) is not str:
            return []  # an answer; this server never asks
        method, params, request = message["method"], message.get("params"), message.get("id")
        params = params if type(params) is dict else {}
        if "id" not in message:
            if method == "notifications/cancelled":
                self.held = [entry for entry in self.held if entry[1] != params.get("requestId")]
            return []
        try:
            result, is_modern = self.dispatch(method, params)
        except Refused as refused:
            code, text, data = refused.args
            error = {"code": code, "message": text} | ({} if data is None else {"data": data})
            return self.hold(self.delay, request, [{"jsonrpc": "2.0", "id": request, "error": error}])
        steps: list[tuple[float, dict[str, Any]]] = []
        seconds = self.delay
        if isinstance(result, Held):
            token = params.get("_meta", {}).get("progressToken")
            seconds += result.seconds
            for step in range(1, result.steps + 1 if token is not None else 1):
                note = {"progressToken": token, "progress": step, "total": result.steps}
                due = self.delay + result.seconds * step / result.steps
                steps.append((due, {"jsonrpc": "2.0", "method": "notifications/progress", "params": note}))
            result = _text(result.result)
        if is_modern:
            result = {"resultType": "complete", "_meta": {META + "serverInfo": self.info}, **result}
            if method != "tools/call":
                result |= {"ttlMs": 0, "cacheScope": "private"}
        now: list[dict[str, Any]] = []
        for due, note in steps:
            now += self.hold(due, request, [note])
        return now + self.hold(seconds, request, [{"jsonrpc": "2.0", "id": request, "result": result}])

    def hold(self, seconds: float, request: Any, messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """`messages` when they are due at once, else nothing: then they are held."""
        if seconds <= 0:
            return messages
        due = time.monotonic() + seconds
        self.held += [(due, request, message) for message in messages]
        self.held.sort(key=lambda entry: entry[0])
        return []

    def dispatch(self, method: str, params: dict[str, Any]) -> tuple[Any, bool]:
        """Result of a request, and whether it was a modern one (spec_client 3.1, 13.2)."""
        meta = params.get("_meta")
        meta = meta if type(meta) is dict else {}
        revision = meta.get(META + "protocolVersion")
        speaks_modern = MODERN[0] in self.revisions
        speaks_legacy = LEGACY[0] in self.revisions
        is_modern = speaks_modern and (revision is not None or method == "server/discover" or not speaks_legacy)
        if method == "initialize" and (speaks_legacy or not is_modern or revision is None):
            wanted = params.get("protocolVersion")
            if not speaks_legacy:
                raise self.wrong_revision(str(wanted))
            self.is_initialized = True
            chosen = wanted if wanted in LEGACY else LEGACY[0]
            return {"protocolVersion": chosen, "capabilities": {"tools": {}}, "serverInfo": self.info}, False
        if is_modern:
            if type(revision) is not str or type(meta.get(META + "clientCapabilities")) is not dict:
                raise Refused(-32602, "_meta lacks protocolVersion or clientCapabilities", None)
            if revision not in MODERN:
                raise self.wrong_revision(revision)
            if method == "server/discover":
                return {"supportedVersions": self.revisions, "capabilities": {"tools": {}}}, True
        elif method == "ping":
            return {}, False
        if method == "tools/list":
            return self.list_page(params.get("cursor")), is_modern
        if method == "tools/call":
            return self.call(params), is_modern
        raise Refused(-32601, "method not found: " + method, None)

    def wrong_revision(self, requested: str) -> Refused:
        """The error that names what is spoken here."""
        return Refused(-32022, "unsupported protocol version", {"supported": self.revisions, "requested": requested})

    def list_page(self, cursor: Any) -> dict[str, Any]:
        """One page of the tools; cursors are positions."""
        if cursor is not None and not (type(cursor) is str and cursor.isdecimal() and int(cursor) < len(self.listed)):
            raise Refused(-32602, "invalid cursor", None)
        start = int(cursor or 0)
        end = start + self.page
        page: dict[str, Any] = {"tools": self.listed[start:end]}
        if end < len(self.listed):
            page["nextCursor"] = str(end)
        return page

    def call(self, params: dict[str, Any]) -> Any:
        """Call a tool: a result object, or a `Held` one."""
        tool = self.tools.get(str(params.get("name")))
        if tool is None:
            raise Refused(-32602, f"unknown tool: {params.get('name')}", None)
        try:
            answer = tool[2](params.get("arguments") or {})
        except (KeyError, TypeError, ValueError, AttributeError) as exc:
            return {**_text(f"{type(exc).__name__}: {exc}"), "isError": True}
        return answer if isinstance(answer, Held) else _text(answer)

    # ── the loop ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def serve(self) -> None:
        """Serve descriptors 0 and 1 until end-of-file."""
        parts: list[bytes] = []
        while True:
            chunk = self.read()
            if chunk is None:  # something held is due
                now = time.monotonic()
                due = [message for when, _, message in self.held if when <= now]
                self.held = [entry for entry in self.held if entry[0] > now]
                write(due)
                continue
            if not chunk:
                return
            parts.append(chunk)
            if b"\n" not in chunk:
                continue
            *lines, rest = b"".join(parts).split(b"\n")
            parts = [rest]
            write([message for line in lines if (text := line.strip()) for message in self.answer(text)])

    def read(self) -> bytes | None:
        """The next bytes; b"" at end-of-file, None when something held is due first."""
        if self.held:
            import select

            wait = max(self.held[0][0] - time.monotonic(), 0)
            if not select.select([0], [], [], wait)[0]:
                return None
        return os.read(0, READ_BYTES)


def _listing(name: str, tool: Tool) -> dict[str, Any]:
    properties = {key: {"type": kind} for key, kind in tool[1].items()}
    return {"name": name, "description": tool[0], "inputSchema": {"type": "object", "properties": properties}}


def _text(text: object) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": str(text)}]}


def write(messages: list[dict[str, Any]]) -> None:
    """Write all messages in as few writes as the pipe takes."""
    if messages:
        left = memoryview("".join([encode(message) + "\n" for message in messages]).encode())
        while left:
            left = left[os.write(1, left) :]


def _leave(*_: object) -> None:
    os._exit(0)


def main(arguments: list[str] | None = None) -> None:
    """Serve as a process; `arguments` are pairs ``--option value``. Never returns."""
    import _signal  # type: ignore[import-not-found]

    _signal.signal(_signal.SIGINT, _leave)
    _signal.signal(_signal.SIGTERM, _leave)
    words = sys.argv[1:] if arguments is None else arguments
    options = dict(zip(words[::2], words[1::2], strict=False))
    unknown = options.keys() - {"--tools", "--era", "--delay", "--start-delay", "--page", "--name", "--program"}
    if unknown or len(words) % 2 or options.get("--era", "both") not in ERAS:
        os.write(2, USAGE)
        os._exit(2)
    program = options.get("--program")
    if program:
        # Beside this file, whether it runs as a module of the package or by its bare name.
        room = __import__((__package__ + "." if __package__ else "") + "demo_programs", fromlist=["PROGRAMS"])
        tools = room.PROGRAMS[program]
    else:
        tools = synthetic_tools(int(options.get("--tools", "10")))
    server = StdioServer(
        tools,
        name=options.get("--name", program or "synthetic"),
        era=options.get("--era", "both"),
        delay=float(options.get("--delay", "0")),
        page=int(options.get("--page", "0")),
    )
    time.sleep(float(options.get("--start-delay", "0")))
    try:
        server.serve()
    except OSError:  # the reader of our answers is gone
        os._exit(0)
    os._exit(0)


if __name__ == "__main__":
    main()
