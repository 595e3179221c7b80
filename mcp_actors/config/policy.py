"""Owns the administrator's and the user's say: which servers may run, by allow and deny lists.

What this is not: how the lists are read (`policy_lists`), nor the exclusive managed file (S025), nor approval.

Rules. Deny wins, whoever said it (S047). No allow list allows all, an empty one nothing (S052). A remote server must
match an address entry when the list has one, a program a command entry; only without such entries a name is enough
(S053).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from attrs import evolve, field

from mcp_actors.config.patterns import UrlPattern, parse_address
from mcp_actors.config.specs import RemoteTarget, Scope, ServerSpec, StdioTarget, TransportName
from mcp_actors.errors import ServerNotAllowed
from mcp_actors.values import frozen

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


__all__ = [
    "EXEMPT",
    "OPEN_POLICY",
    "CommandRule",
    "NameRule",
    "Policy",
    "PolicySource",
    "Rule",
    "UrlRule",
    "Verdict",
    "apply_policy",
    "combine",
    "decide",
]

# Provided by the host or an IDE, not by a file: outside of allow lists, not of deny lists (S048).
EXEMPT = frozenset({TransportName.SDK, TransportName.SSE_IDE, TransportName.WS_IDE})

# The setting that closes the files of people and projects, and the scopes that these are (S064).
PLUGIN_ONLY = "strictPluginOnlyCustomization"
OWN_SCOPES = frozenset({Scope.USER, Scope.PROJECT, Scope.LOCAL})

# What may run beside an exclusive file: its own servers, and connectors where it lets them in (S056).
MANAGED_SCOPES = frozenset({Scope.ENTERPRISE, Scope.CLAUDEAI})


@frozen
class NameRule:
    """Matches the configured name, literally (S049)."""

    text: str
    source: str
    name: str
    kind = "serverName"


@frozen
class CommandRule:
    """Matches command and arguments, element by element (S050)."""

    text: str
    source: str
    command: tuple[str, ...] = field(repr=False)
    kind = "serverCommand"


@frozen
class UrlRule:
    """Matches an address (S051)."""

    text: str
    source: str
    pattern: UrlPattern = field(repr=False)
    kind = "serverUrl"


Rule: TypeAlias = NameRule | CommandRule | UrlRule


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


@frozen
class Policy:
    """All that is allowed and denied, from every source. Rules carry their file."""

    allow: tuple[Rule, ...] | None = None
    deny: tuple[Rule, ...] = ()
    # Managed files that could not be read, which is why nothing is allowed.
    closed_by: str | None = None
    # The managed file by which a person's and a project's own servers may not run.
    plugins_only_by: str | None = None
    # The managed file that is in charge: what it does not define does not run (S016, S026).
    exclusive_by: str | None = None


OPEN_POLICY = Policy()


class Verdict(NamedTuple):
    """The answer for one server. `rule` names what decided, as written; None when nothing had to."""

    is_allowed: bool
    reason: str = "allowed"
    rule: str | None = None
    source: str | None = None

    def error(self, server: str) -> ServerNotAllowed:
        """The error to raise where somebody tries to use a server that may not run (S060, S061)."""
        return ServerNotAllowed(
            server=server, file=self.source, reason=self.reason, rule=self.rule, category="not_allowed"
        )

    def __str__(self) -> str:
        return self.reason + (f" by {self.rule}" if self.rule else "") + (f" of {self.source}" if self.source else "")


def decide(spec: ServerSpec, policy: Policy) -> Verdict:
    """Whether `spec` may run.

    Args:
        spec: with all variables filled in: policy judges what would run, not how it is written.
        policy: the combined lists.

    Returns:
        The verdict, naming the rule.

    Source:
        S016, S026, S046-S053, S064; faults 29 and 30.
    """
    for rule in policy.deny:
        if _matches(rule, spec, in_every_spelling=False):
            return Verdict(is_allowed=False, reason="explicitly blocked", rule=_named("deny", rule), source=rule.source)
    if policy.exclusive_by is not None and spec.scope not in MANAGED_SCOPES and spec.transport not in EXEMPT:
        reason = "an administrator has exclusive control of MCP servers"
        return Verdict(is_allowed=False, reason=reason, rule="exclusive file", source=policy.exclusive_by)
    if policy.plugins_only_by is not None and spec.scope in OWN_SCOPES:
        reason = "not allowed: only plugins and the administrator bring servers along"
        return Verdict(is_allowed=False, reason=reason, rule=PLUGIN_ONLY, source=policy.plugins_only_by)
    if policy.allow is None or spec.transport in EXEMPT:
        return Verdict(is_allowed=True)
    if policy.closed_by is not None:
        reason = "not allowed: a managed settings file cannot be read"
        return Verdict(is_allowed=False, reason=reason, rule="unreadable file", source=policy.closed_by)
    kind = _decisive_kind(spec)
    has_decisive = any(rule.kind == kind for rule in policy.allow)
    for rule in policy.allow:
        counts = rule.kind == kind if has_decisive else rule.kind == NameRule.kind
        if counts and _matches(rule, spec, in_every_spelling=True):
            return Verdict(is_allowed=True, rule=_named("allow", rule), source=rule.source)
    what = f"no {kind} entry matches" if has_decisive else "no entry matches"
    sources = ", ".join(dict.fromkeys(rule.source for rule in policy.allow)) or None
    return Verdict(
        is_allowed=False, reason=f"not allowed: {what}", rule="allow list" if policy.allow else "empty allow list",
        source=sources,
    )  # fmt: skip


def apply_policy(specs: Iterable[ServerSpec], policy: Policy) -> tuple[ServerSpec, ...]:
    """Switch off what may not run, with the rule as detail; order is kept (S060, S061)."""

    def decided(spec: ServerSpec) -> ServerSpec:
        verdict = decide(spec, policy)
        if verdict.is_allowed:
            return spec
        return evolve(spec, is_enabled=False, disabled_reason="policy", disabled_detail=str(verdict))

    return tuple(decided(spec) for spec in specs)


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


def _decisive_kind(spec: ServerSpec) -> str:
    return UrlRule.kind if isinstance(spec.target, RemoteTarget) else CommandRule.kind


def _matches(rule: Rule, spec: ServerSpec, *, in_every_spelling: bool) -> bool:
    if isinstance(rule, NameRule):
        return rule.name == spec.name
    if isinstance(rule, CommandRule):
        return isinstance(spec.target, StdioTarget) and rule.command == (spec.target.command, *spec.target.args)
    if not isinstance(spec.target, RemoteTarget):
        return False
    return rule.pattern.matches(parse_address(spec.target.url), in_every_spelling=in_every_spelling)


def _named(which: str, rule: Rule) -> str:
    return f"{which} {rule.kind} {rule.text}"
