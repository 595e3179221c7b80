"""Owns subscriptions: what somebody wants to hear of, how each era asks for it, and when to ask again.

What this is not: the open request (`session`), nor the fetching of what changed.

Rules.
Rule 1: one description serves both eras. Modern servers get one ``subscriptions/listen``; legacy ones send list changes
by themselves and want ``resources/subscribe`` for each resource (F01, F04).
Rule 2: what was not honoured is told, so that its owner can live on the age of what it has (spec_client 7.8).
Rule 3: nothing is replayed: whoever listens again fetches again (F02).
Rule 4: a loss is followed by another try, later each time; an end in order by a longer pause; a refusal by none.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, TypeAlias

from mcp_actors.errors import RpcError
from mcp_actors.protocol.features import is_offered
from mcp_actors.protocol.jsonrpc import INVALID_PARAMS, METHOD_NOT_FOUND, MISSING_CAPABILITY
from mcp_actors.protocol.outbound import META_PREFIX
from mcp_actors.protocol.types import Era
from mcp_actors.values import frozen

if TYPE_CHECKING:
    from mcp_actors.errors import McpActorsError
    from mcp_actors.jsontypes import Json, JsonObject
    from mcp_actors.protocol.types import ServerInfo

__all__ = [
    "Again",
    "ListenFilter",
    "ListenPlan",
    "Never",
    "covers_uri",
    "decide_relisten",
    "plan_listening",
    "subscription_id",
]

LISTEN: Final = "subscriptions/listen"
ACKNOWLEDGED: Final = "notifications/subscriptions/acknowledged"
SUBSCRIPTION_ID: Final = META_PREFIX + "subscriptionId"

# Kind of a list -> its key in the filter. The kinds are also names of the server's capabilities.
_LIST_KEYS: Final = {
    "tools": "toolsListChanged",
    "prompts": "promptsListChanged",
    "resources": "resourcesListChanged",
}
# More than anybody subscribes to; a server may send any list back.
_MAX_NAMES: Final = 10_000

FIRST_BACKOFF: Final = 1.0
MAX_BACKOFF: Final = 60.0
# A server that ends in order means it, so it is asked again in its own time (spec_client 7.8).
GRACEFUL_BACKOFF: Final = 30.0
# A subscription that lived so many seconds has proved itself; an acknowledgement alone proves nothing.
PROOF: Final = 60.0
# Half of the pause is chance, so that a restarted server is not met by everybody at once.
_JITTER: Final = 0.5
# The server does not know the method, or cannot honour the filter; another try would end the same way.
_FINAL_CODES: Final = frozenset({METHOD_NOT_FOUND, INVALID_PARAMS, MISSING_CAPABILITY})


# One for all filters: each server keeps a few of them.
_NONE: Final[frozenset[str]] = frozenset()


@frozen
class ListenFilter:
    """What to hear of: lists by kind ("tools", "prompts", "resources"), resources by URI."""

    lists: frozenset[str] = _NONE
    uris: frozenset[str] = _NONE

    def __bool__(self) -> bool:
        return bool(self.lists or self.uris)

    def __sub__(self, other: ListenFilter) -> ListenFilter:
        """What is in this one and not in `other`."""
        if self == other:
            return NOTHING
        return ListenFilter(self.lists - other.lists, self.uris - other.uris)

    def to_params(self) -> JsonObject:
        """Write it as the parameters of ``subscriptions/listen``; everything is opt-in."""
        wanted: dict[str, Json] = {key: True for kind, key in _LIST_KEYS.items() if kind in self.lists}
        if self.uris:
            wanted["resourceSubscriptions"] = sorted(self.uris)
        return {"notifications": wanted}

    @classmethod
    def read(cls, value: Json) -> ListenFilter:
        """Read what a server says that it honours; what is no filter is an empty one."""
        if not isinstance(value, Mapping):
            return cls()
        return cls(
            frozenset(kind for kind, key in _LIST_KEYS.items() if value.get(key) is True),
            _names(value.get("resourceSubscriptions")),
        )


# What whoever wants nothing hears of.
NOTHING: Final = ListenFilter()


def covers_uri(own: str, uri: str) -> bool:
    """Whether news of `uri` are for the resource `own`: for itself, or from below it (spec_client 7.8)."""
    return uri == own or uri.startswith(own if own.endswith("/") else own + "/")


def _names(value: Json) -> frozenset[str]:
    if not isinstance(value, list | tuple):
        return _NONE
    return frozenset(name for name in value[:_MAX_NAMES] if isinstance(name, str))


def subscription_id(params: JsonObject) -> Json:
    """Read the id that a notification is tagged with, as sent; None when there is none."""
    meta = params.get("_meta")
    return meta.get(SUBSCRIPTION_ID) if isinstance(meta, Mapping) else None


# ── asking ──────────────────────────────────────────────────────────────────────────────────────────────────────────


@frozen
class ListenPlan:
    """How a server is asked for what somebody wants to hear of."""

    # For ``subscriptions/listen``; None where there is nothing to listen to, and in legacy.
    listen: ListenFilter | None
    # URIs for ``resources/subscribe``, sorted; legacy only.
    subscribe: tuple[str, ...]
    # What this server will not tell; live on its age.
    missing: ListenFilter


def plan_listening(wanted: ListenFilter, info: ServerInfo) -> ListenPlan:
    """Decide how to ask this server.

    Modern servers are asked for all that their capabilities do not rule out, and say what they honour. Of legacy ones
    only what they declared can come.

    Source:
        MCP 2026-07-28, "Subscriptions"; 2025-11-25, server/resources, "Subscriptions"; F01, F04, fault 69.
    """
    offered = info.capabilities
    able = ListenFilter(
        frozenset(kind for kind in wanted.lists if is_offered(offered, f"{kind}.listChanged")),
        wanted.uris if is_offered(offered, "resources.subscribe") else _NONE,
    )
    if info.era is Era.MODERN:
        return ListenPlan(able or None, (), wanted - able)
    return ListenPlan(None, tuple(sorted(able.uris)), wanted - able)


# ── asking again ────────────────────────────────────────────────────────────────────────────────────────────────────


@frozen
class Again:
    """Listen again after so many seconds, then fetch everything that is depended on."""

    after: float


@frozen
class Never:
    """Do not listen again on this connection; live on the age of what there is."""

    reason: str


RelistenStep: TypeAlias = Again | Never


def decide_relisten(error: McpActorsError | None, failures: int, chance: float) -> RelistenStep:
    """Decide what follows the end of a subscription.

    Args:
        error: why it was lost; None when the server ended it in order.
        failures: how often in a row it ended, this time included; one that lived for `PROOF` seconds starts anew at 1.
        chance: a random number from 0 to 1.

    Source:
        F02; spec_client 7.8.
    """
    if isinstance(error, RpcError) and error.code in _FINAL_CODES:
        return Never(error.describe())
    first = GRACEFUL_BACKOFF if error is None else FIRST_BACKOFF
    longest = min(MAX_BACKOFF, first * 2.0 ** min(max(failures, 1) - 1, 16))
    return Again(longest * (1 - _JITTER * min(max(chance, 0.0), 1.0)))
