"""Owns the way from the bytes of one source to what it defines.

What this is not: finding those bytes (`files.loading`), nor what a document defines (`sources`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mcp_actors.config.jsonc import decode_text, parse_json_with_odd_numbers, parse_toml
from mcp_actors.config.sources import SourceReading, read_document
from mcp_actors.errors import ConfigError

if TYPE_CHECKING:
    from mcp_actors.config.documents import Document
    from mcp_actors.config.sources import SourceText, Surroundings

__all__ = ["parse_source", "read_source"]


def read_source(source: SourceText, around: Surroundings) -> SourceReading:
    """Parse and read one source.

    Returns:
        Its reading. A file that cannot be parsed is a reading with one problem and no specs.

    Source:
        S001; faults 21-24.
    """
    try:
        document = parse_source(source)
    except ConfigError as problem:
        return SourceReading(source.scope, source.file, source.rank, problems=(problem,))
    return read_document(document, source, around)


def parse_source(source: SourceText) -> Document:
    """Decode and parse `source`.

    Raises:
        ConfigError: with the place of the fault.
    """
    text = decode_text(source.data, source.file)
    return parse_toml(text, source.file) if source.format.is_toml else parse_json_with_odd_numbers(text, source.file)
