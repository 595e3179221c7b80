"""Owns the opening of a browser: never through a shell, and only for URLs that a browser should be given (fault 105).

What this is not: the place where the visit ends (`loopback`).
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING, Final

from mcp_actors.auth.urls import check_url

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["browser_command", "open_browser", "start_browser"]

# First that is there. `wslview` opens Windows' browser out of WSL.
_LINUX: Final = ("wslview", "xdg-open", "gio", "sensible-browser", "x-www-browser")
_DISPLAYS: Final = ("DISPLAY", "WAYLAND_DISPLAY", "WSL_DISTRO_NAME")


def browser_command(url: str, environ: Mapping[str, str], platform: str = sys.platform) -> list[str] | None:
    """The words that open `url`, which was judged; None: no browser is here (no display, a remote shell, a container).

    Source:
        MCP, security best practices; E02, fault 105.
    """
    if platform == "darwin":
        return ["/usr/bin/open", url]
    if platform == "win32":
        # No cmd.exe: `&` and `%` in the URL would be its own.
        return ["rundll32", "url.dll,FileProtocolHandler", url]
    if not any(environ.get(name) for name in _DISPLAYS):
        return None
    for name in _LINUX:
        path = shutil.which(name, path=environ.get("PATH"))
        if path is not None:
            return [path, "open", url] if name == "gio" else [path, url]
    return None


def start_browser(url: str, environ: Mapping[str, str]) -> subprocess.Popen[bytes] | None:
    """Start what opens `url`, which was judged; None where nothing could be started. Waits for nothing."""
    command, quiet = browser_command(url, environ), subprocess.DEVNULL
    if command is None:
        return None
    try:
        # An argument list: no shell ever reads the URL.
        return subprocess.Popen(command, stdin=quiet, stdout=quiet, stderr=quiet, start_new_session=True)
    except OSError:
        return None


def open_browser(url: str, environ: Mapping[str, str] = os.environ) -> bool:
    """Open `url` for the person; returns whether a browser was started. Waits for nothing.

    Raises:
        AuthFailed: the URL must not be opened: not https, and not http on this machine.
    """
    check_url(url, "the page to sign in at")
    starter = start_browser(url, environ)
    if starter is not None:
        starter.returncode = 0  # it outlives us; nobody waits for it, and nobody is warned that nobody does
    return starter is not None
