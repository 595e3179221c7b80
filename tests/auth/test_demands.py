"""What a server's demand comes to."""

from __future__ import annotations

import pytest

from mcp_actors.auth.challenge import Demand
from mcp_actors.auth.credentials import Credentials
from mcp_actors.auth.demands import is_covered, required, why_no_step
from mcp_actors.auth.discovery import AuthServer
from mcp_actors.auth.options import GrantKind
from mcp_actors.auth.tokens import Tokens

MCP = "https://mcp.example.com/mcp"
TOKENS = Tokens("t", scope=("read",))


def login(tokens=TOKENS, scope=("read",)):
    server = AuthServer("https://as.example.com", "https://as.example.com/token")
    return Credentials(MCP, MCP, server, GrantKind.AUTHORIZATION_CODE, tokens, scope=scope)


def step(*scope):
    return Demand(403, scope=scope or None, error="insufficient_scope")


@pytest.mark.parametrize(
    ("demand", "expected"),
    [
        (None, True),
        (Demand(401, scope=("write",)), True),
        (step("read"), True),
        (step(), True),
        (step("read", "write"), False),
    ],
)
def test_a_newer_login_does_unless_more_is_wanted_than_it_may(demand, expected):
    """For a first login being new is enough; for a step up it must have the scopes (S263)."""
    assert is_covered(demand, login()) is expected


@pytest.mark.parametrize(
    ("scope", "pinned", "is_vain", "why"),
    [
        (("write",), None, False, None),
        (("write",), ("read", "write"), False, None),
        (("write",), ("read",), False, "the server wants write, which oauth.scopes does not list: add it there"),
        (("write", "admin"), None, True, "the server wants admin write, which this login has asked for already"),
        (("read",), None, False, "the server wants read, which this login has asked for already"),
        ((), None, False, "the server wants a scope that it does not name, which this login has asked for already"),
    ],
)
def test_asking_for_more_scopes_may_be_no_help(scope, pinned, is_vain, why):
    """Neither what configuration pins nor what was asked for already is asked for again (D13, fault 66)."""
    assert why_no_step(step(*scope), login(), pinned, is_vain=is_vain) == why


@pytest.mark.parametrize(
    ("demand", "held", "reason", "more"),
    [
        (Demand(401), None, "the server asks for a login", ""),
        (Demand(401), login(None), "the server asks for a login", ""),
        (Demand(401), login(), "the login has ended", ""),
        (step("write"), None, "the server asks for a login", ""),
        (step("write"), login(), "the server wants more: write", " --scopes 'read write'"),
        (step("$(x)"), login(), "the server wants more: $(x)", " --scopes 'read $(x)'"),
        (step("a\x1b"), login(), "the server wants more: a\x1b", ""),
    ],
)
def test_a_person_is_told_what_to_do(demand, held, reason, more):
    """The command says all that is wanted; a server's words are quoted for the shell, or left out of it."""
    error = required(demand, held, "sign in")

    assert (error.reason, error.http_status, error.remedy) == (reason, demand.status, f"sign in{more}")
