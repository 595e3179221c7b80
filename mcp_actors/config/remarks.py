"""Owns what is remarked on about an entry: scalars, whitespace, slips of keys; the last also where it cannot run.

What this is not: what keeps an entry from running (`validate`). Nothing here changes what is used.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from mcp_actors.config.checks import watched_texts
from mcp_actors.config.entries import ENTRY_FIELDS, RESTART_FIELDS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mcp_actors.config.notes import EntryFindings
    from mcp_actors.jsontypes import JsonObject

__all__ = ["note_slips", "remark_on"]

# Read from the raw entry, beside those that `entries` structures.
KNOWN_KEYS: Final = frozenset({"envFile", "oauth", "transport", *ENTRY_FIELDS})
# The same of the blocks in an entry. Those of `oauth` are read where signing in is done (`auth.options`).
BLOCKS: Final[Mapping[str, frozenset[str]]] = {
    "restart": frozenset(RESTART_FIELDS),
    "oauth": frozenset(
        {
            "clientId", "clientSecret", "clientMetadataUrl", "redirectUri", "callbackPort", "authServerMetadataUrl",
            "issuer", "tokenEndpointAuthMethod", "privateKey", "privateKeyFile", "signingAlgorithm", "assertionFile",
            "allowMissingPkce", "allowPrivateNetwork", "grant", "dpop", "xaa", "scopes",
        }
    ),
}  # fmt: skip
# As alike as arg and args; alwaysAllow of other programs is less like alwaysLoad.
SLIP_LIKENESS: Final = 0.85


def remark_on(raw: JsonObject, told: EntryFindings) -> None:
    """Note what is probably not meant as it was written. An entry of the wrong shape is no matter of this."""
    _note_scalars(raw, told)
    _note_whitespace(raw, told)
    note_slips(raw, told)


def _note_scalars(raw: JsonObject, told: EntryFindings) -> None:
    for key in ("env", "headers"):
        values = raw.get(key)
        for name, value in values.items() if isinstance(values, dict) else ():
            if isinstance(value, bool | int | float):
                told.note((key, name), "taken-as-text", "is not a text and was taken as one", is_warning=False)
            elif value is None:
                told.note((key, name), "not-set", "is null and so not set", is_warning=False)
    args = raw.get("args")
    for index, value in enumerate(args if isinstance(args, list) else ()):
        if isinstance(value, bool | int | float):
            told.note(("args", index), "taken-as-text", "is not a text and was taken as one", is_warning=False)


def _note_whitespace(raw: JsonObject, told: EntryFindings) -> None:
    """S036: warned about, used unchanged."""
    for path, value in watched_texts(raw):
        if value != value.strip():
            told.note(path, "whitespace", "begins or ends with whitespace; it is used as it is")
    for key in ("env", "headers"):
        names = raw.get(key)
        for name in names if isinstance(names, dict) else ():
            if name != name.strip():
                told.note((key, name), "whitespace", "the name begins or ends with whitespace; it is used as it is")


def note_slips(raw: JsonObject, told: EntryFindings) -> None:
    """Warn of keys that are nearly those of ours. Others stay unmentioned: entries hold keys of many programs."""
    for path, block, known in (((), raw, KNOWN_KEYS), *(((key,), raw.get(key), keys) for key, keys in BLOCKS.items())):
        for key in block if isinstance(block, dict) else ():
            if key not in known and (meant := _nearest_key(key, known)) is not None:
                told.note((*path, key), "unknown-key", f"is no key that has an effect; did you mean {meant}?")


def _folded(key: str) -> str:
    return re.sub(r"[\W_]", "", key[:40]).lower()


@lru_cache(256)  # a thousand entries of another program hold the same few keys
def _nearest_key(key: str, known: frozenset[str]) -> str | None:
    """The key of ours that this one is a slip of, also in case and separators; None when there is none."""
    from difflib import get_close_matches  # entries without unknown keys need not wait for it

    ours = {_folded(each): each for each in sorted(known)}
    nearest = get_close_matches(_folded(key), ours, n=1, cutoff=SLIP_LIKENESS)
    return ours[nearest[0]] if nearest else None
