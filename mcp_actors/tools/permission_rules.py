"""Owns the rules about calls: how their texts are read, and which calls each of them means.

What this is not: the decision about a call, in which rules are one voice of several (`permissions`).

Rule 1: what is not understood grants nothing: such an allow rule is skipped, as is one that is broader than documented;
a deny or ask rule then means all calls of its tool, or of every tool where it names none. A warning says so, but for
rules of a host's own tools, whose parentheses are that host's language.
"""

from __future__ import annotations

import enum
import re
from functools import cached_property
from typing import TYPE_CHECKING, Final, NamedTuple

from attrs import field

from mcp_actors.config.choices import RuleText
from mcp_actors.tools.naming import HEAD, SEPARATOR, ToolNames, normalise_rule, parse
from mcp_actors.tools.sanitise import clean_text
from mcp_actors.values import frozen

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from mcp_actors.jsontypes import Json, JsonObject

__all__ = ["Rule", "RuleRead", "Rules", "Verdict", "parse_rule", "read_rules"]

MAX_RULE_CHARS: Final = 2_000
# Of one that is longer, in messages.
MAX_SHOWN_CHARS: Final = 80
_ALLOWED_GLOB: Final = re.compile(r"mcp__[a-zA-Z0-9_-]+?__[^*]*\*.*", re.DOTALL)
# Keys that configurations use, and what they mean; the later spelling of each is an alias (S230).
_KEYS: Final[Mapping[str, str]] = {
    "allow": "allow",
    "ask": "ask",
    "deny": "deny",
    "allowedTools": "allow",
    "disallowedTools": "deny",
    "deniedTools": "deny",
}


class Verdict(enum.StrEnum):
    """What is to happen with a call."""

    ALLOW = "allow"
    ASK = "ask"
    DENY = "deny"


def _glob(pattern: str) -> re.Pattern[str]:
    """Compile a pattern in which ``*`` alone is special. Runs of stars are one: each costs a pass over the text."""
    parts = re.split(r"\*+", pattern)
    # Atomic, lazy steps: a star takes as little as possible and never gives back, so that matching takes linear steps.
    middle = "".join(f"(?>.*?{re.escape(part)})" for part in parts[1:-1])
    if len(parts) == 1:
        return re.compile(re.escape(pattern) + r"\Z", re.DOTALL)
    return re.compile(f"{re.escape(parts[0])}{middle}.*{re.escape(parts[-1])}\\Z", re.DOTALL)


@frozen
class Rule:
    """One rule that is understood. Equal texts are equal rules."""

    text: str
    # The tool's part, with stars.
    pattern: str
    # Name of a top-level parameter and the pattern of its value; None for a rule about the tool as a whole (S233).
    parameter: tuple[str, str] | None = None
    origin: str = field(default="", eq=False)

    @cached_property
    def _matcher(self) -> re.Pattern[str]:
        return _glob(self.pattern)

    @cached_property
    def _value_matcher(self) -> re.Pattern[str] | None:
        return None if self.parameter is None else _glob(self.parameter[1])

    def means(self, tool: ToolNames) -> bool:
        """Whether the tool's part means this tool."""
        if self._matcher.match(tool.callable) or self._matcher.match(tool.whole):
            return True
        # `mcp__server` means all its tools (S231); the server is told by the separator, so `git` never means `github`.
        if tool.prefix:
            return tool.prefix == f"{self.pattern}{SEPARATOR}"
        parsed = parse(self.pattern)
        return parsed is not None and parsed.tool is None and tool.callable.startswith(f"{self.pattern}{SEPARATOR}")

    def matches(self, tool: ToolNames, arguments: JsonObject) -> bool:
        """Whether the rule means this call."""
        if not self.means(tool):
            return False
        if self.parameter is None or self._value_matcher is None:
            return True
        name, matcher = self.parameter[0], self._value_matcher
        return name in arguments and any(matcher.match(text) for text in _scalar_texts(arguments[name]))

    def __str__(self) -> str:
        return f"{self.text} ({self.origin})" if self.origin else self.text


def _scalar_texts(value: Json) -> Iterator[str]:
    """Write a scalar as a rule may: 1 and 1.0 are one number. Objects and arrays are nothing that a rule means."""
    if value is None or isinstance(value, bool):
        yield {None: "null", True: "true", False: "false"}[value]
    elif isinstance(value, str | int | float):
        yield str(value)
        if isinstance(value, float) and value.is_integer():
            yield str(int(value))
        elif isinstance(value, int):
            yield f"{value}.0"


class _Parts(NamedTuple):
    pattern: str
    parameter: tuple[str, str] | None = None
    # Why it cannot be understood; then `pattern` is what is certain of it.
    fault: str | None = None


def _take_apart(text: str) -> _Parts:
    head, is_opened, rest = text.partition("(")
    pattern = clean_text(head).strip()
    if ")" in pattern or (is_opened and not rest.endswith(")")):
        return _Parts("" if ")" in pattern else _normal(pattern), fault="its parentheses do not close")
    pattern = _normal(pattern)
    if not pattern:
        return _Parts("", fault="it names no tool")
    inner = rest[:-1]
    if inner in {"", "*"}:
        return _Parts(pattern)
    name, colon, value = inner.partition(":")
    if not colon or not name.strip():
        return _Parts(pattern, fault="write the parameter as name:value")
    return _Parts(pattern, (name.strip(), value.strip()))


def _normal(pattern: str) -> str:
    return normalise_rule(pattern) if pattern.startswith(f"{HEAD}{SEPARATOR}") else pattern


class RuleRead(NamedTuple):
    """A rule, and what a person should know of it."""

    rule: Rule | None
    warning: str | None = None


def parse_rule(written: RuleText, verdict: Verdict) -> RuleRead:
    """Read one rule.

    Args:
        written: the rule's text and origin.
        verdict: the list that it stands in.

    Returns:
        The rule, None where it is skipped, and a warning that says what is wrong with it (rule 1).

    Source:
        S231-S233.
    """
    text = written.text.strip()
    if not text:
        return RuleRead(None, f"a {verdict} rule was skipped: it is empty")
    parts = _take_apart(text)
    if len(text) > MAX_RULE_CHARS:
        parts = _Parts(parts.pattern if len(parts.pattern) <= MAX_RULE_CHARS else "", fault="it is too long")
        text = f"{text[:MAX_SHOWN_CHARS]}..."
    pattern, fault = parts.pattern, parts.fault
    is_of_servers = not pattern or "*" in pattern or pattern.startswith(f"{HEAD}{SEPARATOR}")
    if verdict is Verdict.ALLOW:
        fault = fault or _refuse_allow(parts, written, is_of_servers=is_of_servers)
        if fault is None:
            return RuleRead(Rule(text, pattern, parts.parameter, written.origin))
        return RuleRead(None, f"the allow rule {text!r} was skipped: {fault}" if is_of_servers else None)
    if fault is None:
        return RuleRead(Rule(text, pattern, parts.parameter, written.origin))
    rule = Rule(text, pattern or "*", None, written.origin)
    meant = f"all calls of {pattern}" if pattern else "every tool"
    return RuleRead(rule, f"the {verdict} rule {text!r} means {meant}: {fault}" if is_of_servers else None)


def _refuse_allow(parts: _Parts, written: RuleText, *, is_of_servers: bool) -> str | None:
    """Why a rule that is understood grants nothing all the same (S232, S233, S240)."""
    if parts.parameter is not None and is_of_servers:
        return "parameters are for ask and deny"
    if "*" in parts.pattern and not _ALLOWED_GLOB.fullmatch(parts.pattern):
        return "a star may only follow a literal mcp__<server>__"
    return None if written.is_trusted else "its folder is not trusted"


@frozen
class Rules:
    """All rules of all scopes, in three lists; scopes do not outrank each other, verdicts do (S234)."""

    allow: tuple[Rule, ...] = ()
    ask: tuple[Rule, ...] = ()
    deny: tuple[Rule, ...] = ()
    # Rules that were skipped, or mean more than they say, with the reason.
    warnings: tuple[str, ...] = ()

    def joined(self, other: Rules) -> Rules:
        """These rules and those of `other`, each once."""
        pairs = ((self.allow, other.allow), (self.ask, other.ask), (self.deny, other.deny))
        allow, ask, deny = (tuple(dict.fromkeys((*mine, *theirs))) for mine, theirs in pairs)
        return Rules(allow, ask, deny, (*self.warnings, *other.warnings))

    def hiding(self, tool: ToolNames) -> Rule | None:
        """The deny rule that takes the tool off the list: one without parameters (S165, S236)."""
        return next((rule for rule in self.deny if rule.parameter is None and rule.means(tool)), None)

    def first(self, verdict: Verdict, tool: ToolNames, arguments: JsonObject) -> Rule | None:
        """The first rule of a list that means this call."""
        rules = {Verdict.ALLOW: self.allow, Verdict.ASK: self.ask, Verdict.DENY: self.deny}[verdict]
        return next((rule for rule in rules if rule.matches(tool, arguments)), None)


def read_rules(lists: Mapping[str, Iterable[str | RuleText]]) -> Rules:
    """Read lists of rules.

    Args:
        lists: maps key -> rules; the keys are ``allow``, ``ask``, ``deny`` of settings, and ``allowedTools``,
            ``disallowedTools``, ``deniedTools`` of programs (S230). Other keys are skipped with a warning.
    """
    rules: dict[str, dict[Rule, None]] = {"allow": {}, "ask": {}, "deny": {}}
    warnings: list[str] = []
    for key, texts in lists.items():
        verdict = _KEYS.get(key)
        if verdict is None:
            warnings.append(f"{key!r} is no list of rules")
            continue
        for text in texts:
            read = parse_rule(text if isinstance(text, RuleText) else RuleText(text), Verdict(verdict))
            if read.rule is not None:
                rules[verdict].setdefault(read.rule)
            if read.warning is not None:
                warnings.append(read.warning)
    return Rules(tuple(rules["allow"]), tuple(rules["ask"]), tuple(rules["deny"]), tuple(warnings))
