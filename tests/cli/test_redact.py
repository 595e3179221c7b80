"""What of an entry may be shown (S030), as one table."""

from __future__ import annotations

import json

import pytest

from mcp_actors.cli.redact import redact_entry, redact_place

CANARY = "canary-4711-do-not-show"


@pytest.mark.parametrize(
    ("entry", "shown"),
    [
        ({"command": "npx", "args": ["-y", "server"]}, {"command": "npx", "args": ["-y", "server"]}),
        ({"env": {"API_KEY": CANARY, "LANG": "C"}}, {"env": {"API_KEY": "***", "LANG": "C"}}),
        ({"env": {"GITHUB_TOKEN": "${GITHUB_TOKEN}"}}, {"env": {"GITHUB_TOKEN": "${GITHUB_TOKEN}"}}),
        ({"env": {"TOKEN": "${T:-" + CANARY + "}"}}, {"env": {"TOKEN": "${T}"}}),
        ({"env": {"DB_PASSWORD": CANARY}}, {"env": {"DB_PASSWORD": "***"}}),
        ({"env": {"URL": f"postgres://me:{CANARY}@host/db"}}, {"env": {"URL": "postgres://***@host/db"}}),
        ({"headers": {"Authorization": f"Bearer {CANARY}"}}, {"headers": {"Authorization": "Bearer ***"}}),
        ({"headers": {"Authorization": "Bearer ${TOKEN}"}}, {"headers": {"Authorization": "Bearer ${TOKEN}"}}),
        ({"headers": {"Authorization": f"Bearer {CANARY}${{T}}"}}, {"headers": {"Authorization": "Bearer ${T}***"}}),
        ({"headers": {"X-Anything": CANARY, "Accept": "a/b"}}, {"headers": {"X-Anything": "***", "Accept": "a/b"}}),
        ({"url": f"https://h/mcp?token={CANARY}&x=${{X}}"}, {"url": "https://h/mcp?token=***&x=${X}"}),
        ({"url": f"https://me:{CANARY}@h:8443/mcp"}, {"url": "https://***@h:8443/mcp"}),
        ({"url": f"https://h/mcp#{CANARY}"}, {"url": "https://h/mcp#***"}),
        ({"url": f"https://h/s/{CANARY.replace('-', '')}0123456789/mcp"}, {"url": "https://h/s/***/mcp"}),
        ({"url": "https://h/mcp"}, {"url": "https://h/mcp"}),
        ({"url": "https://h/v1/oauth2/mcp-2025-06-18"}, {"url": "https://h/v1/oauth2/mcp-2025-06-18"}),
        ({"url": "https://h/api/customer-support/s3"}, {"url": "https://h/api/customer-support/s3"}),
        ({"url": "https://h/a1b2c3d4/mcp"}, {"url": "https://h/***/mcp"}),
        ({"url": "https://h/deadbeef12345/sse"}, {"url": "https://h/***/sse"}),
        ({"url": "https://h/u-9f8e7d6c5b/mcp"}, {"url": "https://h/***/mcp"}),
        ({"url": "https://h/key/opensesame/mcp"}, {"url": "https://h/key/***/mcp"}),
        ({"url": "https://h/${KEY_1a2b3c4d}/mcp"}, {"url": "https://h/${KEY_1a2b3c4d}/mcp"}),
        ({"args": ["--api-key", CANARY, "rest"]}, {"args": ["--api-key", "***", "rest"]}),
        ({"args": [f"--token={CANARY}", "--port=80"]}, {"args": ["--token=***", "--port=80"]}),
        (
            {"args": ["--header", f"Authorization: Bearer {CANARY}"]},
            {"args": ["--header", "Authorization: Bearer ***"]},
        ),
        ({"args": [f"https://h/?k={CANARY}"]}, {"args": ["https://h/?k=***"]}),
        ({"args": ["sk-" + "a1" * 12]}, {"args": ["***"]}),
        ({"oauth": {"clientId": "app", "clientSecret": CANARY}}, {"oauth": {"clientId": "app", "clientSecret": "***"}}),
        ({"unknown": {"deep": {"password": CANARY}}}, {"unknown": {"deep": {"password": "***"}}}),
        ({"timeout": 5, "alwaysLoad": True, "x": None}, {"timeout": 5, "alwaysLoad": True, "x": None}),
    ],
)
def test_redact(entry, shown):
    """Literal secrets become stars, references and everything else stay as written."""
    redacted = redact_entry(entry)

    assert redacted == shown
    assert list(redacted) == list(entry)
    assert CANARY not in json.dumps(redacted)


@pytest.mark.parametrize(
    ("url", "place"),
    [
        (f"https://me:{CANARY}@h:8443/s/{CANARY}?k={CANARY}#{CANARY}", "https://***@h:8443"),
        ("wss://h", "wss://h"),
        ("${BASE}/mcp", "${BASE}"),
        ("https://${HOST}:80/mcp", "https://${HOST}:80"),
        ("http://[::1", "***"),
        ("", ""),
    ],
)
def test_a_place_ends_with_its_host(url, place):
    """A path may hold a key: where no entry is shown, the host is enough (S030)."""
    assert redact_place(url) == place
