"""What the verbs that list have in common: servers that are not up, and rows for machines."""

from __future__ import annotations

import json

import pytest

from mcp_actors.cli.listing import row_of
from tests.cli.command import config, run, server

pytestmark = pytest.mark.slow

VERBS = ("tools", "resources", "prompts", "skills")
OFF = {"command": "/nonexistent/off", "disabled": True}
BAD = {"command": "/nonexistent/x"}


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize(
    ("named", "code", "words"),
    [
        ([], 1, ["bad: failed"]),
        (["bad"], 1, ["bad: failed", "/nonexistent/x"]),
        (["off"], 1, ["off: disabled (user)"]),
        (["good"], 0, []),
        (["other"], 1, ["other"]),
    ],
    ids=["all", "one failed", "one disabled", "one up", "unknown"],
)
def test_missing_servers(verb, named, code, words):
    """Each verb tells of servers that should be up and are not; a disabled one is missed when it is named (S041)."""
    done = run(verb, *named, *config(good=server(), bad=BAD, off=OFF))

    assert done.returncode == code, done.stderr
    assert all(word in done.stderr for word in words)
    assert ("off: disabled" in done.stderr) == (named == ["off"])
    assert bool(done.stdout) == (named in ([], ["good"]))


@pytest.mark.parametrize("verb", VERBS)
def test_a_machine_gets_an_empty_list(verb):
    """With --json there is an object to read, also where the server that was named is not up."""
    done = run(verb, "bad", "--json", *config(bad=BAD))

    assert (done.returncode, json.loads(done.stdout)) == (1, {verb: []})


@pytest.mark.parametrize(
    ("definition", "expected"),
    [
        ({"uri": "a://b", "x": 1}, {"server": "s", "uri": "a://b", "x": 1}),
        ({"server": "liar", "uri": "a://b"}, {"server": "s", "uri": "a://b"}),
    ],
)
def test_row_keeps_all_and_hides_nothing_of_ours(definition, expected):
    """A row is what the server wrote, every key, and no key of it takes the place of ours (invariant 9)."""
    assert expected == row_of(definition, server="s")
