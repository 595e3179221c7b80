"""Owns the reading of settings files: what all of them together choose and allow.

What this is not: finding those files (`files.settings_files`), nor what is made of it (`choices` has the values).

Rules. A yes of a repository's own settings counts only in a trusted folder, a no always (S023, S024, S240). Lists of
all files add up (S054, S063). A managed file that cannot be read allows nothing (S059). What cannot be read, and may
have been a deny rule for tools, denies every tool; what may have been an ask rule asks about every tool.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from attrs import evolve

from mcp_actors.config.approvals import Approvals
from mcp_actors.config.choices import RuleText, SettingsLayer, choices_of_environment
from mcp_actors.config.jsonc import decode_text, parse_json
from mcp_actors.config.notes import ConfigNote, Findings
from mcp_actors.config.policy_lists import combine, parse_policy
from mcp_actors.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from mcp_actors.config.choices import Choices, SettingsText
    from mcp_actors.config.documents import Document
    from mcp_actors.config.policy_lists import PolicySource
    from mcp_actors.jsontypes import Json, JsonObject

__all__ = ["merge_settings", "parse_settings", "read_choices"]

# Files that a repository can carry: their yes needs a trusted folder.
CARRIED = frozenset({SettingsLayer.PROJECT, SettingsLayer.LOCAL})

# The lists of ``permissions`` (S230).
RULE_LISTS: Final = ("allow", "ask", "deny")
# The rule that stands for what cannot be read, in each list; an allow that cannot be read is none.
UNREADABLE: Final[Mapping[str, str]] = {"ask": "*", "deny": "*"}
_EFFECT: Final = {"allow": "it has no effect", "ask": "every tool is asked about", "deny": "every tool is denied"}


def read_choices(texts: Iterable[SettingsText], environ: Mapping[str, str], *, is_trusted: bool = False) -> Choices:
    """Read all settings files.

    Args:
        texts: in any order; managed ones of one directory in the order of their names.
        environ: the environment at start.
        is_trusted: the user trusts the folder that the project's files lie in.

    Returns:
        The choices. A managed file that cannot be parsed allows nothing; another one counts as empty, with a problem,
        but for tools: it may have denied some, so all are denied.

    Source:
        S013, S023, S024, S054-S059, S062-S064, S230, S240.
    """
    problems: list[ConfigError] = []
    notes: list[ConfigNote] = []
    read: list[tuple[SettingsText, JsonObject, Document]] = []
    broken: list[str] = []
    permissions: dict[str, tuple[RuleText, ...]] = {}
    for text in sorted(texts, key=lambda text: text.layer):
        try:
            document = _parse(text)
        except ConfigError as problem:
            problems.append(problem)
            document = None
        if document is not None and isinstance(document.value, Mapping):
            read.append((text, document.value, document))
            continue
        permissions["deny"] = (*permissions.get("deny", ()), RuleText(UNREADABLE["deny"], _cannot_be_read(text)))
        notes.append(ConfigNote("unreadable-settings", f"cannot be read: {_EFFECT['deny']} to models", file=text.file))
        if text.layer is SettingsLayer.MANAGED:
            broken.append(text.file)
    managed_environ = dict(environ)
    more: dict[str, str] = {}
    for text, settings, _ in read:
        variables = _variables(settings)
        if text.layer is SettingsLayer.MANAGED:
            managed_environ |= variables
        if text.layer in (SettingsLayer.MANAGED, SettingsLayer.USER):
            more |= variables
    approvals = Approvals()
    sources: list[PolicySource] = []
    hooks: list[Json] = []
    are_off, are_managed = False, False
    sideloads_off_by: str | None = None
    for text, settings, document in read:
        findings = Findings(text.file)
        is_managed = text.layer is SettingsLayer.MANAGED
        sources.append(parse_policy(settings, findings, is_managed=is_managed, environ=managed_environ, more=more))
        approvals = approvals.joined(
            _approvals(settings, findings, may_approve=is_trusted or text.layer not in CARRIED)
        )
        are_off = are_off or settings.get("disableClaudeAiConnectors") is True
        # What an administrator wrote there and nobody understands, closes.
        if is_managed and settings.get("disableSideloadFlags", False) is not False:
            sideloads_off_by = text.file
        are_managed = are_managed or (is_managed and settings.get("allowAllClaudeAiMcps") is True)
        for key, rules in _permissions(settings, findings, text, is_trusted=is_trusted):
            permissions[key] = (*permissions.get(key, ()), *rules)
        if settings.get("hooks"):
            # A hook is a program: one that a repository brings along runs only where the user trusts the folder.
            if is_trusted or text.layer not in CARRIED:
                hooks.append(settings["hooks"])
            else:
                findings.note(("hooks",), "untrusted-hooks", "run in trusted folders only")
        if "mcpServers" in settings:
            findings.note(
                ("mcpServers",),
                "servers-in-settings",
                "is not read here: servers belong into .mcp.json or ~/.claude.json",
            )
        findings.place(document.locate)
        problems += findings.problems
        notes += findings.notes
    policy = combine(sources)
    if broken:
        policy = evolve(policy, allow=(), closed_by=", ".join(broken))
    base = choices_of_environment(environ, is_trusted=is_trusted)
    return evolve(
        base,
        approvals=approvals,
        policy=policy,
        are_connectors_off=base.are_connectors_off or are_off,
        sideloads_off_by=sideloads_off_by,
        are_connectors_managed=are_managed,
        hooks=() if any(_disables_hooks(text, settings) for text, settings, _ in read) else tuple(hooks),
        permissions=permissions,
        problems=tuple(problems),
        notes=tuple(notes),
    )


def _disables_hooks(text: SettingsText, settings: JsonObject) -> bool:
    """Whether a file switches all hooks off; a repository cannot switch off an administrator's."""
    return settings.get("disableAllHooks") is True and text.layer not in CARRIED


def _parse(text: SettingsText) -> Document | None:
    if text.data is None:
        return None
    document = parse_json(decode_text(text.data, text.file), text.file)
    if not isinstance(document.value, Mapping):
        raise ConfigError(file=text.file, reason="must be an object")
    return document


def parse_settings(text: SettingsText) -> JsonObject | None:
    """The object of a settings file; None when it is none."""
    try:
        document = _parse(text)
    except ConfigError:
        return None
    return document.value if document is not None and isinstance(document.value, Mapping) else None


def merge_settings(pieces: Sequence[JsonObject]) -> JsonObject:
    """Join the managed file and its drop-ins: later single values win, lists are joined, objects go deeper (S062)."""
    merged: dict[str, Json] = {}
    for piece in pieces:
        for key, value in piece.items():
            held = merged.get(key)
            if isinstance(held, list) and isinstance(value, list):
                merged[key] = [*held, *(item for item in value if item not in held)]
            elif isinstance(held, Mapping) and isinstance(value, Mapping):
                merged[key] = merge_settings([held, value])
            else:
                merged[key] = value
    return merged


def _approvals(settings: JsonObject, findings: Findings, *, may_approve: bool) -> Approvals:
    enabled = _names(settings, "enabledMcpjsonServers", findings)
    disabled = _names(settings, "disabledMcpjsonServers", findings)
    is_all = settings.get("enableAllProjectMcpServers", False)
    if not isinstance(is_all, bool):
        findings.note(("enableAllProjectMcpServers",), "invalid-setting", "must be true or false: it has no effect")
        is_all = False
    if not may_approve and (enabled or is_all):
        findings.note(
            (), "untrusted-approval", "approves servers of its own repository, which counts in trusted folders only"
        )
        enabled, is_all = frozenset(), False
    return Approvals(enabled=enabled, disabled=disabled, is_all_enabled=is_all)


def _permissions(
    settings: JsonObject, findings: Findings, text: SettingsText, *, is_trusted: bool
) -> Iterator[tuple[str, list[RuleText]]]:
    """The lists of one file, each rule with its origin; what cannot be read stands for every tool (S230)."""
    section = settings.get("permissions", {})
    if not isinstance(section, Mapping):
        findings.note(("permissions",), "invalid-setting", f"must be an object: {_EFFECT['deny']}")
        yield "deny", [RuleText(UNREADABLE["deny"], _cannot_be_read(text, "permissions"))]
        return
    may_allow = is_trusted or text.layer not in CARRIED
    for key in RULE_LISTS:
        written = section.get(key)
        if isinstance(written, str):
            findings.note(("permissions", key), "invalid-setting", "must be a list of rules: it is read as one rule")
            written = [written]
        entries = written if isinstance(written, list) else [] if written is None else [written]
        rules = [RuleText(rule, text.file, may_allow) for rule in entries if isinstance(rule, str)]
        if len(rules) != len(entries):
            findings.note(("permissions", key), "invalid-setting", f"must be a list of texts: {_EFFECT[key]}")
            if key in UNREADABLE:
                rules.append(RuleText(UNREADABLE[key], _cannot_be_read(text, f"permissions.{key}")))
        if rules:
            yield key, rules


def _cannot_be_read(text: SettingsText, key: str | None = None) -> str:
    """Whose a rule is that stands for what cannot be read."""
    return f"{text.file}, where {key} cannot be read" if key else f"{text.file} cannot be read"


def _names(settings: JsonObject, key: str, findings: Findings) -> frozenset[str]:
    value = settings.get(key)
    if value is None:
        return frozenset()
    if not isinstance(value, list):
        findings.note((key,), "invalid-setting", "must be a list of names: it has no effect")
        return frozenset()
    return frozenset(name for name in value if isinstance(name, str))


def _variables(settings: JsonObject) -> dict[str, str]:
    env = settings.get("env")
    if not isinstance(env, Mapping):
        return {}
    return {name: value for name, value in env.items() if isinstance(value, str)}
