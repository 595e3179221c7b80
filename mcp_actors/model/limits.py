"""Owns the limits of what a model gets of a result, as the environment sets them.

What this is not: applying them (`tools.blocks`).
"""

from __future__ import annotations

import logging
import os
from typing import TYPE_CHECKING

from mcp_actors.tools.plans import Limits

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["limits_of_environment", "read_limits"]

logger = logging.getLogger("mcp_actors.model")


def read_limits(environ: Mapping[str, str]) -> tuple[Limits, tuple[str, ...]]:
    """Read ``MAX_MCP_OUTPUT_TOKENS`` (S222, S358); what is no positive whole number is passed over with a warning."""
    text = environ.get("MAX_MCP_OUTPUT_TOKENS", "").strip()
    if not text:
        return Limits(), ()
    if text.isascii() and text.isdigit() and int(text[:12]) > 0:
        return Limits(max_tokens=int(text[:12])), ()
    used = Limits().max_tokens
    return Limits(), (f"MAX_MCP_OUTPUT_TOKENS={text!r} is not a positive whole number: {used} is used",)


def limits_of_environment() -> Limits:
    """The limits that this process's environment sets; what cannot be used is told in the log."""
    limits, warnings = read_limits(os.environ)
    for warning in warnings:
        logger.warning("%s", warning)
    return limits
