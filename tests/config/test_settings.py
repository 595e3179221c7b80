"""Tests of the settings that are read from the environment."""

from __future__ import annotations

import pytest

from mcp_actors.config.settings import DEFAULT_CALL_TIMEOUT, Settings, read_callback_port, read_settings


def test_an_empty_environment_gives_the_defaults():
    """Nothing set, nothing warned of."""
    settings, warnings = read_settings({})

    assert (settings, warnings) == (Settings(), ())
    assert settings.call_timeout == DEFAULT_CALL_TIMEOUT


@pytest.mark.parametrize(
    ("text", "field", "value"),
    [
        ("120000", "call_timeout", 120.0),
        ("10", "call_timeout", 1.0),
        ("abc", "call_timeout", DEFAULT_CALL_TIMEOUT),
        ("0", "call_timeout", DEFAULT_CALL_TIMEOUT),
        ("5000", "idle_timeout", 5.0),
        ("10", "idle_timeout", 1.0),
        ("0", "idle_timeout", 0.0),
        (" 00 ", "idle_timeout", 0.0),
        ("", "idle_timeout", None),
        ("-5", "idle_timeout", None),
        ("soon", "idle_timeout", None),
    ],
)
def test_the_clocks_of_a_call_have_floors(text, field, value):
    """Too short is raised to a second, zero turns idle off, and what is no number is the default (S199, S201, S359)."""
    name = {"call_timeout": "MCP_TOOL_TIMEOUT", "idle_timeout": "CLAUDE_CODE_MCP_TOOL_IDLE_TIMEOUT"}[field]

    settings, warnings = read_settings({name: text})

    assert getattr(settings, field) == value
    is_number = text.strip().isdigit() and (field == "idle_timeout" or int(text))
    assert [name in warning for warning in warnings] == ([] if is_number else [True])


@pytest.mark.parametrize(
    ("name", "field", "default", "text", "value", "told"),
    [
        ("MCP_TIMEOUT", "connect_timeout", 30.0, "60000", 60.0, "30000"),
        ("MCP_TOOL_TIMEOUT", "call_timeout", 100_000.0, "5000", 5.0, "100000000"),
        ("MCP_SERVER_CONNECTION_BATCH_SIZE", "local_batch", 3, "7", 7, "3"),
        ("MCP_REMOTE_SERVER_CONNECTION_BATCH_SIZE", "remote_batch", 20, "50", 50, "20"),
    ],
)
@pytest.mark.parametrize("bad", ["abc", "-1", "0", "inf", "nan", ""])
def test_numbers_of_the_environment(name, field, default, text, value, told, bad):
    """Each variable sets its number; what is no positive number is told once (S355, S356, S357, S365)."""
    assert getattr(Settings(), field) == default
    assert getattr(read_settings({name: text}).settings, field) == value

    settings, warnings = read_settings({name: bad})

    assert getattr(settings, field) == default
    assert warnings == (f"{name}={bad!r} is not a positive number: {told} is used",)


@pytest.mark.parametrize(
    ("text", "port"),
    [("7777", 7777), (" 1 ", 1), ("65535", 65535), ("", None), ("0", None), ("65536", None), ("-1", None), ("x", None)],
)
def test_the_port_of_sign_ins(text, port):
    """`MCP_OAUTH_CALLBACK_PORT` is a port; anything else is told once, and any free port is used (S361, S365)."""
    environ = {"MCP_OAUTH_CALLBACK_PORT": text}

    assert read_callback_port(environ) == port
    assert len(read_settings(environ).warnings) == (port is None and text != "")
