"""Tests of the negotiation: every row of spec_client 3.4 and 3.5, and A01-A08."""

from __future__ import annotations

import pytest

from mcp_actors.errors import AuthRequired, ConnectFailed, RemoteProtocolError, RpcError, UnsupportedRevision
from mcp_actors.protocol.handshake import Fail, Finish, Handshake, Initialize, Probe, Reopen
from mcp_actors.protocol.types import Era, Refusal

NEW, OLD = "2026-07-28", "2025-11-25"
FUTURE = "2031-01-01"


def discovered(*revisions: str) -> dict[str, object]:
    return {"supportedVersions": list(revisions), "capabilities": {"tools": {}}}


def version_error(*revisions: str) -> RpcError:
    return RpcError(code=-32022, message="unsupported", data={"supported": list(revisions)})


def error(code: int) -> RpcError:
    return RpcError(code=code, message="no")


def in_band(code: int, data: str = "null") -> bytes:
    return b'{"jsonrpc":"2.0","id":null,"error":{"code":%d,"message":"no","data":%s}}' % (code, data.encode())


def probing(*, is_http: bool = False, pinned: Era | None = None) -> Handshake:
    shake = Handshake(is_http, pinned)
    assert shake.begin() == Probe(NEW)
    return shake


def outcome(step: object) -> object:
    """What a table row compares: the class of an error, the revision of anything else."""
    match step:
        case Fail(problem):
            return type(problem)
        case Finish(info):
            return (info.era, info.revision)
        case Probe(revision) | Initialize(revision):
            return (type(step), revision)
    return type(step)


LEGACY = (Initialize, OLD)
MODERN = (Era.MODERN, NEW)
AGAIN = (Probe, NEW)

OTHER_CODES = (-32601, -32602, -32600, -32603, -32700, -32000, -32001, -32002, 0, 1)

# Answer to the probe -> what follows on stdio, what follows on HTTP.
PROBE_ANSWERS = [
    ("discovered", discovered(NEW), MODERN, MODERN),
    ("discovered, eras mixed", discovered(OLD, FUTURE, NEW), MODERN, MODERN),
    ("discovered, legacy only", discovered(OLD, "2024-11-05"), LEGACY, LEGACY),
    ("discovered, a modern that we lack", discovered(FUTURE), UnsupportedRevision, UnsupportedRevision),
    ("discovered, a modern that we lack and legacy", discovered(FUTURE, OLD), LEGACY, LEGACY),
    ("discovered, none", discovered(), LEGACY, LEGACY),
    ("a result of something else", {"tools": []}, LEGACY, LEGACY),
    ("nonsense versions", {"supportedVersions": {"a": 1}}, LEGACY, LEGACY),
    ("-32022 with ours", version_error(NEW), AGAIN, AGAIN),
    ("-32022 with ours among others", version_error(OLD, NEW, FUTURE), AGAIN, AGAIN),
    ("-32022, modern but disjoint", version_error(FUTURE), UnsupportedRevision, UnsupportedRevision),
    ("-32022, legacy only", version_error(OLD), LEGACY, LEGACY),
    ("-32022 without a list", RpcError(code=-32022, message="x"), LEGACY, UnsupportedRevision),
    ("-32020", error(-32020), LEGACY, RpcError),
    ("-32021", error(-32021), LEGACY, RpcError),
    *(
        (str(code), error(code), LEGACY, LEGACY)
        for code in (-32601, -32602, -32600, -32603, -32700, -32000, -32001, 0, 1)
    ),
    ("a malformed answer", RemoteProtocolError(reason="x"), LEGACY, LEGACY),
]


@pytest.mark.parametrize(
    ("answer", "on_stdio", "on_http"), [row[1:] for row in PROBE_ANSWERS], ids=[row[0] for row in PROBE_ANSWERS]
)
def test_what_an_answer_to_the_probe_means(answer, on_stdio, on_http):
    """Each answer leads where spec_client 3.4 and 3.5 say (A01-A04)."""
    for is_http, expected in ((False, on_stdio), (True, on_http)):
        shake = probing(is_http=is_http)
        step = shake.probe_answered(answer) if isinstance(answer, dict) else shake.probe_failed(answer)
        assert outcome(step) == expected


@pytest.mark.parametrize(
    ("refusal", "expected"),
    [
        (Refusal(400), LEGACY),
        (Refusal(404), LEGACY),
        (Refusal(405), LEGACY),
        (Refusal(406, "text/html", b"<html>"), LEGACY),
        (Refusal(400, "application/json", b'{"error":"bad"}'), LEGACY),
        (Refusal(400, "application/json", in_band(-32000)), LEGACY),
        (Refusal(400, "application/json", in_band(-32602)), LEGACY),
        (Refusal(404, "application/json", in_band(-32601)), LEGACY),
        (Refusal(400, "application/json", in_band(-32022, '{"supported":["2026-07-28"]}')), AGAIN),
        (Refusal(400, "application/json", in_band(-32022, '{"supported":["2025-11-25"]}')), LEGACY),
        (Refusal(400, "application/json", in_band(-32022, '{"supported":["2031-01-01"]}')), UnsupportedRevision),
        (Refusal(400, "application/json", in_band(-32022)), UnsupportedRevision),
        (Refusal(400, "application/json", in_band(-32020)), RpcError),
        (Refusal(400, "application/json", in_band(-32021)), RpcError),
        (Refusal(401), AuthRequired),
        (Refusal(401, "application/json", in_band(-32601)), AuthRequired),
        (Refusal(403), AuthRequired),
        (Refusal(403, "application/json", in_band(-32601)), AuthRequired),
        (Refusal(408), ConnectFailed),
        (Refusal(429), ConnectFailed),
        (Refusal(500), ConnectFailed),
        (Refusal(500, "application/json", in_band(-32601)), ConnectFailed),
        (Refusal(503, retry_after=3.0), ConnectFailed),
        (Refusal(302), ConnectFailed),
        (Refusal(200, "text/html", b"<html>sign in</html>"), ConnectFailed),
        (Refusal(202), LEGACY),
        (Refusal(200), LEGACY),
    ],
    ids=lambda value: f"{value.status} {value.body.decode()[:60]}" if isinstance(value, Refusal) else "",
)
def test_what_a_refusal_of_the_probe_means(refusal, expected):
    """On HTTP the body of a 4xx decides; login, outage and pages never show an era (A04, A05, faults 34, 37)."""
    assert outcome(probing(is_http=True).probe_refused(refusal)) == expected


@pytest.mark.parametrize(
    ("is_http", "pinned", "silence", "death"),
    [
        (False, None, LEGACY, Reopen),
        (True, None, type(None), type(None)),
        (False, Era.MODERN, type(None), type(None)),
    ],
)
def test_what_silence_and_death_mean(is_http, pinned, silence, death):
    """Silence and death on the probe mean legacy on stdio, an outage on HTTP, nothing where the era is pinned (A02)."""
    assert outcome(probing(is_http=is_http, pinned=pinned).probe_unanswered()) == silence
    assert outcome(probing(is_http=is_http, pinned=pinned).probe_ended_wire()) == death


def test_a_server_may_name_the_version_that_it_just_refused():
    """-32022 naming the very version just sent is retried once at it, then it is an error: guarded by count (A03)."""
    shake = probing()

    assert outcome(shake.probe_failed(version_error(NEW))) == AGAIN
    assert outcome(shake.probe_failed(version_error(NEW))) is UnsupportedRevision


def test_the_second_probe_can_still_end_well_or_in_legacy():
    """After the retry the same table holds."""
    well, legacy = probing(), probing()
    well.probe_failed(version_error(NEW))
    legacy.probe_failed(version_error(NEW))

    assert outcome(well.probe_answered(discovered(NEW))) == MODERN
    assert outcome(legacy.probe_failed(error(-32601))) == LEGACY


def test_pinned_to_legacy_never_probes():
    """A legacy pin starts with initialize at the newest legacy revision and never leaves legacy (A07)."""
    shake = Handshake(is_http=False, pinned_era=Era.LEGACY)

    assert shake.begin() == Initialize(OLD)
    assert outcome(shake.initialize_failed(version_error(NEW))) is UnsupportedRevision


@pytest.mark.parametrize("answer", [row[1] for row in PROBE_ANSWERS], ids=[row[0] for row in PROBE_ANSWERS])
@pytest.mark.parametrize("is_http", [True, False])
def test_pinned_to_modern_never_initializes(answer, is_http):
    """With a modern pin no answer leads to initialize (A07)."""
    shake = probing(is_http=is_http, pinned=Era.MODERN)

    step = shake.probe_answered(answer) if isinstance(answer, dict) else shake.probe_failed(answer)

    assert not isinstance(step, Initialize | Reopen)


@pytest.mark.parametrize(
    ("answered", "expected"),
    [
        (OLD, (Era.LEGACY, OLD)),
        ("2025-06-18", (Era.LEGACY, "2025-06-18")),
        ("2024-11-05", (Era.LEGACY, "2024-11-05")),
        (FUTURE, UnsupportedRevision),
        (NEW, UnsupportedRevision),
        ("", UnsupportedRevision),
        (None, UnsupportedRevision),
        (5, UnsupportedRevision),
    ],
)
def test_which_answered_version_is_taken(answered, expected):
    """A legacy revision that we know is taken, any other ends with an error that names both (A08, fault 78, S111)."""
    shake = Handshake(is_http=False, pinned_era=Era.LEGACY)
    shake.begin()

    step = shake.initialize_answered({"protocolVersion": answered, "capabilities": {}})

    assert outcome(step) == expected
    if isinstance(step, Fail) and isinstance(answered, str) and answered:
        assert OLD in str(step.error)
        assert answered in str(step.error)


def falling_back() -> Handshake:
    shake = probing()
    assert outcome(shake.probe_unanswered()) == LEGACY
    return shake


def test_a_slow_modern_server_is_probed_again():
    """When initialize after a silent probe is refused with -32022, the version that it names is probed once (3.4.6)."""
    shake = falling_back()

    assert outcome(shake.initialize_failed(version_error(NEW))) == AGAIN
    assert outcome(shake.probe_unanswered()) == LEGACY
    assert outcome(shake.initialize_failed(version_error(NEW))) is UnsupportedRevision


def test_initialize_is_offered_again_at_a_legacy_version_that_is_named():
    """An error that names legacy versions is followed by another offer, a counted number of times."""
    shake = falling_back()
    named = RpcError(code=-32602, message="Unsupported protocol version", data={"supported": ["2024-11-05"]})
    other = RpcError(code=-32602, message="Unsupported protocol version", data={"supported": ["2025-06-18"]})

    steps = [shake.initialize_failed(named), shake.initialize_failed(other), shake.initialize_failed(named)]

    assert [outcome(step) for step in steps] == [
        (Initialize, "2024-11-05"),
        (Initialize, "2025-06-18"),
        UnsupportedRevision,
    ]


@pytest.mark.parametrize(
    ("problem", "expected"),
    [
        (error(-32601), RpcError),
        (version_error(FUTURE), UnsupportedRevision),
        (version_error(), UnsupportedRevision),
        (RemoteProtocolError(reason="x"), RemoteProtocolError),
    ],
)
def test_initialize_that_fails_ends_the_handshake(problem, expected):
    """Other errors of initialize are shown as they are; a modern-only server's versions are named."""
    assert outcome(falling_back().initialize_failed(problem)) is expected


@pytest.mark.parametrize(
    ("refusal", "expected"),
    [
        (Refusal(401), AuthRequired),
        (Refusal(404), ConnectFailed),
        (Refusal(500), ConnectFailed),
        (Refusal(400, "application/json", in_band(-32000)), RpcError),
        (Refusal(400, "application/json", in_band(-32022, '{"supported":["2026-07-28"]}')), Probe),
    ],
    ids=lambda value: str(value.status) if isinstance(value, Refusal) else "",
)
def test_initialize_that_is_refused_ends_the_handshake(refusal, expected):
    """A refused initialize fails with its status, which may lead to the older transport (A04)."""
    shake = probing(is_http=True)
    shake.probe_refused(Refusal(404))

    step = shake.initialize_refused(refusal)

    assert (type(step.error) if isinstance(step, Fail) else type(step)) is expected


def test_errors_show_both_attempts():
    """When the probe and initialize both failed, the error tells of both (fault 34)."""
    shake = probing(is_http=True)
    shake.probe_refused(Refusal(405, "text/plain", b"first", url="https://h/mcp"))

    step = shake.initialize_refused(Refusal(404, "text/plain", b"second", url="https://h/mcp"))

    assert isinstance(step, Fail)
    assert isinstance(step.error, ConnectFailed)
    assert step.error.http_status == 404
    assert "second" in str(step.error)
    assert "405" in str(step.error)


def test_the_same_fault_is_told_once():
    """A probe and an initialize that failed with the same words make one error of one sentence."""
    shake = probing(is_http=True)
    wrong = Refusal(404, "text/html", b"<html>nothing here", url="https://h/mcp")
    shake.probe_refused(wrong)

    step = shake.initialize_refused(wrong)

    assert isinstance(step, Fail)
    assert str(step.error).count("nothing here") == 1


@pytest.mark.parametrize(
    "where", [{"_meta": {"io.modelcontextprotocol/serverInfo": {"name": "n"}}}, {"serverInfo": {"name": "n"}}]
)
def test_a_modern_server_introduces_itself_in_either_place(where):
    """The server's name is read from the meta, or from the body where early servers put it (3.2)."""
    step = probing().probe_answered({**discovered(NEW), "instructions": "hi", **where})

    assert isinstance(step, Finish)
    assert (step.info.name, step.info.instructions, step.info.has("tools")) == ("n", "hi", True)


def test_nonsense_in_the_introduction_is_dropped():
    """Members of another type count as absent; the handshake stands."""
    step = probing().probe_answered(
        {"supportedVersions": [NEW], "capabilities": [], "serverInfo": 5, "instructions": {}, "_meta": []}
    )

    assert isinstance(step, Finish)
    assert step.info.capabilities == step.info.implementation == {}
    assert step.info.instructions is None


def remembering(*, is_http: bool = False, pinned: Era | None = None) -> Handshake:
    shake = Handshake(is_http, pinned, Era.LEGACY)
    assert shake.begin() == Initialize(OLD)
    return shake


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (version_error(NEW), AGAIN),
        (error(-32601), AGAIN),
        (b"[]", AGAIN),
        (b'{"protocolVersion":"2031-01-01"}', AGAIN),
        (Refusal(400, body=in_band(-32022)), AGAIN),
        (Refusal(404), AGAIN),
        (Refusal(401), AuthRequired),
        (Refusal(503), ConnectFailed),
        (b'{"protocolVersion":"2025-06-18","capabilities":{}}', (Era.LEGACY, "2025-06-18")),
    ],
)
@pytest.mark.parametrize("is_http", [True, False])
def test_a_refused_memory_is_followed_by_the_probe(is_http, answer, expected):
    """What is said from memory and refused is followed by the probe; a login or an outage says nothing (A06)."""
    shake = remembering(is_http=is_http)

    assert outcome(shake.refused(answer) if isinstance(answer, Refusal) else shake.answered(answer)) == expected


def test_a_refused_memory_is_probed_once():
    """A server that refuses the probe as well is offered initialize once more, and that is the end."""
    shake = remembering()

    steps = [outcome(shake.answered(error(-32601))) for _ in range(3)]

    assert steps == [AGAIN, LEGACY, RpcError]


def test_a_pin_outweighs_a_memory():
    """A refused pin stays a refusal, whatever was found before (A07)."""
    assert outcome(remembering(pinned=Era.LEGACY).answered(version_error(NEW))) is UnsupportedRevision
