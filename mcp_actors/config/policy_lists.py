"""Owns how the allow and deny lists of settings files are read, each file by itself, and joined.

What this is not: what the lists decide (`policy`), nor which files there are (`settings_texts`).

Rule: what is not understood in a managed list closes, it does not open (S059).
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from mcp_actors.config.expand import expand
from mcp_actors.config.patterns import parse_pattern
from mcp_actors.config.policy import PLUGIN_ONLY, Policy
from mcp_actors.config.policy_rules import CommandRule, NameRule, UrlRule
from mcp_actors.values import frozen

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mcp_actors.config.notes import Findings
    from mcp_actors.config.policy_rules import Rule
    from mcp_actors.jsontypes import Json, JsonObject

__all__ = ["PolicySource", "combine", "parse_policy"]

ALLOWED_NAME = re.compile(r"[A-Za-z0-9_-]+")
# What a variable of an allowed address may not bring in: it would widen or move what the entry allows (S058).
WIDENING = re.compile(r"[*/\\?#@:%]|\.\.|^$")


@frozen
class PolicySource:
    """What one settings file says. `allow` None: it has no allow list."""

    file: str
    is_managed: bool = False
    allow: tuple[Rule, ...] | None = None
    deny: tuple[Rule, ...] = ()
    # allowManagedMcpServersOnly: only managed allow lists count (S055).
    is_managed_only: bool = False
    # strictPluginOnlyCustomization: only plugins and the administrator bring servers along (S064).
    is_plugin_only: bool = False


def parse_policy(
    settings: JsonObject,
    findings: Findings,
    *,
    is_managed: bool,
    environ: Mapping[str, str],
    more: Mapping[str, str] | None = None,
) -> PolicySource:
    """Read the lists of one settings file.

    Args:
        settings: the file's object.
        findings: what is wrong goes there.
        is_managed: the file belongs to the administrator.
        environ: the environment at start with the managed `env` over it: all that allow entries may use (S058).
        more: variables of settings files; deny entries may use them where `environ` has none.

    Returns:
        The lists, closed rather than open where a managed one is not understood.

    Source:
        S046, S049, S058, S059.
    """
    file = findings.file
    before = len(findings.problems)
    allow = _parse_list(settings, "allowedMcpServers", findings, is_managed, environ, {})
    deny = _parse_list(settings, "deniedMcpServers", findings, is_managed, environ, more or {})
    only = settings.get("allowManagedMcpServersOnly", False) if is_managed else False
    if not isinstance(only, bool):
        findings.problem(("allowManagedMcpServersOnly",), "must be true or false: taken as true")
        only = True
    if not is_managed and len(findings.problems) > before:
        # A person's own file is either right or not used; the problem says so (S059).
        return PolicySource(file)
    return PolicySource(file, is_managed, allow, deny or (), only, is_managed and _is_plugin_only(settings, findings))


def combine(sources: Sequence[PolicySource]) -> Policy:
    """Join the lists of all settings files.

    Source:
        S054, S055, S064.
    """
    managed_only = any(source.is_managed_only for source in sources if source.is_managed)
    counting = [source for source in sources if source.is_managed or not managed_only]
    lists = [source.allow for source in counting if source.allow is not None]
    allow = tuple(rule for rules in lists for rule in rules) if lists else None
    return Policy(
        allow,
        tuple(rule for source in sources for rule in source.deny),
        plugins_only_by=next((source.file for source in sources if source.is_plugin_only), None),
    )


def _is_plugin_only(settings: JsonObject, findings: Findings) -> bool:
    """Whether a managed file keeps people's and projects' own servers out; a list names what it is about (S064)."""
    value = settings.get(PLUGIN_ONLY, False)
    if isinstance(value, bool):
        return value
    if isinstance(value, list) and all(isinstance(word, str) for word in value):
        return "mcp" in value
    findings.problem((PLUGIN_ONLY,), "must be true, false or a list of texts: taken as true")
    return True


def _parse_list(
    settings: JsonObject,
    key: str,
    findings: Findings,
    is_managed: bool,
    environ: Mapping[str, str],
    more: Mapping[str, str],
) -> tuple[Rule, ...] | None:
    value = settings.get(key)
    is_allow = key == "allowedMcpServers"
    if key not in settings or (value is None and not is_managed):
        return None
    if not isinstance(value, list):
        closed = "nothing is allowed" if is_allow else "it has no effect"
        findings.problem((key,), "must be a list of entries" + (f": {closed}" if is_managed else ""))
        return () if is_allow else None
    rules: list[Rule] = []
    for index, entry in enumerate(value):
        rule, reason = _parse_rule(entry, findings.file, is_allow, environ, more)
        if rule is None:
            findings.note((key, index), "invalid-policy-entry", f"{reason}: this entry has no effect")
        else:
            rules.append(rule)
    return tuple(rules)


def _parse_rule(
    entry: Json, file: str, is_allow: bool, environ: Mapping[str, str], more: Mapping[str, str]
) -> tuple[Rule | None, str]:
    if not isinstance(entry, Mapping) or len(entry) != 1:
        return None, "must be an object with one key: serverName, serverCommand or serverUrl"
    [(kind, value)] = entry.items()
    if kind == NameRule.kind:
        if not isinstance(value, str) or not value:
            return None, "serverName must be a text"
        if is_allow and not ALLOWED_NAME.fullmatch(value):
            return None, "an allowed serverName has only letters, digits, _ and -: use serverUrl or serverCommand"
        return NameRule(value, file, value), ""
    if kind == CommandRule.kind:
        if not isinstance(value, list) or not value or not all(isinstance(word, str) for word in value):
            return None, "serverCommand must be a list of texts"
        words = [word for word in value if isinstance(word, str)]
        return CommandRule(json.dumps(words), file, tuple(expand(word, {**more, **environ}).text for word in words)), ""
    if kind == UrlRule.kind:
        if not isinstance(value, str) or not value.strip():
            return None, "serverUrl must be a text"
        if is_allow and (reason := _widening(value, environ)):
            return None, reason
        return UrlRule(value, file, parse_pattern(expand(value.strip(), {**more, **environ}).text)), ""
    return None, "must have the key serverName, serverCommand or serverUrl"


def _widening(text: str, environ: Mapping[str, str]) -> str | None:
    """Why the variables of an allowed address must not be filled in, None when they may (S058)."""
    if "${" not in text:
        return None
    authority = re.match(r"[^/]*//[^/?#]*|[^/?#]*", text)
    if authority is not None and "${" in authority.group():
        return "a variable may not stand in the scheme or host of an allowed address"
    marked = expand(text, _Watched(environ))
    if marked.unset:
        return "a variable of the address is not set"
    pieces = marked.text.split(MARK)[1::2]
    if any(WIDENING.search(piece) for piece in pieces):
        return "a variable would widen or move what the address allows"
    return None


# Stands around each inserted value while it is looked at; no address holds it.
MARK = "\0"


class _Watched(dict[str, str]):
    """Variables whose values come with marks around them."""

    def get(self, name: str, default: str | None = None) -> str | None:  # type: ignore[override]
        value = super().get(name)
        return default if value is None else f"{MARK}{value}{MARK}"
