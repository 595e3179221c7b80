"""A server that accepts everything and never answers: who waits for it is told in time, and nobody else notices."""

from __future__ import annotations

import pytest
import trio

from mcp_actors.config.specs import RemoteTarget, ServerSpec
from mcp_actors.runtime import open_runtime
from mcp_actors.testing.http_server import open_http_server
from mcp_actors.testing.scripted import LEGACY_REVISIONS, MODERN_REVISIONS
from tests.scripted_fleet import echo_server

ERAS = {"modern": MODERN_REVISIONS, "legacy": LEGACY_REVISIONS}


# Clock -> how the server's spec and the call say what runs out.
CLOCKS: dict[str, tuple[dict[str, float], float | None]] = {
    "wall": ({}, 0.5),
    "first-byte": ({"request_timeout": 0.5}, None),
}


@pytest.mark.parametrize("clock", CLOCKS)
@pytest.mark.parametrize("era", ERAS)
async def test_a_call_into_a_black_hole_fails_on_its_clock_and_hurts_no_other(era: str, clock: str) -> None:
    """Twenty calls into it end by that clock, while another server answers and it stays usable (S076, fault 88)."""
    spec, timeout = CLOCKS[clock]
    hole, good = echo_server(revisions=ERAS[era]), echo_server(revisions=ERAS[era])
    late: list[int] = []
    texts: list[str] = []

    with trio.fail_after(30):
        async with open_http_server(hole) as hole_url, open_http_server(good) as good_url:
            specs = [ServerSpec("hole", RemoteTarget(hole_url), **spec), ServerSpec("good", RemoteTarget(good_url))]
            async with open_runtime(specs) as runtime:
                await runtime.wait_ready()
                hole.silence("tools/call")

                async def fall(number: int) -> None:
                    with pytest.raises(trio.TooSlowError, match=f"the {clock} clock ran out after 0.5 s"):
                        await runtime.call_tool("hole.echo", {"text": str(number)}, timeout=timeout)
                    late.append(number)

                async with trio.open_nursery() as nursery:
                    for number in range(20):
                        nursery.start_soon(fall, number)
                    await hole.wait_seen("tools/call", 1)
                    texts += [(await runtime.call_tool("good.echo", {"text": "fine"})).text for _ in range(20)]
                if era == "legacy":  # modern: the closed response stream is the cancel
                    await hole.wait_seen("notifications/cancelled", len(hole.seen("tools/call")))
                hole.obey("tools/call")
                after = await runtime.call_tool("hole.echo", {"text": "back"})
                statuses = runtime.status()

    assert sorted(late) == list(range(20))
    assert texts == ["fine"] * 20
    assert after.text == "back"
    assert {name: (status.is_connected, status.restarts) for name, status in statuses.items()} == {
        "hole": (True, 0),
        "good": (True, 0),
    }
    assert hole.violations + good.violations == []
