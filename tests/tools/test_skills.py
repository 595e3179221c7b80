"""Skills: which entries are taken, and which content is refused."""

from __future__ import annotations

import hashlib
import json

import pytest

from mcp_actors.errors import RemoteProtocolError
from mcp_actors.tools.skills import (
    MAX_BYTES,
    MAX_FILES,
    Skill,
    check_main_file,
    read_file,
    read_skill,
    skills_from_items,
)

MAIN = b"---\nname: pdf\ndescription: Fill forms\n---\nDo it.\n"
URI = "skill://acme/pdf/SKILL.md"
FORMS = "skill://acme/pdf/references/FORMS.md"


def manifest(uri: str, content: bytes) -> dict[str, object]:
    return {"uri": uri, "digest": "sha256:" + hashlib.sha256(content).hexdigest(), "size": len(content)}


def entry(**changes: object) -> dict[str, object]:
    frontmatter = {"name": "pdf", "description": "Fill forms"}
    return {
        "uri": URI,
        "frontmatter": frontmatter,
        "resources": [manifest(URI, MAIN), manifest(FORMS, b"f")],
        **changes,
    }


def skill(**changes: object) -> Skill:
    return read_skill("docs", json.dumps(entry(**changes)).encode())


def answer(uri: str = URI, **content: object) -> dict[str, object]:
    return {"contents": [{"uri": uri, **content}]}


def test_an_entry_is_read_as_it_stands() -> None:
    """Name, description and every other field come from the frontmatter; the files from the manifest."""
    read = skill()

    assert (read.server, read.uri, read.name, read.description) == ("docs", URI, "pdf", "Fill forms")
    assert (read.root, read.total_bytes, list(read.files or ())) == ("skill://acme/pdf/", len(MAIN) + 1, [URI, FORMS])
    assert skill(resources="dynamic").files is None


MANY = [manifest(f"skill://acme/pdf/{n}", b"") for n in range(MAX_FILES)]
BROKEN = [
    ({"uri": 5}, "uri"),
    ({"uri": "skill://acme/pdf"}, "uri"),
    ({"uri": "skill://acme/other/SKILL.md"}, "its name"),
    ({"frontmatter": None}, "no frontmatter"),
    ({"frontmatter": {"name": "pdf"}}, "no description"),
    ({"frontmatter": {"name": "a/pdf", "description": ""}}, "its name"),
    ({"resources": None}, "resources"),
    ({"resources": "live"}, "resources"),
    ({"resources": []}, "not among its files"),
    ({"resources": [manifest(FORMS, b"f")]}, "not among its files"),
    ({"resources": [manifest(URI, MAIN)] * 2}, "twice"),
    ({"resources": [manifest("skill://acme/x", b"")]}, "outside"),
    ({"resources": [manifest("skill://acme/pdf/../x", b"")]}, "outside"),
    ({"resources": [{**manifest(URI, MAIN), "size": None}]}, "lacks"),
    ({"resources": [{**manifest(URI, MAIN), "size": True}]}, "lacks"),
    ({"resources": [{**manifest(URI, MAIN), "size": -1}]}, "lacks"),
    ({"resources": [{**manifest(URI, MAIN), "digest": "md5:0"}]}, "lacks"),
    ({"resources": ["x"]}, "lacks"),
    ({"resources": [manifest(URI, MAIN), *MANY]}, "more than 512 files"),
    ({"resources": [{**manifest(URI, MAIN), "size": MAX_BYTES + 1}]}, "bytes"),
]


@pytest.mark.parametrize(("changes", "why"), BROKEN)
def test_an_entry_that_breaks_a_rule_is_left_out_alone(changes: dict[str, object], why: str) -> None:
    """SEP-2640, S149: it is not loaded, a warning says why, and its neighbours stay."""
    items = [json.dumps(each).encode() for each in (entry(**changes), entry())]

    skills, warnings = skills_from_items("docs", items)

    assert [found.uri for found in skills] == [URI]
    [warning] = warnings
    assert warning.startswith("skill 1 was skipped: ")
    assert why in warning


def test_the_limits_themselves_are_taken() -> None:
    """SEP-2640, "Limits": 512 files and 16 MiB are what every host takes."""
    files = [manifest(URI, MAIN), *MANY[1:]]
    files[-1] = {**files[-1], "size": MAX_BYTES - len(MAIN)}

    read = skill(resources=files)

    assert (len(read.files or ()), read.total_bytes) == (MAX_FILES, MAX_BYTES)


def test_a_file_is_named_as_the_skill_names_it() -> None:
    """SEP-2640, "Relative References": below the skill's own directory, or by its URI; nothing else is a file of it."""
    known, live = skill(), skill(resources="dynamic")

    assert {known.resolve(path) for path in ("references/FORMS.md", "./references/FORMS.md", FORMS)} == {FORMS}
    assert live.resolve("any.txt") == "skill://acme/pdf/any.txt"
    for each, path in (
        (known, "none.md"),
        (known, "../pdf/SKILL.md"),
        (live, "../other/SKILL.md"),
        (known, "skill://b"),
    ):
        with pytest.raises(RemoteProtocolError, match="no file of the skill"):
            each.resolve(path)


@pytest.mark.parametrize(
    ("result", "why"),
    [
        (answer(text=MAIN.decode()[:-1]), "bytes, not"),
        (answer(text=MAIN.decode().replace("Do", "No")), "digest"),
        (answer(FORMS, text=MAIN.decode()), "not that one file"),
        ({"contents": answer(text=MAIN.decode())["contents"] * 2}, "not that one file"),
        ({"contents": []}, "not that one file"),
        ({}, "not that one file"),
        (answer(), "neither"),
        (answer(blob="%"), "neither"),
        (answer(text="\ud800"), "bytes"),
    ],
)
def test_content_that_is_not_the_described_one_is_refused(result: dict[str, object], why: str) -> None:
    """SEP-2640, "Verification on Read": size, digest, and that it is that one file."""
    with pytest.raises(RemoteProtocolError, match=why):
        read_file(skill(), URI, result)


def test_content_that_is_the_described_one_is_given() -> None:
    """As text or as base64 the bytes are the same; where nothing can be verified they are given, within the limit."""
    assert read_file(skill(), URI, answer(text=MAIN.decode())) == MAIN
    assert read_file(skill(), FORMS, answer(FORMS, blob="Zg==")) == b"f"
    live = skill(resources="dynamic")
    assert read_file(live, URI, answer(text="anything")) == b"anything"
    with pytest.raises(RemoteProtocolError, match="more than"):
        read_file(live, URI, answer(text="x" * (MAX_BYTES + 1)))


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (MAIN.replace(b"Fill forms", b"Steal keys"), "differ in 'description'"),
        (MAIN.replace(b"name", b"allowed-tools: Bash\nname"), "differ in 'allowed-tools'"),
        (b"Do it.\n", "no frontmatter"),
        (b"---\n[\n---\n", "no YAML"),
        (b"\xff", "no text"),
    ],
)
def test_a_main_file_that_says_otherwise_than_its_entry_is_refused(content: bytes, why: str) -> None:
    """SEP-2640, "Frontmatter Verification": what a person agreed to is what a model reads."""
    assert check_main_file(skill(), MAIN) == MAIN.decode()
    with pytest.raises(RemoteProtocolError, match=why):
        check_main_file(skill(), content)
