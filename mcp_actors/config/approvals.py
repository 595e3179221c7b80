"""Owns the decision whether a server that a project brings along may run.

What this is not: the store of choices, nor the question put to a person; they pass their knowledge in.

Rules. A project's server runs only after somebody said yes (fault 109). A yes is bound to the exact definition: a
changed one asks again. A no wins over every yes. What a repository says about itself counts only in a trusted folder
(S024).
"""

from __future__ import annotations

import enum
import hashlib
import json
from typing import TYPE_CHECKING

from attrs import evolve

from mcp_actors.config.specs import RemoteTarget, Scope, ServerSpec, StdioTarget
from mcp_actors.values import frozen

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = [
    "Approval",
    "Approvals",
    "apply_approvals",
    "apply_trust",
    "approval_of",
    "definition_hash",
    "describe_definition",
]


class Approval(enum.StrEnum):
    """What is known about one project server (S023)."""

    APPROVED = "approved"
    PENDING = "pending-approval"
    REJECTED = "rejected"


@frozen
class Approvals:
    """The choices of the user, from wherever they are kept. Names are server names."""

    # `definition_hash` of the definitions that were accepted.
    hashes: frozenset[str] = frozenset()
    # enabledMcpjsonServers, disabledMcpjsonServers, enableAllProjectMcpServers of the settings files that count.
    enabled: frozenset[str] = frozenset()
    disabled: frozenset[str] = frozenset()
    is_all_enabled: bool = False

    def joined(self, other: Approvals) -> Approvals:
        """Both together; lists add up."""
        return Approvals(
            self.hashes | other.hashes,
            self.enabled | other.enabled,
            self.disabled | other.disabled,
            self.is_all_enabled or other.is_all_enabled,
        )


def definition_hash(spec: ServerSpec) -> str:
    """Hash of a definition as written, unexpanded, with its name and file: what a yes is bound to. Hex, 64 characters.

    Unexpanded, since a new token in the environment is no new definition, and a repository cannot set our environment.
    With its file, since ``./server.py`` is another program in another folder.
    """
    canonical = json.dumps([spec.source, spec.name, spec.raw], sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()


def approval_of(spec: ServerSpec, approvals: Approvals) -> Approval:
    """Whether `spec` may run. Only project servers need a yes.

    Source:
        S023, S024; fault 109.
    """
    if spec.scope is not Scope.PROJECT:
        return Approval.APPROVED
    if spec.name in approvals.disabled:
        return Approval.REJECTED
    if approvals.is_all_enabled or spec.name in approvals.enabled or definition_hash(spec) in approvals.hashes:
        return Approval.APPROVED
    return Approval.PENDING


def apply_approvals(specs: Iterable[ServerSpec], approvals: Approvals) -> tuple[ServerSpec, ...]:
    """Switch off every spec that may not run, with the reason; order is kept."""

    def decided(spec: ServerSpec) -> ServerSpec:
        approval = approval_of(spec, approvals)
        if approval is Approval.APPROVED:
            return spec
        return evolve(spec, is_enabled=False, disabled_reason=approval.value)

    return tuple(decided(spec) for spec in specs)


def apply_trust(specs: Iterable[ServerSpec], approvals: Approvals, *, is_trusted: bool) -> tuple[ServerSpec, ...]:
    """Mark every helper that may not run: one of a project or local server, neither trusted nor said yes to.

    A yes to the name of a server, or to all of a project, is no yes to a command that prints headers; one to the exact
    definition is, for it was shown.

    Source:
        S090, S024.
    """

    def decided(spec: ServerSpec) -> ServerSpec:
        target = spec.target
        if (
            not isinstance(target, RemoteTarget)
            or target.headers_helper is None
            or spec.scope not in (Scope.PROJECT, Scope.LOCAL)
            or is_trusted
            or definition_hash(spec) in approvals.hashes
        ):
            return spec
        return evolve(spec, target=evolve(target, is_helper_trusted=False))

    return tuple(decided(spec) for spec in specs)


def describe_definition(spec: ServerSpec) -> tuple[str, ...]:
    """What a person must see before saying yes: the exact command or address as written, one line each, nothing cut.

    Every value is in JSON quotes, so that no control character or look-alike space can hide something.
    """
    raw = spec.raw
    lines: list[str] = []
    if isinstance(spec.target, StdioTarget):
        args = raw.get("args")
        words = [raw.get("command"), *(args if isinstance(args, list) else [])]
        lines.append("command: " + " ".join(json.dumps(word) for word in words))
        lines += [f"{key}: {json.dumps(raw[key])}" for key in ("cwd", "env", "envFile") if raw.get(key)]
    elif isinstance(spec.target, RemoteTarget):
        lines.append("url: " + json.dumps(raw.get("url")))
        lines += [f"{key}: {json.dumps(raw[key])}" for key in ("headers", "headersHelper") if raw.get(key)]
    return tuple(lines)
