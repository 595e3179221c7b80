"""Owns the file ``xaa.json``: which identity provider ``xaa setup`` named. No secret is in it.

What this is not: the company's login (`xaa`), nor its client's secret, which is in the store.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mcp_actors.auth.messages import text_in
from mcp_actors.auth.urls import check_url
from mcp_actors.auth.xaa import CompanySetup
from mcp_actors.errors import ConfigError, RemoteProtocolError
from mcp_actors.files.private import read_private, write_private
from mcp_actors.protocol.jsonrpc import decode_object, encode

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["load_company", "save_company"]

COMPANY_FILE: Final = "xaa.json"


def save_company(state_dir: Path, setup: CompanySetup) -> None:
    """Write the file ``xaa.json``, without the secret. Blocks. Raises OSError."""
    document = {"idpIssuer": setup.issuer, "clientId": setup.client_id, "callbackPort": setup.callback_port}
    write_private(state_dir / COMPANY_FILE, encode(document))


def load_company(state_dir: Path) -> CompanySetup | None:
    """Read it; None: there is none. Blocks.

    Raises:
        ConfigError: it cannot be used.
    """
    path = state_dir / COMPANY_FILE
    try:
        data = read_private(path)
        document = None if data is None else decode_object(data)
    except (OSError, RemoteProtocolError):
        raise ConfigError(file=str(path), reason="cannot be read", remedy="mcp-actors xaa setup") from None
    if document is None:
        return None
    issuer, client_id = text_in(document, "idpIssuer"), text_in(document, "clientId")
    if issuer is None or client_id is None:
        raise ConfigError(file=str(path), reason="lacks idpIssuer or clientId", remedy="mcp-actors xaa setup")
    port = document.get("callbackPort")
    is_port = isinstance(port, int) and not isinstance(port, bool)
    return CompanySetup(
        issuer=check_url(issuer, "idpIssuer"),
        client_id=client_id,
        callback_port=port if is_port else None,  # type: ignore[arg-type]
    )
