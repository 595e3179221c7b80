"""Tests of `auth.client_secrets`."""

from __future__ import annotations

import pytest
from attrs import evolve
from oauth_house import House
from oauth_peer import MCP
from oauth_wire import Server, send

from mcp_actors.auth.client_secrets import ClientSecrets, read_secret_file
from mcp_actors.auth.options import AuthOptions, GrantKind
from mcp_actors.auth.store import CredentialStore, StoreChoice
from mcp_actors.config.specs import RemoteTarget, ServerSpec
from mcp_actors.errors import ConfigError

OPTIONS = AuthOptions(client_id="id", issuer="https://as.example.com")


def secrets(environ=None):
    return ClientSecrets(CredentialStore(StoreChoice.MEMORY), environ or {})


async def found(secrets, options=OPTIONS, url=MCP):
    return (await secrets.complete(options, url, "srv")).client_secret


async def test_a_kept_secret_is_found_until_it_is_forgotten():
    """It is kept once for all runs and is gone when it is forgotten (S261)."""
    held = secrets()
    assert await found(held) is None

    assert await held.keep(OPTIONS, MCP, "canary") == "memory"
    assert await found(held) == "canary"

    await held.forget(OPTIONS, MCP)
    assert await found(held) is None


@pytest.mark.parametrize(
    ("changes", "url", "is_found"),
    [
        ({}, MCP, True),
        ({"grant": GrantKind.DEVICE_CODE}, MCP, True),
        ({"grant": GrantKind.CLIENT_CREDENTIALS}, MCP, True),
        ({"scopes": ("a",), "callback_port": 1}, MCP, True),
        ({"client_id": "other"}, MCP, False),
        ({"issuer": "https://evil.example.com"}, MCP, False),
        ({"metadata_url": "https://evil.example.com/x"}, MCP, False),
        ({}, "https://other.example.com/mcp", False),
        ({"auth_method": "none"}, MCP, False),
        ({"private_key": "PEM"}, MCP, False),
        ({"client_id": None}, MCP, False),
    ],
)
async def test_whose_a_kept_secret_is(changes, url, is_found):
    """It belongs to the server's URL, the client and the issuer that the entry names; to no other (D11)."""
    held = secrets()
    await held.keep(OPTIONS, MCP, "canary")

    assert await found(held, evolve(OPTIONS, **changes), url) == ("canary" if is_found else None)


async def test_what_goes_first(tmp_path):
    """The entry, then systemd's credential, then what was kept."""
    (tmp_path / "mcp-actors.srv.client-secret").write_text("systemd\n")
    held = secrets({"CREDENTIALS_DIRECTORY": str(tmp_path)})
    await held.keep(OPTIONS, MCP, "kept")

    assert await found(held, evolve(OPTIONS, client_secret="entry")) == "entry"
    assert await found(held) == "systemd"
    (tmp_path / "mcp-actors.srv.client-secret").unlink()
    assert await found(held) == "kept"


async def test_a_key_in_a_file_is_read_when_it_is_used(tmp_path):
    """A file that cannot be read is an error of configuration that names the key, not the path."""
    file = tmp_path / "key"
    file.write_text("PEM\n")
    options = evolve(OPTIONS, private_key_file=str(file))

    assert (await secrets().complete(options, MCP, "srv")).private_key == "PEM"
    assert read_secret_file(str(file), "oauth.x") == "PEM"
    file.unlink()
    with pytest.raises(ConfigError, match=r"oauth\.privateKeyFile"):
        await secrets().complete(options, MCP, "srv")


@pytest.mark.parametrize("way", ["login", "call"])
async def test_the_kept_secret_goes_to_the_token_endpoint(way):
    """Whether a person signs in by the command or during a call, the client proves itself with it (S261)."""
    spec = ServerSpec("srv", RemoteTarget(MCP), raw={"oauth": {"clientId": "id", **POST}})
    house = House(spec=spec)
    await house.desk.keep_client_secret(spec, "canary")

    if way == "login":
        await house.desk.log_in(spec, house.world.prompter)
    assert await send(house.auth, Server()) == 200

    assert [form.get("client_secret") for form in house.world.forms()] == ["canary"]


POST = {"tokenEndpointAuthMethod": "client_secret_post"}


async def test_a_silent_grant_uses_the_kept_secret():
    """A machine's client keeps its secret out of the entry too (D17)."""
    block = {"clientId": "id", "grant": "client_credentials", **POST}
    spec = ServerSpec("srv", RemoteTarget(MCP), raw={"oauth": block})
    house = House(spec=spec, has_person=False)
    await house.desk.keep_client_secret(spec, "canary")

    assert await send(house.auth, Server()) == 200

    assert [form.get("client_secret") for form in house.world.forms()] == ["canary"]


@pytest.mark.parametrize(
    ("target", "oauth", "key"),
    [
        (RemoteTarget(MCP), {}, "clientId"),
        (RemoteTarget(MCP), {"clientId": "id", "clientSecret": "s"}, "clientSecret"),
        (RemoteTarget(MCP, headers={"Authorization": "x"}), {"clientId": "id"}, "clientId"),
    ],
)
async def test_a_secret_that_nobody_would_use_is_refused(target, oauth, key):
    """No client, a secret in the entry, or credentials of another kind: an error that names the key."""
    spec = ServerSpec("srv", target, raw={"oauth": oauth})

    with pytest.raises(ConfigError, match=key):
        await House(spec=spec).desk.keep_client_secret(spec, "canary")
