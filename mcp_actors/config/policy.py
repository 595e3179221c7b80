"""Owns the administrator's and the user's say: which servers may run, by allow and deny lists.

What this is not: how the lists are read (`policy_lists`), what an entry of them matches (`policy_rules`), nor the
exclusive managed file (S025), nor approval.

Rules. Deny wins, whoever said it (S047). No allow list allows all, an empty one nothing (S052). A remote server must
match an address entry when the list has one, a program a command entry; only without such entries a name is enough
(S053).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from attrs import evolve

from mcp_actors.config.specs import RemoteTarget, Scope, TransportName
from mcp_actors.errors import ServerNotAllowed
from mcp_actors.values import frozen

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mcp_actors.config.policy_rules import Rule
    from mcp_actors.config.specs import ServerSpec

__all__ = [
    "BY_COMMAND",
    "BY_NAME",
    "BY_URL",
    "EXEMPT",
    "OPEN_POLICY",
    "PLUGIN_ONLY",
    "Policy",
    "Verdict",
    "apply_policy",
    "decide",
]

# Provided by the host or an IDE, not by a file: outside of allow lists, not of deny lists (S048).
EXEMPT = frozenset({TransportName.SDK, TransportName.SSE_IDE, TransportName.WS_IDE})

# The setting that closes the files of people and projects, and the scopes that these are (S064).
PLUGIN_ONLY = "strictPluginOnlyCustomization"
OWN_SCOPES = frozenset({Scope.USER, Scope.PROJECT, Scope.LOCAL})

# What may run beside an exclusive file: its own servers, and connectors where it lets them in (S056).
MANAGED_SCOPES = frozenset({Scope.ENTERPRISE, Scope.CLAUDEAI})

# What an entry of a list goes by, as the lists call it: the configured name, the command, the address.
BY_NAME: Final = "serverName"
BY_COMMAND: Final = "serverCommand"
BY_URL: Final = "serverUrl"


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
        if rule.matches(spec, in_every_spelling=False):
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
        counts = rule.kind == kind if has_decisive else rule.kind == BY_NAME
        if counts and rule.matches(spec, in_every_spelling=True):
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


def _decisive_kind(spec: ServerSpec) -> str:
    return BY_URL if isinstance(spec.target, RemoteTarget) else BY_COMMAND


def _named(which: str, rule: Rule) -> str:
    return f"{which} {rule.kind} {rule.text}"
