"""Owns the regular expressions of servers: which of them may be tried on a text here, and how.

What this is not: the regular expressions of our own configuration, which are trusted.

A server's pattern is hostile input: ``^(a+)+$`` takes longer than the universe on forty characters, and Python cannot
stop a match. So only patterns whose worst case can be bounded by counting are tried. For all others there is no verdict
and the server judges the value, as it has to do anyhow.

The bound: matching tries at most (length of the text) to the power of (its open repetitions), doubled for each optional
piece or alternative, once per starting point. A repetition around a piece that itself can match in several ways breaks
the count and is not tried.
"""

from __future__ import annotations

import re
from typing import Final

from mcp_actors.values import frozen

__all__ = ["MAX_STEPS", "Tame", "matches", "read_pattern"]

# Some tens of milliseconds.
MAX_STEPS: Final = 1_000_000
MAX_PATTERN_CHARS: Final = 500

_TOKEN: Final = re.compile(
    r"(?P<class>\[\^?(?:[^\[\]\\&|~\n-]|-(?!-)|\\[^\n])+\])"
    r"|(?P<escape>\\[dDwWsStnrfv./\\^$|?*+()\[\]{}-])"
    r"|(?P<bound>\\[bB])"
    r"|(?P<open>\((?:\?:)?(?!\?))"
    r"|(?P<close>\))"
    r"|(?P<repeat>(?:[*+?]|\{\d{1,4}(?:,\d{0,4})?\})\??)"
    r"|(?P<either>\|)"
    r"|(?P<anchor>[\^$])"
    r"|(?P<plain>[^\\\[\](){}*+?|^$])"
)
_COUNTED: Final = re.compile(r"\{(\d+)(,?)(\d*)\}")
# More open repetitions than this leave no room for any text.
MAX_POWER: Final = 4


@frozen
class Tame:
    """A pattern that may be tried. `power` and `factor` are the bound, see above."""

    compiled: re.Pattern[str]
    power: int
    factor: int

    def steps(self, length: int) -> int:
        """How many steps a text of this length may take at worst."""
        steps: int = (length + 1) ** self.power
        return self.factor * steps


def read_pattern(pattern: str) -> Tame | None:
    """Judge a pattern; None when it is not tame, or no pattern at all."""
    if len(pattern) > MAX_PATTERN_CHARS:
        return None
    translated: list[str] = []
    power, factor = (0 if pattern.startswith("^") and "|" not in pattern else 1), 1
    # For each open group: whether it can match in one way only. The last entry is the top.
    fixed = [True]
    # Whether there is something directly before that can be repeated: what can match in one way only.
    last = False
    at = 0
    while at < len(pattern):
        token = _TOKEN.match(pattern, at)
        if token is None:
            return None
        kind, text, at = token.lastgroup, token[0], token.end()
        # In ECMAScript `$` is the very end; in Python it also stands before a last line end.
        translated.append(r"\Z" if text == "$" else text)
        if kind == "open":
            fixed.append(True)
            last = False
        elif kind == "close":
            if len(fixed) == 1:
                return None
            last = fixed.pop()
            fixed[-1] &= last
        elif kind == "either":
            fixed[-1], factor, last = False, factor * 2, False
        elif kind in ("anchor", "bound"):
            last = False
        elif kind == "repeat":
            if not last:
                return None
            least, is_fixed = _repetition(text)
            factor *= least
            if not is_fixed:
                fixed[-1] = False
                power, factor = (power, factor * 2) if text[0] == "?" else (power + 1, factor)
            last = False
        else:
            last = True
        if power > MAX_POWER or factor > MAX_STEPS:
            return None
    try:
        compiled = re.compile("".join(translated), re.ASCII)
    except re.error:
        return None
    return Tame(compiled, power, factor)


def _repetition(text: str) -> tuple[int, bool]:
    """How often at least (0 counts as 1), and whether exactly so often."""
    counted = _COUNTED.match(text)
    if counted is None:
        return 1, False
    return max(1, int(counted[1])), not counted[2] or counted[1] == counted[3]


def matches(pattern: str, text: str) -> bool | None:
    """Whether the pattern is found in the text; None where that cannot be told in bounded time."""
    tame = read_pattern(pattern)
    if tame is None or tame.steps(len(text)) > MAX_STEPS:
        return None
    return tame.compiled.search(text) is not None
