"""Owns what else a server may ask: a model's words (sampling) and the directories it may use (roots). Both deprecated.

What this is not: a model or a file system, nor the judge of questions and answers (`protocol.question_rules`).

Rule 1: a server never gets more of a model than the limits say, whatever it asks for.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from attrs import field

from mcp_actors.errors import ConfigError
from mcp_actors.protocol.jsonrpc import INVALID_PARAMS, encode
from mcp_actors.protocol.question_rules import MAX_ROOTS, Refused, refuse_root
from mcp_actors.values import define, frozen

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from mcp_actors.jsontypes import Json, JsonObject

__all__ = [
    "REJECTED",
    "Deprecations",
    "Root",
    "SamplingAnswer",
    "SamplingLimits",
    "SamplingRequest",
    "read_roots",
    "read_sampling",
    "roots_result",
    "sampling_result",
]

# "User rejected sampling request" (spec_client 9.4).
REJECTED: Final = Refused(-1, "User rejected sampling request")


@frozen
class SamplingLimits:
    """What one server gets of a model."""

    # Upper bound of `maxTokens`; a server that asks for more gets this.
    max_tokens: int = 4096
    # The whole request, as JSON text.
    max_request_bytes: int = 1024 * 1024
    # Of one server, at once; more wait.
    max_concurrent: int = 1
    # Waiting and running of one server; more are refused.
    max_open: int = 20
    # Seconds that the host may take.
    timeout: float = 300.0
    has_tools: bool = False


@frozen
class SamplingRequest:
    """What a server wants a model to say. Untrusted; shown to a person before and after (S299, spec_client 9.4)."""

    server: str
    # Role and content of each message, as sent, oldest first.
    messages: tuple[JsonObject, ...] = field(repr=lambda messages: f"<{len(messages)} messages>")
    # Never more than the limit.
    max_tokens: int
    system_prompt: str | None = field(default=None, repr=False)
    temperature: float | None = None
    stop_sequences: tuple[str, ...] = ()
    # Names of models, the first that matches wins.
    model_hints: tuple[str, ...] = ()
    # Everything as sent, for what is not read here.
    params: JsonObject = field(factory=dict, repr=False)


@frozen
class SamplingAnswer:
    """What the model said: `content` is a content block, or several of them."""

    content: Json = field(repr=False)
    model: str
    stop_reason: str | None = "endTurn"
    role: str = "assistant"


def read_sampling(server: str, params: JsonObject, limits: SamplingLimits) -> SamplingRequest | Refused:
    """Read and bound the params of ``sampling/createMessage`` that `question_rules.refuse_question` did not refuse.

    Source:
        F11; spec_client 9.4.
    """
    if len(encode(params)) > limits.max_request_bytes:
        return Refused(INVALID_PARAMS, f"the request has more than {limits.max_request_bytes} bytes")
    asked, hints = params.get("maxTokens"), params.get("modelPreferences")
    named = hints.get("hints") if isinstance(hints, Mapping) else None
    system, temperature = params.get("systemPrompt"), params.get("temperature")
    is_number = isinstance(temperature, int | float) and not isinstance(temperature, bool)
    return SamplingRequest(
        server=server,
        messages=tuple(message for message in _items(params.get("messages")) if isinstance(message, Mapping)),
        max_tokens=min(int(asked) if isinstance(asked, int | float) else limits.max_tokens, limits.max_tokens),
        system_prompt=system if isinstance(system, str) else None,
        temperature=temperature if is_number and isinstance(temperature, int | float) else None,
        stop_sequences=tuple(text for text in _items(params.get("stopSequences")) if isinstance(text, str)),
        model_hints=tuple(
            name for hint in _items(named) if isinstance(hint, Mapping) and isinstance(name := hint.get("name"), str)
        ),
        params=params,
    )


def _items(value: Json) -> Sequence[Json]:
    return value if isinstance(value, list | tuple) else ()


def sampling_result(answer: SamplingAnswer) -> JsonObject:
    """Write the result of ``sampling/createMessage``."""
    result: dict[str, Json] = {"role": answer.role, "content": answer.content, "model": answer.model}
    return result if answer.stop_reason is None else {**result, "stopReason": answer.stop_reason}


# ── roots ────────────────────────────────────────────────────────────────────────────────────────────────────────────


@frozen
class Root:
    """A directory or file that servers may use: a ``file://`` URI, and a name for people."""

    uri: str
    name: str | None = None


def read_roots(roots: Iterable[Root]) -> tuple[Root, ...]:
    """Judge the roots that a host wants to expose.

    Raises:
        ConfigError: one is no absolute ``file://`` URI of this machine, or there are too many.

    Source:
        spec_client 9.3: "file:// URIs only", "MUST: expose only permitted, validated paths".
    """
    known = tuple(roots)
    if len(known) > MAX_ROOTS:
        raise ConfigError(reason=f"there are more than {MAX_ROOTS} roots")
    for root in known:
        is_root = isinstance(root, Root) and isinstance(root.name, str | None)
        reason = refuse_root(root.uri) if is_root else "a root is a Root, and its name a text"
        if reason is not None:
            raise ConfigError(reason=reason)
    return known


def roots_result(roots: Iterable[Root]) -> JsonObject:
    """Write the result of ``roots/list``."""
    return {"roots": [{"uri": r.uri} if r.name is None else {"uri": r.uri, "name": r.name} for r in roots]}


# ── deprecation ──────────────────────────────────────────────────────────────────────────────────────────────────────


@define(eq=False)
class Deprecations:
    """What was told of features that the newest revision deprecates: each feature of each server once."""

    # Pairs (server, feature); at most one per configured server and feature.
    _told: set[tuple[str, str]] = field(factory=set, init=False)

    def note(self, server: str, feature: str) -> str | None:
        """What to tell about the use of a feature; None when it was told before (spec_client 9.6)."""
        if (server, feature) in self._told:
            return None
        self._told.add((server, feature))
        return f"{server} uses {feature}, which MCP 2026-07-28 deprecates"
