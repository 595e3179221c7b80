"""Owns the recursive alias of JSON values, so that no room needs `Any` for them.

What this is not: a codec; that is `protocol.jsonrpc`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

__all__ = ["Json", "JsonObject"]

Json: TypeAlias = "None | bool | int | float | str | Sequence[Json] | Mapping[str, Json]"
JsonObject: TypeAlias = "Mapping[str, Json]"
