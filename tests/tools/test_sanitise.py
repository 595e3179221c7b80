"""Cleaning: what goes, what stays, and that it comes to rest."""

from __future__ import annotations

import json
import sys
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_actors.errors import RemoteProtocolError
from mcp_actors.tools.sanitise import (
    MAX_DEPTH,
    TRUNCATED,
    cap_text,
    clean_json,
    clean_text,
    is_clean_json,
    is_removed,
)

# Texts in which invisible characters are as likely as letters, and surrogates occur.
NASTY = (
    "ab\u0301\u0338\u200b\u200d\ufe0f\u2028\u202e\ufeff\u00ad\u034f\u115f\u3164"
    "\U000e0041\U0001f468\U0001f3fd\u2764\ud800\x00\r\n\t"
)
TEXTS = st.text(st.one_of(st.sampled_from(NASTY), st.characters()))
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=12,
)


# The list of S188, written a second time.
LISTED = frozenset(
    [
        *range(0xE0000, 0xE0080),
        *range(0x200B, 0x2010),
        *range(0x202A, 0x202F),
        *range(0x2060, 0x2070),
        *(0xFEFF, 0x00AD, 0x034F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x3164, 0xFFA0),
        *range(0x180B, 0x1810),
        *range(0xFE00, 0xFE10),
        *range(0xE0100, 0xE01F0),
    ]
)


def must_go(code_point: int) -> bool:
    category = unicodedata.category(chr(code_point))
    return code_point in LISTED or (category in {"Cf", "Co", "Cs", "Cn", "Cc"} and chr(code_point) not in "\t\n\r")


def cleaned(code_point: int) -> str:
    """What should be left of a text that is this code point."""
    if code_point in {0x2028, 0x2029}:
        return "\n"
    return "" if must_go(code_point) else unicodedata.normalize("NFC", chr(code_point))


# Alone: the planes that hold what people write, emoji and tags. The others by hundreds: there are 950,000.
ALONE = [*range(0x20000), *range(0xE0000, 0xE0200)]
BLOCK = 128
BLOCKS = [range(start, start + BLOCK) for start in range(0x20000, sys.maxunicode + 1, BLOCK)]


def test_all_of_unicode() -> None:
    """Each of the 1,114,112 code points goes or stays as the table says, through every shortcut (S188)."""
    wrong = [hex(code) for code in ALONE if clean_text(chr(code)) != cleaned(code)]
    # Nothing is composed across a line feed.
    wrong += [
        hex(block[0]) for block in BLOCKS if clean_text("\n".join(map(chr, block))) != "\n".join(map(cleaned, block))
    ]

    assert wrong == []


def test_all_of_unicode_as_json() -> None:
    """A definition is taken for clean only when cleaning would leave it alone, whichever code point it holds."""
    texts = [
        *(chr(code) for code in ALONE if not 0xD800 <= code <= 0xDFFF),
        *("".join(map(chr, each)) for each in BLOCKS),
    ]
    wrong = [
        hex(ord(text[0]))
        for text in texts
        if is_clean_json(json.dumps(text, ensure_ascii=False).encode()) and clean_text(text) != text
    ]

    assert wrong == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain", "plain"),
        ("tab\tline\r\n", "tab\tline\r\n"),
        ("".join(chr(0xE0000 + ord(letter)) for letter in "ignore all") + "hi", "hi"),
        ("a\u200bb\u2066c\u2069d\u202ee", "abcde"),
        ("e\u0301", "\u00e9"),
        ("e\u200b\u0301", "\u00e9"),
        ("one\u2028two\u2029", "one\ntwo\n"),
        ("\ufb01 x\u00b2", "\ufb01 x\u00b2"),
        ("\x1b[31mred\x7f", "[31mred"),
        ("\ud83d", ""),
        ("\u2764\ufe0f", "\u2764"),
        ("\U0001f468\u200d\U0001f469", "\U0001f468\U0001f469"),
    ],
)
def test_clean_text(text: str, expected: str) -> None:
    """Invisible text goes, visible text stays and is composed, not folded (S196, S188, S189, fault 103)."""
    assert clean_text(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("\u2764\ufe0f", "\u2764\ufe0f"),
        ("\U0001f468\U0001f3fd\u200d\U0001f469", "\U0001f468\U0001f3fd\u200d\U0001f469"),
        ("1\ufe0f\u20e3", "1\ufe0f\u20e3"),
        ("a\u200db", "ab"),
        ("a\ufe0f", "a"),
        ("\u200d\U0001f469", "\U0001f469"),
        ("\U0001f468\u200d", "\U0001f468"),
        ("\U0001f468\u200d\u200d\U0001f469", "\U0001f468\U0001f469"),
        ("\U0001f468\u200b\u200d\U0001f469", "\U0001f468\u200d\U0001f469"),
        ("\u2764\ufe0f\U000e0041", "\u2764\ufe0f"),
    ],
)
def test_pictures_may_stay_whole(text: str, expected: str) -> None:
    """In results a joiner or style selector may stay, where it makes one picture and nowhere else (S190)."""
    assert clean_text(text, keep_emoji=True) == expected


@given(TEXTS, st.booleans())
def test_cleaning_comes_to_rest(text: str, keep_emoji: bool) -> None:
    """Cleaned text is composed, holds nothing that goes, and is not changed by cleaning (S189)."""
    cleaned = clean_text(text, keep_emoji=keep_emoji)

    assert clean_text(cleaned, keep_emoji=keep_emoji) == cleaned
    assert clean_json(cleaned, keep_emoji=keep_emoji).total_removed == 0
    assert unicodedata.is_normalized("NFC", cleaned)
    assert {character for character in cleaned if is_removed(ord(character))} <= (
        {"\u200d", "\ufe0f"} if keep_emoji else set()
    )


def test_a_flood_of_marks_is_cut() -> None:
    """Composing takes quadratic time in a run of marks, so a run longer than any script's is cut and counted."""
    text = "a" + "\u0316\u0301" * 100_000

    assert len(clean_text(text)) <= 31
    assert clean_json(text).total_removed == 200_000 - 30


@given(JSON)
def test_json_is_cleaned_through_and_through(value: object) -> None:
    """Every string and key of a JSON value is cleaned, the value itself is left alone, and the result is at rest."""
    before = json.dumps(value)

    cleaned = clean_json(value)

    assert json.dumps(value) == before
    assert clean_json(cleaned.value).value == cleaned.value
    assert clean_json(cleaned.value).removed == {}
    assert not any(is_removed(ord(character)) for character in strings(cleaned.value))


def strings(value: object) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, dict):
        return "".join(key + strings(inner) for key, inner in value.items())
    return "".join(map(strings, value)) if isinstance(value, list) else ""


@given(JSON)
def test_bytes_taken_for_clean_are_clean(value: object) -> None:
    """The shortcut over undecoded bytes never lets anything through."""
    for is_ascii in (True, False):
        raw = json.dumps(value, ensure_ascii=is_ascii).encode("utf-8", "surrogatepass")
        if is_clean_json(raw):
            assert clean_json(value).value == value


def test_what_went_is_counted_by_path() -> None:
    """Counts name the field, not what was in it (S195)."""
    cleaned = clean_json({"description": "a\u200b", "p": [{"x\u200b\u200b": "\u202e"}], "ok": 1}, path="t")

    assert cleaned.removed == {"t.description": 1, "t.p[0].<key>": 2, "t.p[0].x": 1}
    assert cleaned.total_removed == 4


def test_keys_that_become_one_collide() -> None:
    """Of two keys that become one the first is kept, and the collision is told (S192)."""
    cleaned = clean_json({"a": {"k": 1, "k\u200b": 2}})

    assert (cleaned.value, cleaned.collisions) == ({"a": {"k": 1}}, ("a",))


def test_data_fields_stay_raw() -> None:
    """Fields named as data are not cleaned (S194)."""
    cleaned = clean_json({"uri": "x\u200b", "text": "x\u200b"}, raw_fields=frozenset({"uri"}))

    assert cleaned.value == {"uri": "x\u200b", "text": "x"}


def test_depth_is_bounded() -> None:
    """What nests too deep is the server's fault, never a RecursionError."""
    value: object = "x"
    for _ in range(MAX_DEPTH):
        value = [value]

    assert clean_json(value).value == value
    with pytest.raises(RemoteProtocolError, match="nests deeper"):
        clean_json([value])


@pytest.mark.parametrize(("limit", "expected"), [(5, "abcde"), (0, ""), (3, TRUNCATED[:3])])
def test_small_caps(limit: int, expected: str) -> None:
    """Whatever the limit, it is kept."""
    assert cap_text("abcde", limit) == expected
