"""Owns the JSON codec (the only doorway of msgspec) and the shape of JSON-RPC 2.0 messages on the wire (S065).

What this is not: what messages mean; that is `inbound`, `outbound` and `session`.

Rule 1: whatever arrives, decoding raises `RemoteProtocolError` or returns; no RecursionError, no ValueError gets out.
Rule 2: results are not decoded with their envelope. They stay bytes until somebody wants to read them.
Rule 3: text that is broken *inside* a string (half a surrogate pair, bytes that are no UTF-8) is mended with U+FFFD,
since JavaScript servers cut strings in the middle of an emoji and the other 10 MB are still good. Structure never is.
"""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import TYPE_CHECKING, Final, TypeAlias, TypeVar

import msgspec

from mcp_actors.errors import LocalProtocolError, RemoteProtocolError

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcp_actors.jsontypes import Json, JsonObject
    from mcp_actors.protocol.types import RequestId

__all__ = [
    "ABSENT",
    "HEADER_MISMATCH",
    "INTERNAL_ERROR",
    "INVALID_PARAMS",
    "METHOD_NOT_FOUND",
    "MISSING_CAPABILITY",
    "NO_JSON",
    "NULL",
    "UNSUPPORTED_VERSION",
    "Envelope",
    "RawJson",
    "decode",
    "decode_envelope",
    "decode_object",
    "decode_page",
    "decode_texts",
    "encode",
    "encode_answer",
    "encode_error",
    "encode_notification",
    "encode_request",
    "peek_result_type",
    "raw_json",
    "raw_members",
    "require_object",
    "split_batch",
]

T = TypeVar("T")

# JSON text that is embedded as it is when something around it is encoded.
RawJson: TypeAlias = msgspec.Raw
# The member was not there; None means that it was null.
ABSENT: Final = msgspec.UNSET
NO_JSON: Final = msgspec.Raw(b"")
NULL: Final = b"null"

# Codes of errors: JSON-RPC's own, then those that the modern era adds. Codes that one module reads stand there.
METHOD_NOT_FOUND: Final = -32601
INVALID_PARAMS: Final = -32602
INTERNAL_ERROR: Final = -32603
HEADER_MISMATCH: Final = -32020
MISSING_CAPABILITY: Final = -32021
UNSUPPORTED_VERSION: Final = -32022

# Mending walks the text a few times more; above this size a broken message is just broken.
MAX_MENDED_BYTES: Final = 16 * 1024 * 1024
_BOM: Final = b"\xef\xbb\xbf"
_HIGH: Final = rb"\\u[dD][89abAB][0-9a-fA-F]{2}"
_LOW: Final = rb"\\u[dD][c-fC-F][0-9a-fA-F]{2}"
# Half of a surrogate pair, in a text where a backslash always begins an escape. (It starts with fixed bytes: that is
# what makes the search fast.) Like other patterns that few servers need, it is compiled when first used.
_HALF_PAIR: Final = (
    rb"\\u[dD](?:[89abAB][0-9a-fA-F]{2}(?!" + _LOW + rb")|(?<!" + _HIGH + rb"\\u[dD])[c-fC-F][0-9a-fA-F]{2})"
)
# Stands for an escaped backslash meanwhile; JSON never holds a NUL.
_STAND_IN: Final = b"\0\0"


class Envelope(msgspec.Struct, gc=False, frozen=True):
    """One incoming message with its members still undecoded, where they can be large."""

    jsonrpc: object = ABSENT
    id: object = ABSENT
    method: object = ABSENT
    params: msgspec.Raw = NO_JSON
    result: msgspec.Raw = NO_JSON
    error: msgspec.Raw = NO_JSON


class _ResultHead(msgspec.Struct, gc=False, frozen=True):
    resultType: object = ABSENT  # noqa: N815 - the wire's spelling


class _Text(msgspec.Struct, gc=False, frozen=True):
    """An object of which one member counts; under which key, each decoder of it says."""

    text: str


class _Page(msgspec.Struct, gc=False, frozen=True):
    """A page of a list; under which key its items are, each decoder of it says."""

    items: list[msgspec.Raw]
    cursor: msgspec.Raw


def _encode_other(value: object) -> object:
    """Turn the read-only containers that `Json` allows into what the codec knows."""
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, Sequence):
        return list(value)
    raise TypeError(f"no JSON for {type(value).__name__}")


# Types whose values cannot hold a float, which most of JSON is made of.
_NO_NUMBERS: Final = frozenset({str, int, bool, bytes, type(None)})
_TABLES: Final = (dict, Mapping)
_LISTS: Final = (list, tuple, Sequence, AbstractSet)
_encoder: Final = msgspec.json.Encoder(enc_hook=_encode_other)
_encode: Final = _encoder.encode
_decode_any: Final = msgspec.json.Decoder().decode
_decode_envelope: Final = msgspec.json.Decoder(Envelope).decode
_decode_head: Final = msgspec.json.Decoder(_ResultHead).decode
_decode_members: Final = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_decode_elements: Final = msgspec.json.Decoder(list[msgspec.Raw]).decode


@functools.cache  # there are three such keys
def _text_decoders(key: str) -> tuple[Callable[[bytes], _Text], Callable[[bytes], Sequence[_Text]]]:
    class Keyed(_Text, gc=False, frozen=True):
        text: str = msgspec.field(name=key)

    return msgspec.json.Decoder(Keyed).decode, msgspec.json.Decoder(list[Keyed]).decode


@functools.cache  # one for each kind of list
def _page_decoder(key: str) -> Callable[[bytes], _Page]:
    class Keyed(_Page, gc=False, frozen=True):
        items: list[msgspec.Raw] = msgspec.field(name=key)
        cursor: msgspec.Raw = msgspec.field(name="nextCursor", default=msgspec.Raw(NULL))

    return msgspec.json.Decoder(Keyed).decode


def encode(value: object) -> bytes:
    """Encode a JSON value, compact, in UTF-8.

    Raises:
        LocalProtocolError: `value` is no JSON, holds NaN or an infinity, which JSON lacks, or nests too deep.
    """
    try:
        encoded = _encode(value)
    except (TypeError, ValueError, OverflowError, RecursionError) as exc:
        raise LocalProtocolError(reason=f"cannot be written as JSON: {exc}") from exc
    # The codec writes them as null. Where there is none, which costs little to see, nothing has to be walked through.
    if NULL in encoded and not _is_finite(value):
        raise LocalProtocolError(reason="cannot be written as JSON: a number is not finite")
    return encoded


def _is_finite(value: object) -> bool:
    """Whether all numbers in a value that was encoded are finite."""
    waiting = [value]
    while waiting:
        item = waiting.pop()
        if type(item) in _NO_NUMBERS:
            pass
        elif isinstance(item, float):
            if not math.isfinite(item):
                return False
        elif isinstance(item, _TABLES):
            waiting.extend(item.values())
        elif isinstance(item, _LISTS) and not isinstance(item, str | bytes | bytearray):
            waiting.extend(item)
    return True


def require_object(name: str, value: object) -> None:
    """Raise `LocalProtocolError` for what a caller gave as `name`, and is no JSON object."""
    if type(value) is not dict and not isinstance(value, Mapping):
        raise LocalProtocolError(reason=f"{name} are a JSON object, not {type(value).__name__}")


def encode_request(request_id: RequestId, method: str, params: JsonObject | None) -> bytes:
    """Encode a request; `params` None leaves the member out."""
    if params is None:
        return encode({"jsonrpc": "2.0", "id": request_id, "method": method})
    return encode({"jsonrpc": "2.0", "id": request_id, "method": method, "params": params})


def encode_notification(method: str, params: JsonObject | None) -> bytes:
    """Encode a notification; `params` None leaves the member out."""
    if params is None:
        return encode({"jsonrpc": "2.0", "method": method})
    return encode({"jsonrpc": "2.0", "method": method, "params": params})


def encode_answer(request_id: RequestId, result: JsonObject | RawJson) -> bytes:
    """Encode the successful answer to a request of the peer."""
    return encode({"jsonrpc": "2.0", "id": request_id, "result": result})


def encode_error(request_id: RequestId, code: int, message: str) -> bytes:
    """Encode the refusal of a request of the peer."""
    return encode({"jsonrpc": "2.0", "id": request_id, "error": {"code": code, "message": message}})


def raw_json(data: bytes) -> RawJson:
    """Mark `data`, which must be one JSON text, to be embedded as it is."""
    return msgspec.Raw(data)


def _mend(raw: bytes) -> bytes | None:
    """Replace what is broken inside strings; None when there is nothing of the kind."""
    mended = raw.removeprefix(_BOM)
    # Noise on standard output comes by the gigabyte and is not worth a second look.
    if len(raw) > MAX_MENDED_BYTES or mended.lstrip()[:1] not in (b"{", b"[", b'"') or b"\0" in raw:
        return None
    if rb"\u" in mended:
        mended = mended.replace(rb"\\", _STAND_IN)
        mended = re.sub(_HALF_PAIR, rb"\\ufffd", mended).replace(_STAND_IN, rb"\\")
    if not mended.isascii():
        mended = mended.decode("utf-8", "replace").encode()
    return None if mended == raw else mended


def _decoded(decoder: Callable[[bytes], T], raw: bytes) -> T:
    """Run `decoder`, a second time on mended text where that can help (rule 3), with the errors of rule 1."""
    try:
        return decoder(raw)
    except msgspec.ValidationError as exc:
        raise RemoteProtocolError(reason=f"unexpected JSON: {exc}") from exc
    except RecursionError as exc:
        raise RemoteProtocolError(reason="JSON nests too deep") from exc
    except (msgspec.DecodeError, ValueError) as exc:
        mended = _mend(raw)
        if mended is None:
            raise RemoteProtocolError(reason=f"malformed JSON: {exc}") from exc
    try:
        return decoder(mended)
    except (msgspec.DecodeError, ValueError, RecursionError) as exc:
        raise RemoteProtocolError(reason=f"malformed JSON: {exc}") from exc


def decode(raw: bytes) -> Json:
    """Decode one JSON text; integers are exact, whatever their size.

    Raises:
        RemoteProtocolError: malformed, too deep, or a number out of range.
    """
    value: Json = _decoded(_decode_any, raw)
    return value


def decode_object(raw: bytes) -> dict[str, Json]:
    """Decode one JSON text that must be an object.

    Raises:
        RemoteProtocolError: malformed, too deep, or no object.
    """
    value = decode(raw)
    if not isinstance(value, dict):
        raise RemoteProtocolError(reason="not a JSON object")
    return value


def decode_envelope(raw: bytes) -> Envelope:
    """Decode the outside of one message. The cost of the inside is that of skipping it.

    Raises:
        RemoteProtocolError: malformed, too deep, or no object (a batch, for one).
    """
    try:
        return _decode_envelope(raw)
    except (msgspec.DecodeError, ValueError, RecursionError):
        return _decoded(_decode_envelope, raw)


def peek_result_type(result: bytes) -> object:
    """Read `resultType` of a result, decoding nothing else; `ABSENT` when it is not there."""
    if b'"resultType"' not in result:  # a scan is cheaper than skipping through JSON
        return ABSENT
    return _decoded(_decode_head, result).resultType


def decode_texts(items: Sequence[bytes], key: str) -> list[str | RemoteProtocolError]:
    """Read the text under `key` of each of these objects, decoding nothing else.

    In the place of one that is malformed, too deep, no object, or without a text there stands the error.
    """
    one, all_of_them = _text_decoders(key)
    try:
        return [found.text for found in all_of_them(b"[%b]" % b",".join(items))]
    except (msgspec.DecodeError, ValueError, RecursionError):
        return [_text_or_error(one, item) for item in items]


def _text_or_error(decoder: Callable[[bytes], _Text], item: bytes) -> str | RemoteProtocolError:
    try:
        return _decoded(decoder, item).text
    except RemoteProtocolError as error:
        return error


def decode_page(raw: bytes, key: str) -> tuple[list[bytes], Json]:
    """Split a page of a list into the items under `key`, undecoded, and its cursor, None where there is none.

    Raises:
        RemoteProtocolError: malformed, too deep, no object, or without an array there.
    """
    page = _decoded(_page_decoder(key), raw)
    return list(map(bytes, page.items)), decode(bytes(page.cursor))


def raw_members(raw: bytes) -> dict[str, bytes]:
    """Split an object into its members, values undecoded.

    Raises:
        RemoteProtocolError: malformed, too deep, or no object.
    """
    return {key: bytes(value) for key, value in _decoded(_decode_members, raw).items()}


def split_batch(raw: bytes) -> list[bytes] | None:
    """Split a batch into its messages; None when `raw` is no array (C14, fault 77).

    Raises:
        RemoteProtocolError: an array, but a malformed one.
    """
    if raw.lstrip()[:1] != b"[":
        return None
    return list(map(bytes, _decoded(_decode_elements, raw)))
