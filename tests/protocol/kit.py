"""A scripted server without I/O, a fake link in cuts of any size, and sessions in the states that tests need."""

from __future__ import annotations

from attrs import define, field

from mcp_actors.protocol import events as happened
from mcp_actors.protocol.framing import LineFramer, encode_line
from mcp_actors.protocol.jsonrpc import decode, decode_object, encode
from mcp_actors.protocol.session import Session, SessionSettings, SessionState
from mcp_actors.protocol.types import Era

NEW, OLD = "2026-07-28", "2025-11-25"
ERAS = [Era.LEGACY, Era.MODERN]


def ready(era: Era, **settings: object) -> Session[str]:
    """A session past its handshake, drained; its next request has the id 2."""
    session: Session[str] = Session(SessionSettings(pinned_era=era, **settings))
    session.open(0.0)
    result = {"protocolVersion": OLD} if era is Era.LEGACY else {"supportedVersions": [NEW]}
    say(session, {"id": 1, "result": {**result, "capabilities": {}}})
    assert session.state is SessionState.READY
    session.events()
    session.frames_to_send()
    return session


def probing(**settings: object) -> Session[str]:
    session: Session[str] = Session(SessionSettings(**{"probe_timeout": 5.0, **settings}))
    session.open(100.0)
    session.frames_to_send()
    return session


def hear(session: Session[str], message: object) -> None:
    """Let the peer say `message`."""
    session.receive_message(encode({"jsonrpc": "2.0", **message} if isinstance(message, dict) else message), 0.0)


def say(session: Session[str], message: object) -> list[happened.Event[str]]:
    """Let the peer say `message`; give what happened."""
    hear(session, message)
    return session.events()


def faults(events: list[happened.Event[str]]) -> list[str]:
    return [event.kind for event in events if isinstance(event, happened.PeerFault)]


def sent(session: Session[str]) -> list[dict]:
    return [decode(frame.data) for frame in session.frames_to_send()]


TOOLS = [{"name": f"tool{number}"} for number in range(5)]


@define(eq=False)
class Peer:
    """Answers as a server of one era does. `seen` lists every message it got, decoded, oldest first."""

    era: str
    seen: list[dict] = field(factory=list)

    def receive(self, line: bytes) -> list[bytes]:
        message = decode_object(line)
        self.seen.append(message)
        if "id" not in message or "method" not in message:
            return []
        body = self.answer(message["method"], message.get("params") or {})
        return [encode({"jsonrpc": "2.0", "id": message["id"], **body})]

    def answer(self, method: str, params: dict) -> dict:
        if self.era == "modern" and "io.modelcontextprotocol/protocolVersion" not in params.get("_meta", {}):
            return {"error": {"code": -32602, "message": "no meta"}}
        match (self.era, method):
            case ("modern", "server/discover"):
                return {"result": {"resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": {}}}
            case ("legacy", "initialize"):
                return {"result": {"protocolVersion": params["protocolVersion"], "capabilities": {"tools": {}}}}
            case (_, "tools/list"):
                at = int(params.get("cursor", 0))
                more = {"nextCursor": str(at + 2)} if at + 2 < len(TOOLS) else {}
                return {"result": {"tools": TOOLS[at : at + 2], **more}}
            case (_, "tools/call"):
                return {"result": {"content": [{"type": "text", "text": params["name"]}]}}
        return {"error": {"code": -32601, "message": f"Method not found: {method}"}}


@define(eq=False)
class Link:
    """Carries whatever either side wants to say, in pieces of `step` bytes, until both are quiet."""

    session: Session
    peer: Peer
    step: int = 1000
    to_peer: LineFramer = field(factory=lambda: LineFramer(100_000))
    to_session: LineFramer = field(factory=lambda: LineFramer(100_000))

    def send(self, *frames) -> list:
        """Send `frames` and pump until quiet; give the events that came of it, in order."""
        events = []
        queue = [frame for frame in frames if frame is not None]
        while queue or (queue := self.session.frames_to_send()):
            for line in self.cut(self.to_peer, queue.pop(0).data):
                for answer in self.peer.receive(line):
                    for raw in self.cut(self.to_session, answer):
                        self.session.receive_message(raw, 0.0)
            events += self.session.events()
        return events

    def cut(self, framer: LineFramer, data: bytes) -> list[bytes]:
        line = encode_line(data)
        return [found for at in range(0, len(line), self.step) for found in framer.feed(line[at : at + self.step])]
