"""Owns what the refusal of a request can mean besides an error: a lost session, or another revision to speak.

What this is not: the second try. `session` says that one is due, once for each request, and its caller makes it.

Rules.
Rule 1: status 404 and code -32001 together mean that the session is gone. Either alone does not: a 404 may be a wrong
URL, which would be asked for ever, and -32001 is also a timeout of the SDKs (S405, S406, S408).
Rule 2: under ``spec`` a 404 suffices when our request carried the session's id (S407).
Rule 3: a server that says it in words with 400, 401 or 404 is believed when this very session has served before; a
challenge beside it asks for a login.
Rule 4: without an id of ours in the request nothing is a lost session (C04), nor is anything in the modern era (C20).
Rule 5: a stream of the session that is refused like that is a reason to ask, and no more: rules 1-4 judge the answer.
Rule 6: -32022 that names a modern revision of ours is worth one more try, also when it names the one that was sent.
Rule 7: a server that turns requests away by the manners of the other era has changed it: -32022 towards a legacy
conversation; towards a modern one -32022 without a modern revision of ours; over HTTP 400 or 404 with words about the
protocol version, or towards a modern one about sessions.
The conversation ends, and the next finds the era anew: nothing is decided about it here (A06).
"""

from __future__ import annotations

import enum
import re
from typing import TYPE_CHECKING, Final

from mcp_actors.errors import RpcError, UnsupportedRevision
from mcp_actors.protocol.jsonrpc import INVALID_PARAMS, METHOD_NOT_FOUND, UNSUPPORTED_VERSION
from mcp_actors.protocol.refusals import rpc_error_in
from mcp_actors.protocol.revisions import MODERN, named_revisions, newest_mutual
from mcp_actors.protocol.types import Era

if TYPE_CHECKING:
    from mcp_actors.errors import McpActorsError
    from mcp_actors.protocol.types import Refusal

__all__ = [
    "SessionExpiry",
    "is_doubted",
    "is_expired",
    "is_outgrown",
    "is_version_error",
    "renegotiated",
    "supported_by",
    "unsupported",
]

SESSION_NOT_FOUND: Final = -32001

# For bodies that are no JSON-RPC as they stand: cut short, wrapped, or as text.
_CODE_IN_TEXT: Final = re.compile(rb'"code"\s*:\s*-32001(?!\d)')
# What the SDKs write, as a whole sentence: "Session not found", "Bad Request: No valid session ID provided". A tool may
# speak of sessions of its own, and may have run; such a request is not sent again for that.
_SESSION: Final = r"(?:the )?(?:mcp[ -])?session(?:[ _-]?id)?(?: header)?"
_WORDS: Final = re.compile(
    r"\s*(?:(?:bad request|not found|unauthorized|invalid request|error)\W+)?(?:"
    rf"(?:could not find|missing|no(?: valid| active)?|unknown|(?:unknown|invalid)(?: or expired)?|expired) {_SESSION}"
    r"(?: (?:provided|found))?"
    rf"|{_SESSION} (?:(?:is|was|has|has been|does) )?(?:not found|not exist|unknown|invalid|expired|terminated|required"
    r"|missing)"
    r"|server (?:is )?not initialized"
    r")(?::? \S{1,128})?[.!]?\s*",
    re.IGNORECASE,
)
_SAY_IT_IN_WORDS: Final = frozenset({400, 401, 404})
_MAY_BE_LOSS: Final = frozenset({400, 404, 410})
# Method not found and invalid params speak of the request, whatever words they use.
_OF_THE_REQUEST: Final = frozenset({METHOD_NOT_FOUND, INVALID_PARAMS})
# SDKs of Python and Rust said it in bare words under 400 and 401, for a year of releases, without naming a type.
_TYPES_OF_A_SENTENCE: Final = frozenset({"", "text/plain"})
# What servers say that miss the other era's marks: "_meta lacks protocolVersion", "Unsupported protocol version".
_WORDS_OF_VERSIONS: Final = re.compile(
    r"\b(?:unsupported|unknown|invalid|bad|missing|lacks|no) (?:header )?(?:mcp[ -])?protocol[ -]?version",
    re.IGNORECASE,
)
_TURNED_AWAY: Final = frozenset({400, 404})
# Longest plain text that is a sentence and not a page.
_MAX_SENTENCE_BYTES: Final = 200


class SessionExpiry(enum.StrEnum):
    """By what evidence a wire session counts as lost."""

    # 404 and -32001 (S405).
    DUAL = "dual"
    # 404 to a request that carried our session id (S407).
    SPEC = "spec"


def is_expired(refusal: Refusal, rule: SessionExpiry, *, has_served: bool) -> bool:
    """Whether a refusal in the legacy era says that the wire session is gone.

    Args:
        refusal: the answer to a request of a conversation that is READY.
        rule: what evidence a 404 needs.
        has_served: this wire session has answered a request before, so that the URL is right.

    Source:
        S405-S408, C04, fault 32.
    """
    if not refusal.had_session:
        return False
    error = rpc_error_in(refusal)
    if refusal.status == 404:
        is_named = error.code == SESSION_NOT_FOUND if error else _CODE_IN_TEXT.search(refusal.body) is not None
        if is_named or rule == SessionExpiry.SPEC:
            return True
    if not has_served or refusal.status not in _SAY_IT_IN_WORDS or refusal.challenge is not None:
        return False
    if error is not None:
        return error.code not in _OF_THE_REQUEST and _WORDS.fullmatch(error.message) is not None
    is_sentence = refusal.content_type in _TYPES_OF_A_SENTENCE and len(refusal.body) <= _MAX_SENTENCE_BYTES
    return is_sentence and _WORDS.fullmatch(refusal.body.decode("utf-8", "replace")) is not None


def is_doubted(refusal: Refusal) -> bool:
    """Whether a refusal of what waits for no answer may say that the wire session is gone (rule 5)."""
    return refusal.had_session and refusal.status in _MAY_BE_LOSS


def is_version_error(error: McpActorsError) -> bool:
    """Whether the server does not speak the revision of our request (-32022)."""
    return isinstance(error, RpcError) and error.code == UNSUPPORTED_VERSION


def supported_by(error: McpActorsError) -> tuple[str, ...]:
    """Read the revisions that a version error names in its data; none when it names none."""
    data = error.data if isinstance(error, RpcError) else None
    return named_revisions(data.get("supported")) if isinstance(data, dict) else ()


def is_outgrown(error: McpActorsError, era: Era) -> bool:
    """Whether the failure of one request says that the server is of another era than at the handshake (rule 7).

    Whether it ran is not known for sure: words prove nothing. Another era at the next handshake does.
    """
    if isinstance(error, UnsupportedRevision):
        return era is Era.MODERN
    if not isinstance(error, RpcError):
        return False
    if era is Era.LEGACY and is_version_error(error) and renegotiated(error) is not None:
        return True
    if error.http_status not in _TURNED_AWAY or error.code == METHOD_NOT_FOUND:
        return False
    if _WORDS_OF_VERSIONS.search(error.message) is not None:
        return True
    # In the legacy era words about sessions speak of the session, and it is renewed (rules 1-4).
    is_of_sessions = era is Era.MODERN and error.code not in _OF_THE_REQUEST
    return is_of_sessions and _WORDS.fullmatch(error.message) is not None


def renegotiated(error: McpActorsError) -> str | None:
    """Give the modern revision to ask again at; None when the server speaks none of ours (rule 6, A03)."""
    return newest_mutual(MODERN, supported_by(error))


def unsupported(error: McpActorsError) -> UnsupportedRevision:
    """Make the error that names both sides of one that no further try can help."""
    return UnsupportedRevision(offered=MODERN, supported=supported_by(error))
