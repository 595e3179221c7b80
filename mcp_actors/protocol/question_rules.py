"""Owns the rules for questions of a server and for our answers: which may be put, which may be sent.

What this is not: which requests are open (`server_requests`), the asking of people or models (handlers do that), nor
forms and their defaults (`elicitation`). Roots, sampling and elicitation are judged here.

Rules.
Rule 1: only declared kinds and modes are asked for. In legacy anything else is refused with the code that the rule
names; in modern it makes the result invalid that holds it (F08). What is wrong with a question, or with an answer, does
not depend on the era, nor on who answers.
Rule 2: a missing mode is "form" (F08).
Rule 3: roots are ``file://`` URIs and nothing else (E13).
Rule 4: sampling has tools only where they were declared, and results of tools stand where they belong (F11). That no
more tokens come than ``maxTokens`` is for the handler to keep; nobody can count them here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from mcp_actors.protocol.features import CAPABILITY_OF, ELICITATION, ROOTS, SAMPLING, is_offered
from mcp_actors.protocol.jsonrpc import INVALID_PARAMS, METHOD_NOT_FOUND
from mcp_actors.values import frozen

if TYPE_CHECKING:
    from mcp_actors.jsontypes import Json, JsonObject

__all__ = [
    "MAX_ROOTS",
    "Refused",
    "elicitation_mode",
    "has_mode",
    "refuse_answer",
    "refuse_messages",
    "refuse_question",
    "refuse_root",
]

_ACTIONS: Final = frozenset({"accept", "decline", "cancel"})
_PRIMITIVES: Final = (str, int, float, bool)
# Bounds of what one question may hold: far beyond anything a person would read.
MAX_MESSAGES: Final = 10_000
MAX_ROOTS: Final = 10_000


@frozen
class Refused:
    """A question that nobody is asked, or that nobody answers, and the error that a legacy server is owed for it."""

    code: int
    reason: str


# ── questions ───────────────────────────────────────────────────────────────────────────────────────────────────────


def refuse_question(method: str, params: JsonObject, capabilities: JsonObject) -> Refused | None:
    """Say why a question of the server must not be put; None when it may.

    Args:
        method: "roots/list", "sampling/createMessage" or "elicitation/create".
        params: as sent.
        capabilities: ours, as declared on the request or in the handshake that this belongs to.

    Source:
        F08, F11; MCP 2026-07-28, "Multi Round-Trip Requests", "Elicitation", "Sampling".
    """
    capability = CAPABILITY_OF.get(method)
    if capability is None or not is_offered(capabilities, capability):
        return Refused(METHOD_NOT_FOUND, f"{method[:40]} was not declared")
    if method == ELICITATION:
        return _refuse_elicitation(params, capabilities)
    return _refuse_sampling(params, capabilities) if method == SAMPLING else None


def elicitation_mode(params: JsonObject) -> str:
    """Tell the mode of an elicitation; a missing one is "form" (rule 2)."""
    mode = params.get("mode")
    return "form" if mode is None else mode if isinstance(mode, str) else repr(mode)[:40]


def has_mode(capabilities: JsonObject, mode: str) -> bool:
    """Whether we declared this mode of elicitation; an empty object means "form" alone."""
    declared = capabilities.get("elicitation")
    if not isinstance(declared, Mapping):
        return False
    return mode == "form" if not declared else mode in {"form", "url"} and is_offered(declared, mode)


def _refuse_elicitation(params: JsonObject, capabilities: JsonObject) -> Refused | None:
    mode = elicitation_mode(params)
    if not has_mode(capabilities, mode):
        return Refused(INVALID_PARAMS, f"the elicitation mode {mode[:40]!r} was not declared")
    if not isinstance(params.get("message"), str):
        return Refused(INVALID_PARAMS, "the elicitation has no message")
    if mode == "url":
        return None if isinstance(params.get("url"), str) else Refused(INVALID_PARAMS, "the elicitation has no url")
    schema = params.get("requestedSchema")
    if isinstance(schema, Mapping):
        # Servers in the field leave the properties out where a yes or no is all that they want.
        fields = schema.get("properties", {} if schema.get("type") == "object" else None)
        if isinstance(fields, Mapping):
            return None
    return Refused(INVALID_PARAMS, "the elicitation has no requestedSchema with properties")


def _refuse_sampling(params: JsonObject, capabilities: JsonObject) -> Refused | None:
    has_tools = params.get("tools") is not None or params.get("toolChoice") is not None
    if has_tools and not is_offered(capabilities, "sampling.tools"):
        return Refused(INVALID_PARAMS, "tools in sampling were not declared")
    messages = params.get("messages")
    if not isinstance(messages, list | tuple) or not 0 < len(messages) <= MAX_MESSAGES:
        return Refused(INVALID_PARAMS, "sampling has no list of messages, or too long a one")
    max_tokens = params.get("maxTokens")
    if isinstance(max_tokens, bool) or not isinstance(max_tokens, int | float):
        return Refused(INVALID_PARAMS, "sampling has no maxTokens")
    if max_tokens < 1 or max_tokens % 1 != 0:  # no infinity either: it has no rest
        return Refused(INVALID_PARAMS, "maxTokens of sampling is no positive whole number")
    reason = refuse_messages(messages)
    return None if reason is None else Refused(INVALID_PARAMS, reason)


def refuse_messages(messages: Sequence[Json]) -> str | None:
    """Say why sampling messages are malformed; None when they are sound.

    Every assistant message with uses of tools is followed by a user message that holds their results, each exactly
    once, and nothing else (F11; MCP 2025-11-25, client/sampling, "Tool Result Messages").
    """
    due: set[str] = set()
    for place, message in enumerate(messages, 1):
        if not isinstance(message, Mapping) or message.get("role") not in ("user", "assistant"):
            return f"message {place} has no role"
        blocks = _blocks(message.get("content"))
        if blocks is None:
            return f"message {place} has no content"
        results = [_text(block.get("toolUseId")) for block in blocks if block.get("type") == "tool_result"]
        if results and len(results) != len(blocks):
            return f"message {place} mixes results of tools with other content"
        if results and message.get("role") != "user":
            return f"message {place} has results of tools and is not the user's"
        if set(results) != due or len(set(results)) != len(results):
            return f"message {place} does not answer exactly the tools that were used before it"
        uses = [_text(block.get("id")) for block in blocks if block.get("type") == "tool_use"]
        if uses and message.get("role") != "assistant":
            return f"message {place} uses tools and is not the assistant's"
        if len(set(uses)) != len(uses) or "" in uses:
            return f"message {place} uses tools without ids of their own"
        due = set(uses)
    return "the last message uses tools that nothing answers" if due else None


def _blocks(content: Json) -> list[JsonObject] | None:
    """Read content, one block or a list of them; None when it is neither."""
    listed = content if isinstance(content, list | tuple) else (content,)
    blocks = [block for block in listed if isinstance(block, Mapping) and isinstance(block.get("type"), str)]
    return blocks if blocks and len(blocks) == len(listed) else None


def _text(value: Json) -> str:
    return value if isinstance(value, str) else ""


# ── answers ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def refuse_answer(method: str, params: JsonObject, answer: Json) -> str | None:
    """Say why an answer of a handler must not be sent; None when it may. This guards against our own bugs.

    Source:
        E13, F09, F11; MCP 2026-07-28, `ListRootsResult`, `CreateMessageResult`, `ElicitResult`.
    """
    if not isinstance(answer, Mapping):
        return "the answer is no JSON object"
    judge = {ROOTS: _refuse_roots, SAMPLING: _refuse_message, ELICITATION: _refuse_reply}.get(method)
    return None if judge is None else judge(params, answer)


def refuse_root(uri: Json) -> str | None:
    """Say why this cannot be a root; None when it can (rule 3)."""
    if not isinstance(uri, str):
        return "a root has no uri"
    try:
        parts = urlsplit(uri)
    except ValueError:
        return f"the root {uri[:80]!r} is no URI"
    is_local = parts.netloc in ("", "localhost")
    if (
        parts.scheme != "file"
        or not uri.lower().startswith("file://")
        or not is_local
        or not parts.path.startswith("/")
    ):
        return f"the root {uri[:80]!r} is no local file:// URI"
    if parts.query or parts.fragment or not (uri.isascii() and uri.isprintable()):
        return f"the root {ascii(uri)[:80]} has more than a path"
    if any(step in ("..", ".") for step in parts.path.replace("%2e", ".").replace("%2E", ".").split("/")):
        return f"the path of the root {uri[:80]!r} climbs"
    return None


def _refuse_roots(_: JsonObject, answer: JsonObject) -> str | None:
    roots = answer.get("roots")
    if not isinstance(roots, list | tuple) or len(roots) > MAX_ROOTS:
        return "the answer has no list of roots, or too long a one"
    reasons = (refuse_root(root.get("uri") if isinstance(root, Mapping) else None) for root in roots)
    return next((reason for reason in reasons if reason is not None), None)


def _refuse_message(params: JsonObject, answer: JsonObject) -> str | None:
    if answer.get("role") not in ("user", "assistant"):
        return "the sampled message has no role"
    if not isinstance(answer.get("model"), str):
        return "the sampled message names no model"
    blocks = _blocks(answer.get("content"))
    if blocks is None:
        return "the sampled message has no content"
    uses_tools = any(block.get("type") == "tool_use" for block in blocks)
    if uses_tools and not params.get("tools"):
        return "the sampled message uses tools that nobody offered"
    return None


def _refuse_reply(params: JsonObject, answer: JsonObject) -> str | None:
    action, content = answer.get("action"), answer.get("content")
    if action not in _ACTIONS:
        return "the elicitation's action is none of accept, decline, cancel"
    if action != "accept" or elicitation_mode(params) != "form":
        return None if content is None else "only an accepted form has content"
    if not isinstance(content, Mapping):
        return "the accepted form has no content"
    for name, value in content.items():
        is_texts = isinstance(value, list | tuple) and all(isinstance(item, str) for item in value)
        if not isinstance(value, _PRIMITIVES) and not is_texts:
            return f"the form's field {name[:40]!r} is no text, number, boolean or list of texts"
    return None
