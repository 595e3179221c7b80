"""Asking the person at a terminal to sign in: what is typed there, and standard inputs that nobody types at."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import trio
import trio.testing

from mcp_actors.cli.signing_in import terminal_sign_in
from mcp_actors.cli.stdin_lines import StdinLines

if TYPE_CHECKING:
    import pytest

    from mcp_actors import BrowserSignInPrompter

START = "https://as.example/authorize?state=S1"
RIGHT = "http://localhost:1/callback?code=C&state=S1"


async def visit(prompter: BrowserSignInPrompter, *, arrives: str | None) -> str:
    got: list[str] = []
    with trio.fail_after(5):
        async with prompter.receive(fixed=None, preferred=None) as landing, trio.open_nursery() as nursery:

            async def come() -> None:
                got.append(await landing.visit(START))

            nursery.start_soon(come)
            if arrives is not None:
                await trio.testing.wait_all_tasks_blocked(0.01)
                assert landing.arrive(arrives)
    return got[0]


async def test_the_address_is_pasted_after_another_one(capsys: pytest.CaptureFixture[str]) -> None:
    """S248: blank lines are nothing, what belongs to no sign-in is told, and the right one ends the visit."""
    reader, writer = os.pipe()
    os.write(writer, f"\nhttp://localhost:1/callback?code=C&state=other\n  {RIGHT} \n".encode())
    prompter = terminal_sign_in(uses_browser=False, lines=StdinLines(reader))

    assert await visit(prompter, arrives=None) == RIGHT

    told = capsys.readouterr().err
    assert START in told
    assert told.count("does not belong to this sign-in") == 1
    os.close(reader)
    os.close(writer)


async def test_a_standard_input_that_nobody_types_at_is_no_end_of_a_sign_in() -> None:
    """S246: with /dev/null there, as a service or a script has it, the visit still arrives by the browser."""
    fd = os.open(os.devnull, os.O_RDONLY)
    prompter = terminal_sign_in(uses_browser=False, lines=StdinLines(fd))

    assert await visit(prompter, arrives=RIGHT) == RIGHT
    os.close(fd)
