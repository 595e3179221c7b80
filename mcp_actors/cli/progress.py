"""Owns progress on a terminal: one moving line on standard error, nothing at all in a pipe.

What this is not: data, or the log. rich draws it where that is installed, and is imported only on a terminal.
"""

from __future__ import annotations

import os
import sys
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Protocol

from mcp_actors.cli import output
from mcp_actors.cli.render import clean_line

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from contextlib import AbstractContextManager

    from mcp_actors.actors.lifecycle import ServerStatus

__all__ = ["Progress", "fleet_text", "open_progress"]

MAX_NAMES = 4


class Progress(Protocol):
    """Where a verb says how far it is."""

    def show(self, text: str) -> None:
        """Replace what is shown."""

    def aside(self) -> AbstractContextManager[None]:
        """Show nothing while the block runs: a person is being asked."""
        ...


class _Silent:
    def show(self, text: str) -> None:
        """Show nothing: nobody looks."""

    def aside(self) -> AbstractContextManager[None]:
        """Show nothing anyway."""
        return nullcontext()


class _Plain:
    """Rewrites one line with a carriage return."""

    def __init__(self) -> None:
        self._text = ""
        self._is_aside = False
        # Whether the verb is done with it; a dialog may be put away later than that.
        self._is_over = False

    def end(self) -> None:
        """Wipe the line for good."""
        self.show("")
        self._is_over = True

    def show(self, text: str) -> None:
        """Replace the line."""
        self._text = text
        if not self._is_aside and not self._is_over:
            output.draw(f"\r\x1b[K{text}")

    @contextmanager
    def aside(self) -> Iterator[None]:
        """Wipe the line while the block runs."""
        text = self._text
        self.show("")
        self._is_aside = True
        try:
            yield
        finally:
            self._is_aside = False
            self.show(text)


@contextmanager
def open_progress(text: str) -> Iterator[Progress]:
    """Show `text` until it is replaced; leaving wipes the line. Silent unless standard error is a terminal."""
    if not sys.stderr.isatty() or os.environ.get("TERM") == "dumb":
        yield _Silent()
        return
    try:
        from rich.console import Console
    except ImportError:
        plain = _Plain()
        plain.show(text)
        try:
            yield plain
        finally:
            plain.end()
        return
    from rich.text import Text

    is_over = False
    with Console(stderr=True).status(Text(text)) as status:

        class _Rich:
            def show(self, text: str) -> None:
                status.update(Text(text))

            @contextmanager
            def aside(self) -> Iterator[None]:
                status.stop()
                try:
                    yield
                finally:
                    # A dialog may be put away after the verb is done: what is started then would never stop.
                    if not is_over:
                        status.start()

        try:
            yield _Rich()
        finally:
            is_over = True


def fleet_text(statuses: Mapping[str, ServerStatus]) -> str:
    """Say how far a fleet is: how many are settled, and who is waited for. Maps server name -> its status."""
    waiting = [name for name, status in statuses.items() if not status.is_settled]
    text = f"{len(statuses) - len(waiting)}/{len(statuses)} servers"
    if waiting:
        more = f" and {len(waiting) - MAX_NAMES} more" if len(waiting) > MAX_NAMES else ""
        text += f", waiting for {', '.join(clean_line(name, 30) for name in waiting[:MAX_NAMES])}{more}"
    return text
