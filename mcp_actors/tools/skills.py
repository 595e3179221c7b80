"""Owns skills as their servers publish them: the entry with its manifest, and what of a file is refused.

What this is not: reading them (`fleet.skills`); nor consent to a skill, and telling a model whose words it reads: both
are a host's.

Rule 1: an entry that breaks the extension's rules is left out alone, with a warning (S149).
Rule 2: nothing is used that is not what the entry described. A digest is the server's own: it shows that the file is
the described one, never that it may be trusted.
Rule 3: a name is a label. A skill is known by its server and its URI together.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from mcp_actors.errors import RemoteProtocolError
from mcp_actors.protocol import jsonrpc
from mcp_actors.tools.base64text import decode_base64
from mcp_actors.tools.frontmatter import find_difference, find_frontmatter
from mcp_actors.tools.items import Item
from mcp_actors.tools.sanitise import is_list
from mcp_actors.values import frozen

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mcp_actors.jsontypes import Json, JsonObject

__all__ = ["Skill", "SkillFile", "as_contents", "check_main_file", "read_file", "read_skill", "skills_from_items"]

# What every host must take; a server should not serve more, and more is not taken here (extension, "Limits").
MAX_FILES: Final = 512
MAX_BYTES: Final = 16 * 1024 * 1024
MAIN_FILE: Final = "SKILL.md"

_DIGEST: Final = re.compile(r"sha256:[0-9a-f]{64}")
# The last segment of its URI; which letters a server allows itself is its affair (Agent Skills, "name field").
_NAME: Final = re.compile(r"[^/\s]{1,64}")


@frozen
class SkillFile:
    """One file of a skill, as its manifest describes it."""

    uri: str
    # "sha256:" and 64 hexadecimal digits.
    digest: str
    size: int


@frozen(eq=False)
class Skill(Item):
    """A skill of a server: instructions for a model with the files that belong to them. Made by `Server.skills`."""

    # The YAML at the head of SKILL.md, as the server rendered it.
    frontmatter: JsonObject
    # Maps URI -> file, SKILL.md among them; None where the server makes them up as it goes: nothing can be verified.
    files: Mapping[str, SkillFile] | None

    def _text(self, name: str) -> str | None:
        value = self.frontmatter.get(name)
        return value if isinstance(value, str) else None

    @property
    def uri(self) -> str:
        """Raw URI of its SKILL.md."""
        return self.key

    @property
    def root(self) -> str:
        """URI of its directory, with the slash at the end."""
        return self.key.removesuffix(MAIN_FILE)

    @property
    def total_bytes(self) -> int | None:
        """Size of all its files; None where the server does not say."""
        return None if self.files is None else sum(file.size for file in self.files.values())

    def resolve(self, path: str) -> str:
        """Give the URI of a file, named as SKILL.md names it (``references/FORMS.md``) or by its URI.

        Raises:
            RemoteProtocolError: it is no file of this skill.
        """
        uri = path if path.startswith(self.root) else self.root + path.removeprefix("./")
        is_known = ".." not in uri.split("/") if self.files is None else uri in self.files
        if not is_known:
            raise RemoteProtocolError(
                server=self.server, reason=f"{_short(path)} is no file of the skill {_short(self.name)}"
            )
        return uri

    def verify(self, uri: str, content: bytes) -> None:
        """Hold the content of a file against the manifest; nothing is verified where there is none.

        Raises:
            RemoteProtocolError: it is no file of this skill, or not the described one.

        Source:
            MCP skills extension, "Verification on Read".
        """
        if self.files is None:
            return
        file = self.files[self.resolve(uri)]
        if len(content) != file.size:
            raise _refusal(self, uri, f"it has {len(content)} bytes, not {file.size}")
        if f"sha256:{hashlib.sha256(content).hexdigest()}" != file.digest:
            raise _refusal(self, uri, "its digest is another one")


def read_skill(server: str, raw: bytes) -> Skill:
    """Read one entry.

    Raises:
        RemoteProtocolError: it must not be loaded; `reason` says which rule it breaks.

    Source:
        MCP skills extension, "Skill Entries", "Limits".
    """
    entry = jsonrpc.decode_object(raw)
    uri, frontmatter = entry.get("uri"), entry.get("frontmatter")
    if not isinstance(uri, str) or not uri.endswith(f"/{MAIN_FILE}"):
        raise _broken(server, f"its uri does not end with /{MAIN_FILE}")
    if not isinstance(frontmatter, Mapping):
        raise _broken(server, "it has no frontmatter")
    name = frontmatter.get("name")
    if not isinstance(name, str) or not isinstance(frontmatter.get("description"), str):
        raise _broken(server, "its frontmatter has no name or no description")
    if _NAME.fullmatch(name) is None or not uri.endswith(f"/{name}/{MAIN_FILE}"):
        raise _broken(server, "its uri does not end with its name")
    return Skill(server, uri, raw, frontmatter, _files(server, uri, entry.get("resources")))


def skills_from_items(server: str, items: Iterable[bytes]) -> tuple[tuple[Skill, ...], tuple[str, ...]]:
    """Make skills of the undecoded items of a ``skills/list`` answer; also a warning for each left out."""
    found: dict[str, Skill] = {}
    warnings: list[str] = []
    for position, raw in enumerate(items, 1):
        try:
            skill = read_skill(server, raw)
        except RemoteProtocolError as exc:
            warnings.append(f"skill {position} was skipped: {exc.reason}")
        else:
            found.setdefault(skill.uri, skill)
    return tuple(found.values()), tuple(warnings)


def read_file(skill: Skill, uri: str, result: JsonObject) -> bytes:
    """Take the bytes of one file out of a ``resources/read`` result, and verify them.

    Raises:
        RemoteProtocolError: it is not one file, or not the described one.
    """
    contents = result.get("contents")
    only = contents[0] if is_list(contents) and len(contents) == 1 else None
    if not isinstance(only, Mapping) or only.get("uri") != uri:
        raise RemoteProtocolError(server=skill.server, reason=f"the answer for {_short(uri)} is not that one file")
    text, blob = only.get("text"), only.get("blob")
    content: bytes | None = None
    if isinstance(text, str):
        content = text.encode("utf-8", "surrogatepass")
    elif isinstance(blob, str):
        content = decode_base64(blob)
    if content is None:
        raise RemoteProtocolError(server=skill.server, reason=f"the answer for {_short(uri)} has neither text nor blob")
    if skill.files is None and len(content) > MAX_BYTES:
        raise RemoteProtocolError(server=skill.server, reason=f"{_short(uri)} has more than {MAX_BYTES} bytes")
    skill.verify(uri, content)
    return content


def as_contents(uri: str, content: bytes) -> JsonObject:
    """Give verified content the shape of a ``resources/read`` result again, as text where it is text."""
    try:
        return {"contents": [{"uri": uri, "text": content.decode()}]}
    except UnicodeDecodeError:
        return {"contents": [{"uri": uri, "blob": base64.b64encode(content).decode()}]}


def check_main_file(skill: Skill, content: bytes) -> str:
    """Give the text of a verified SKILL.md whose frontmatter says what the entry said.

    Raises:
        RemoteProtocolError: it says something else, or is no text.
        ConfigError: PyYAML is not installed.

    Source:
        MCP skills extension, "Frontmatter Verification".
    """
    try:
        text = content.decode()
        field = find_difference(find_frontmatter(text), skill.frontmatter)
    except UnicodeDecodeError:
        raise _refusal(skill, skill.uri, "it is no text") from None
    except RemoteProtocolError as exc:
        raise _refusal(skill, skill.uri, exc.reason) from exc
    if field is not None:
        raise _refusal(skill, skill.uri, f"they differ in {_short(field)}")
    return text


def _files(server: str, uri: str, declared: Json) -> dict[str, SkillFile] | None:
    if declared == "dynamic":
        return None
    if not is_list(declared):
        raise _broken(server, 'its resources are neither a list nor "dynamic"')
    if len(declared) > MAX_FILES:
        raise _broken(server, f"it has more than {MAX_FILES} files")
    root = uri.removesuffix(MAIN_FILE)
    files: dict[str, SkillFile] = {}
    for entry in declared:
        file = _file(entry)
        if file is None:
            raise _broken(server, "a file of it lacks a uri, a digest or a size")
        if not file.uri.startswith(root) or ".." in file.uri.split("/"):
            raise _broken(server, "a file of it lies outside its directory")
        if file.uri in files:
            raise _broken(server, "a file of it is listed twice")
        files[file.uri] = file
    if uri not in files:
        raise _broken(server, f"its {MAIN_FILE} is not among its files")
    if sum(file.size for file in files.values()) > MAX_BYTES:
        raise _broken(server, f"its files have more than {MAX_BYTES} bytes")
    return files


def _file(entry: Json) -> SkillFile | None:
    if not isinstance(entry, Mapping):
        return None
    uri, digest, size = entry.get("uri"), entry.get("digest"), entry.get("size")
    if not isinstance(uri, str) or not isinstance(digest, str) or _DIGEST.fullmatch(digest) is None:
        return None
    if not isinstance(size, int) or isinstance(size, bool) or size < 0:
        return None
    return SkillFile(uri, digest, size)


def _refusal(skill: Skill, uri: str, why: str) -> RemoteProtocolError:
    return RemoteProtocolError(server=skill.server, reason=f"{_short(uri)} is not what its entry described: {why}")


def _broken(server: str, why: str) -> RemoteProtocolError:
    return RemoteProtocolError(server=server, reason=why)


def _short(text: str) -> str:
    return ascii(text[:120])
