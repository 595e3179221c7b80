"""An answer that cannot be read ends its call at once, where it shows whose answer it was."""

from __future__ import annotations

import pytest

from mcp_actors.errors import RemoteProtocolError
from mcp_actors.protocol.events import ErrorReceived, PeerFault
from mcp_actors.protocol.inbound import shown_id
from mcp_actors.protocol.types import Era
from tests.protocol.kit import ready

SPOILED = [
    (b'{"jsonrpc":"2.0","id":%d,"result":{"a":', "cut in the middle"),
    (b'{"jsonrpc":"2.0","id":%d,"result":' + b"[" * 5000 + b"]" * 5000 + b"}", "too deep"),
    (b'log: {"jsonrpc":"2.0","id":%d,"result":{}}', "text in front"),
    (b'{"jsonrpc":"2.0","id":%d,"result":{}}{"jsonrpc":"2.0","id":99,"result":{}}', "two on a line"),
    (b'{"result":{"a":tru},"jsonrpc":"2.0","id":%d}', "the id behind the result"),
]


@pytest.mark.parametrize(("raw", "kind"), SPOILED, ids=[kind for _, kind in SPOILED])
def test_a_spoiled_answer_fails_its_call_and_no_other(raw: bytes, kind: str) -> None:
    """The waiter gets a `RemoteProtocolError` now, not its idle clock in half an hour."""
    session = ready(Era.LEGACY)
    frame = session.request("tools/list", None, "mine")
    session.request("tools/list", None, "other")
    session.events()

    session.receive_message(raw.replace(b"%d", str(frame.request_id).encode()), 1.0)
    events = session.events()

    [failed] = [event for event in events if isinstance(event, ErrorReceived)]
    assert (failed.waiter, type(failed.error)) == ("mine", RemoteProtocolError)
    assert any(isinstance(event, PeerFault) for event in events)
    assert session.in_flight == 1


@pytest.mark.parametrize(
    "raw", [b"", b"{", b'{"method":"x","id":1,', b'{"id":"1",', b'{"id":1.5}', b'{"id":99999999999999999999}', b"[1]"]
)
def test_what_shows_no_id_of_ours_ends_nothing(raw: bytes) -> None:
    """Requests of the server, ids of other kinds and rubbish are no answers."""
    assert shown_id(raw) == -1
