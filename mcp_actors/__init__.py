"""mcp_actors: the runtime that keeps a whole fleet of MCP servers alive.

The map: ``head -qn1 mcp_actors/*/__init__.py | sort`` prints the rooms and the law that holds in each.

This is the front door: the names people import. Each is loaded when first used, so that importing the package costs
next to nothing and a program pays only for the rooms it enters.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mcp_actors.actors.host import Host, ServerRequest
    from mcp_actors.actors.lifecycle import Phase, ServerState, ServerStatus
    from mcp_actors.actors.listening import LogWatcher, ResourceWatcher
    from mcp_actors.actors.registry import StatusChange, Watcher
    from mcp_actors.actors.slots import Progress
    from mcp_actors.actors.telemetry import connection_event
    from mcp_actors.auth.driving import Reception, SignInPrompter
    from mcp_actors.auth.grants import DeviceCode
    from mcp_actors.auth.prompters import BrowserSignInPrompter, SignInPage
    from mcp_actors.auth.status import AuthStatus
    from mcp_actors.config.changes import Applied
    from mcp_actors.config.loaded import LoadedConfig
    from mcp_actors.config.settings import Settings
    from mcp_actors.config.sources import SourceReading
    from mcp_actors.config.specs import (
        EraChoice,
        InProcessTarget,
        RemoteTarget,
        RestartDefaults,
        RestartPolicy,
        RestartType,
        Scope,
        ServerSpec,
        StdioTarget,
        TransportName,
    )
    from mcp_actors.elicitation.fields import Form
    from mcp_actors.elicitation.handlers import Root, SamplingAnswer, SamplingLimits, SamplingRequest
    from mcp_actors.elicitation.hooks import TOOL_EVENTS, HookContext, Hooks, read_hooks
    from mcp_actors.elicitation.policy import PreparedAnswer
    from mcp_actors.elicitation.requests import Action, Answer, InputRequest
    from mcp_actors.errors import (
        ActorError,
        ActorGone,
        AuthError,
        AuthFailed,
        AuthRequired,
        CallError,
        ConfigError,
        ConnectFailed,
        CredentialsRefused,
        ElicitationDeclined,
        GaveUp,
        LocalProtocolError,
        MailboxFull,
        McpActorsError,
        NotWatched,
        ProtocolError,
        RemoteProtocolError,
        RpcError,
        ServerNotAllowed,
        ServerNotReady,
        TaskEnded,
        TransportBroken,
        TransportClosed,
        TransportError,
        UnknownPrompt,
        UnknownServer,
        UnknownTool,
        UnsupportedRevision,
    )
    from mcp_actors.files.loading import load_config
    from mcp_actors.files.plugins import Plugin
    from mcp_actors.fleet.connectors import ConnectorSource, HttpConnectorSource, join_connectors
    from mcp_actors.fleet.questions import Questions
    from mcp_actors.fleet.reloading import keep_reloading
    from mcp_actors.fleet.running import Runtime
    from mcp_actors.fleet.server import Refreshed, RefreshOutcome, Server
    from mcp_actors.fleet.skills import LoadedSkill
    from mcp_actors.model.composer import Attachment, Composer, PromptMessage
    from mcp_actors.model.face import ModelFace
    from mcp_actors.model.outputs import Outputs
    from mcp_actors.model.permission import Allow, Deny
    from mcp_actors.model.permission_tool import permission_tool
    from mcp_actors.model.pins import PinBook, PinStore
    from mcp_actors.model.result_reader import Called
    from mcp_actors.protocol.events import LogReceived
    from mcp_actors.protocol.questions import InputRequired
    from mcp_actors.protocol.task_handle import TaskHandle
    from mcp_actors.questions.messages import PendingQuestion
    from mcp_actors.questions.prompters import CallableQuestionPrompter, QuestionPrompter
    from mcp_actors.runtime import open_runtime
    from mcp_actors.tools.catalog import Catalog, Collision, Tool
    from mcp_actors.tools.items import Prompt, Resource, ResourceTemplate
    from mcp_actors.tools.listing import Listing
    from mcp_actors.tools.mentions import Mention, MissingArguments
    from mcp_actors.tools.permission_rules import Rules, Verdict, read_rules
    from mcp_actors.tools.permissions import Decision, PermissionRequest
    from mcp_actors.tools.pinning import Pin, PinPolicy, ToolChange
    from mcp_actors.tools.plans import Limits, ModelImage, ModelResult, ModelText
    from mcp_actors.tools.results import ToolResult
    from mcp_actors.tools.search import ToolMatch
    from mcp_actors.tools.skills import Skill, SkillFile
    from mcp_actors.tools.view import ToolView

__all__ = [
    "TOOL_EVENTS",
    "Action",
    "ActorError",
    "ActorGone",
    "Allow",
    "Answer",
    "Applied",
    "Attachment",
    "AuthError",
    "AuthFailed",
    "AuthRequired",
    "AuthStatus",
    "BrowserSignInPrompter",
    "CallError",
    "CallableQuestionPrompter",
    "Called",
    "Catalog",
    "Collision",
    "Composer",
    "ConfigError",
    "ConnectFailed",
    "ConnectorSource",
    "CredentialsRefused",
    "Decision",
    "Deny",
    "DeviceCode",
    "ElicitationDeclined",
    "EraChoice",
    "Form",
    "GaveUp",
    "HookContext",
    "Hooks",
    "Host",
    "HttpConnectorSource",
    "InProcessTarget",
    "InputRequest",
    "InputRequired",
    "Limits",
    "Listing",
    "LoadedConfig",
    "LoadedSkill",
    "LocalProtocolError",
    "LogReceived",
    "LogWatcher",
    "MailboxFull",
    "McpActorsError",
    "Mention",
    "MissingArguments",
    "ModelFace",
    "ModelImage",
    "ModelResult",
    "ModelText",
    "NotWatched",
    "Outputs",
    "PendingQuestion",
    "PermissionRequest",
    "Phase",
    "Pin",
    "PinBook",
    "PinPolicy",
    "PinStore",
    "Plugin",
    "PreparedAnswer",
    "Progress",
    "Prompt",
    "PromptMessage",
    "ProtocolError",
    "QuestionPrompter",
    "Questions",
    "Reception",
    "RefreshOutcome",
    "Refreshed",
    "RemoteProtocolError",
    "RemoteTarget",
    "Resource",
    "ResourceTemplate",
    "ResourceWatcher",
    "RestartDefaults",
    "RestartPolicy",
    "RestartType",
    "Root",
    "RpcError",
    "Rules",
    "Runtime",
    "SamplingAnswer",
    "SamplingLimits",
    "SamplingRequest",
    "Scope",
    "Server",
    "ServerNotAllowed",
    "ServerNotReady",
    "ServerRequest",
    "ServerSpec",
    "ServerState",
    "ServerStatus",
    "Settings",
    "SignInPage",
    "SignInPrompter",
    "Skill",
    "SkillFile",
    "SourceReading",
    "StatusChange",
    "StdioTarget",
    "TaskEnded",
    "TaskHandle",
    "Tool",
    "ToolChange",
    "ToolMatch",
    "ToolResult",
    "ToolView",
    "TransportBroken",
    "TransportClosed",
    "TransportError",
    "TransportName",
    "UnknownPrompt",
    "UnknownServer",
    "UnknownTool",
    "UnsupportedRevision",
    "Verdict",
    "Watcher",
    "connection_event",
    "join_connectors",
    "keep_reloading",
    "load_config",
    "open_runtime",
    "permission_tool",
    "read_hooks",
    "read_rules",
]

# Module -> the names that live there; whatever is not listed is an error.
_HOMES = {
    "actors.host": ("Host", "ServerRequest"),
    "actors.lifecycle": ("Phase", "ServerState", "ServerStatus"),
    "actors.listening": ("LogWatcher", "ResourceWatcher"),
    "questions.prompters": ("CallableQuestionPrompter", "QuestionPrompter"),
    "questions.messages": ("PendingQuestion",),
    "actors.registry": ("StatusChange", "Watcher"),
    "actors.slots": ("Progress",),
    "actors.telemetry": ("connection_event",),
    "auth.driving": ("Reception", "SignInPrompter"),
    "auth.grants": ("DeviceCode",),
    "auth.prompters": ("BrowserSignInPrompter", "SignInPage"),
    "auth.status": ("AuthStatus",),
    "config.changes": ("Applied",),
    "config.loaded": ("LoadedConfig",),
    "config.settings": ("Settings",),
    "config.sources": ("SourceReading",),
    "config.specs": (
        "EraChoice",
        "InProcessTarget",
        "RemoteTarget",
        "RestartDefaults",
        "RestartPolicy",
        "RestartType",
        "Scope",
        "ServerSpec",
        "StdioTarget",
        "TransportName",
    ),
    "elicitation.fields": ("Form",),
    "elicitation.handlers": ("Root", "SamplingAnswer", "SamplingLimits", "SamplingRequest"),
    "elicitation.hooks": ("TOOL_EVENTS", "HookContext", "Hooks", "read_hooks"),
    "elicitation.policy": ("PreparedAnswer",),
    "elicitation.requests": ("Action", "Answer", "InputRequest"),
    "files.loading": ("load_config",),
    "files.plugins": ("Plugin",),
    "fleet.connectors": ("ConnectorSource", "HttpConnectorSource", "join_connectors"),
    "fleet.questions": ("Questions",),
    "fleet.reloading": ("keep_reloading",),
    "fleet.running": ("Runtime",),
    "fleet.server": ("RefreshOutcome", "Refreshed", "Server"),
    "fleet.skills": ("LoadedSkill",),
    "model.composer": ("Attachment", "Composer", "PromptMessage"),
    "model.face": ("ModelFace",),
    "model.outputs": ("Outputs",),
    "model.permission": ("Allow", "Deny"),
    "model.permission_tool": ("permission_tool",),
    "model.pins": ("PinBook", "PinStore"),
    "model.result_reader": ("Called",),
    "protocol.events": ("LogReceived",),
    "protocol.questions": ("InputRequired",),
    "protocol.task_handle": ("TaskHandle",),
    "runtime": ("open_runtime",),
    "tools.catalog": ("Catalog", "Collision", "Tool"),
    "tools.items": ("Prompt", "Resource", "ResourceTemplate"),
    "tools.listing": ("Listing",),
    "tools.mentions": ("Mention", "MissingArguments"),
    "tools.permission_rules": ("Rules", "Verdict", "read_rules"),
    "tools.permissions": ("Decision", "PermissionRequest"),
    "tools.pinning": ("Pin", "PinPolicy", "ToolChange"),
    "tools.plans": ("Limits", "ModelImage", "ModelResult", "ModelText"),
    "tools.results": ("ToolResult",),
    "tools.search": ("ToolMatch",),
    "tools.skills": ("Skill", "SkillFile"),
    "tools.view": ("ToolView",),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    value: object = getattr(import_module(f"{__name__}.{_HOME_OF.get(name, 'errors')}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
