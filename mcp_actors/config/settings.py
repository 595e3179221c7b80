"""Owns `Settings`: the numbers of a runtime, read once from an environment mapping that is passed in (S362).

What this is not: per-server configuration (`specs`).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Literal, NamedTuple

from mcp_actors.config.specs import LIBRARY_RESTARTS, RestartDefaults
from mcp_actors.values import frozen

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["DEFAULT_CALL_TIMEOUT", "Settings", "SettingsRead", "read_callback_port", "read_settings"]

# About 28 hours: nobody set it, so it says nothing of other clocks (S076, S199).
DEFAULT_CALL_TIMEOUT = 100_000.0
TRUE_WORDS = frozenset({"1", "true", "yes", "on"})


@frozen
class Settings:
    """Limits and times of one runtime. Durations are seconds, sizes are bytes."""

    # One connect attempt: spawn or open, and handshake; waiting for a permit is not counted (S107).
    connect_timeout: float = 30.0
    # One call, in effect unlimited by default (S199).
    call_timeout: float = DEFAULT_CALL_TIMEOUT
    # Neither answer nor progress of a call for so long; 0 is off, None 300 over a network and 1800 on stdio (S201).
    idle_timeout: float | None = None
    # Connects under way at once (S105).
    local_batch: int = 3
    remote_batch: int = 20
    # Silence after the era probe on stdio that means legacy (spec_client 3.4).
    probe_timeout: float = 5.0
    # Longest message of a server that is read (S070, S083, fault 11).
    max_message_bytes: int = 64 * 1024 * 1024
    # Waits of the stop ladder: after end-of-file with SIGINT, after SIGTERM, after SIGKILL (S138).
    stop_interrupt: float = 2.0
    stop_terminate: float = 2.0
    stop_reap: float = 2.0
    # What says that a wire session is lost: "dual" is 404 with -32001, "spec" any 404 to a request with our session id;
    # for servers that forget sessions with a bare 404 (S405, S407).
    session_expiry: Literal["dual", "spec"] = "dual"
    # A ping into a silence of so long, and how long its answer may take: sse, in the legacy era, and ws (S127).
    ping_interval: float = 30.0
    ping_timeout: float = 10.0
    # What calls in flight to a server that a reload changed have to end, before they are failed.
    drain_timeout: float = 30.0
    # How servers are restarted whose definition does not say (S116-S118, S120).
    restarts: RestartDefaults = LIBRARY_RESTARTS
    # Registry updates are collected for so long, from the first one (S366).
    publish_window: float = 0.016


class SettingsRead(NamedTuple):
    """Settings, and one warning for each variable whose value could not be used (S365)."""

    settings: Settings
    warnings: tuple[str, ...]


def read_settings(environ: Mapping[str, str]) -> SettingsRead:
    """Read the settings out of `environ` (variable name -> text).

    Returns:
        The settings and the warnings, in the order of the table in docs/reference.

    Source:
        S105, S107, S199, S201, S349, S355, S356, S357, S359, S362, S365.
    """
    warnings: list[str] = []

    def number(name: str, default: float, unit: float, floor: float) -> float:
        text = environ.get(name)
        if text is None:
            return default
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if not math.isfinite(value) or value <= 0:
            used = f"{default / unit:.15g}" if math.isfinite(default) else "its default"
            warnings.append(f"{name}={text!r} is not a positive number: {used} is used")
            return default
        return max(value, floor) * unit

    def seconds_or_off(name: str, floor: float) -> float | None:
        text = environ.get(name, "").strip()
        if text and not text.strip("0"):
            return 0.0
        value = number(name, math.inf, 0.001, floor)
        return value if math.isfinite(value) else None

    default = Settings()
    settings = Settings(
        connect_timeout=number("MCP_TIMEOUT", default.connect_timeout, 0.001, 1),
        call_timeout=number("MCP_TOOL_TIMEOUT", default.call_timeout, 0.001, 1000),
        idle_timeout=seconds_or_off("CLAUDE_CODE_MCP_TOOL_IDLE_TIMEOUT", 1000),
        local_batch=int(number("MCP_SERVER_CONNECTION_BATCH_SIZE", default.local_batch, 1, 1)),
        remote_batch=int(number("MCP_REMOTE_SERVER_CONNECTION_BATCH_SIZE", default.remote_batch, 1, 1)),
    )
    port = environ.get("MCP_OAUTH_CALLBACK_PORT", "").strip()
    if port and read_callback_port(environ) is None:
        warnings.append(f"MCP_OAUTH_CALLBACK_PORT={port!r} is no port number: any free port is used")
    return SettingsRead(settings, tuple(warnings))


def read_callback_port(environ: Mapping[str, str]) -> int | None:
    """The port that sign-ins come back to, where ``MCP_OAUTH_CALLBACK_PORT`` names one; else None (S361, S365)."""
    text = environ.get("MCP_OAUTH_CALLBACK_PORT", "").strip()
    port = int(text) if text.isascii() and text.isdigit() and len(text) <= 5 else 0
    return port if 0 < port < 65536 else None
