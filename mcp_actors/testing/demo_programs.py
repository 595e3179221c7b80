"""Owns the tools of the demo's stdio servers: a clock, a notebook and dice; `stdio_server` gives the loop.

What this is not: the list of the demo's servers (`demo_servers`). It imports only what the interpreter has compiled in,
for the reason that `stdio_server` gives.
"""

from __future__ import annotations

import os
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from mcp_actors.testing.stdio_server import Tool

__all__ = ["PROGRAMS"]

MAX_NOTES = 1000
_notes: list[str] = []


def _now(_: dict[str, Any]) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


def _add_note(arguments: dict[str, Any]) -> str:
    if len(_notes) >= MAX_NOTES:
        raise ValueError(f"the notebook is full ({MAX_NOTES} notes)")
    _notes.append(str(arguments["text"]))
    return f"note {len(_notes)} kept"


def _list_notes(_: dict[str, Any]) -> str:
    return "\n".join(f"{number}. {text}" for number, text in enumerate(_notes, 1)) or "no notes yet"


def _roll(arguments: dict[str, Any]) -> str:
    sides, count = int(arguments.get("sides", 6)), int(arguments.get("count", 1))
    if not (2 <= sides <= 1000 and 1 <= count <= 100):
        raise ValueError("sides must be 2 to 1000 and count 1 to 100")
    rolls = [int.from_bytes(os.urandom(8), "big") % sides + 1 for _ in range(count)]
    return " + ".join(map(str, rolls)) + (f" = {sum(rolls)}" if count > 1 else "")


# Program -> its tools, as `stdio_server` takes them.
PROGRAMS: dict[str, dict[str, Tool]] = {
    "clock": {
        "now": ("The time in UTC.", {}, _now),
        "uptime": ("Seconds that this process has used.", {}, lambda _: f"{time.process_time():.3f}"),
    },
    "notes": {
        "add_note": ("Keeps a note for as long as the server lives.", {"text": "string"}, _add_note),
        "list_notes": ("Shows the notes, oldest first.", {}, _list_notes),
    },
    "dice": {"roll": ("Rolls dice.", {"sides": "integer", "count": "integer"}, _roll)},
}
