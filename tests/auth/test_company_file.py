"""Tests of `auth.company_file`."""

from __future__ import annotations

import pytest

from mcp_actors.auth.company_file import load_company, save_company
from mcp_actors.auth.xaa import CompanySetup
from mcp_actors.errors import ConfigError

SETUP = CompanySetup("https://idp.example.com", "idp-client", callback_port=7777)


def test_what_is_written_is_read_without_the_secret(tmp_path):
    """Issuer, client and port; the secret goes to the store (S279)."""
    save_company(tmp_path, CompanySetup(SETUP.issuer, SETUP.client_id, "canary", SETUP.callback_port))

    assert load_company(tmp_path) == SETUP
    assert b"canary" not in (tmp_path / "xaa.json").read_bytes()
    assert load_company(tmp_path / "other") is None


@pytest.mark.parametrize("data", [b"{}", b"{", b'{"idpIssuer": "https://x"}'])
def test_a_damaged_company_file_is_an_error(tmp_path, data):
    """Never a silent way into something else."""
    save_company(tmp_path, SETUP)
    (tmp_path / "xaa.json").write_bytes(data)

    with pytest.raises(ConfigError, match=r"idpIssuer|cannot be read"):
        load_company(tmp_path)
