"""What environment variables say of TLS, over HTTP and WebSocket: authorities, and the certificate that we show."""

from __future__ import annotations

import os
import socket
import ssl
from contextlib import aclosing, suppress
from functools import partial

import pytest
import trio
import trio_websocket
import trustme
from cryptography.hazmat.primitives import serialization

from mcp_actors.config.settings import Settings
from mcp_actors.config.specs import RemoteTarget, ServerSpec, TransportName
from mcp_actors.errors import ConnectFailed, TransportError
from mcp_actors.testing.contracts import RecordingSink, echo_frame
from mcp_actors.transports.http_client import HttpClient
from mcp_actors.transports.tls import TlsChoice
from mcp_actors.transports.websocket import WebSocketTransport
from tests.transports.http_peer import json_reply, open_peer

PASSPHRASE = "CANARY-words"


@pytest.fixture(scope="module")
def authority():
    return trustme.CA()


@pytest.fixture(scope="module")
def files(authority, tmp_path_factory):
    """Maps short name -> path: the authority, our certificate and key, the key encrypted, both in one file, rubbish."""
    where = tmp_path_factory.mktemp("tls")
    ours = authority.issue_cert("us@h.test")
    key = ours.private_key_pem.bytes()
    locked = serialization.load_pem_private_key(key, None).private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.BestAvailableEncryption(PASSPHRASE.encode()),
    )
    cert = b"".join(blob.bytes() for blob in ours.cert_chain_pems)
    texts = {
        "ca": authority.cert_pem.bytes(),
        "cert": cert,
        "key": key,
        "locked": locked,
        "both": cert + key,
        "other": trustme.CA().cert_pem.bytes(),
        "rubbish": b"not PEM",
    }
    for name, text in texts.items():
        (where / name).write_bytes(text)
    os.mkfifo(where / "pipe")
    return {name: str(where / name) for name in [*texts, "missing", "pipe"]}


def told(files, **names):
    """Variables, from short names of files; a value that is none stays."""
    return {variable: files.get(value, value) for variable, value in names.items()}


def server_context(authority, *, wants_ours):
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("127.0.0.1", "localhost").configure_cert(context)
    if wants_ours:
        context.verify_mode = ssl.CERT_REQUIRED
        authority.configure_trust(context)
    return context


async def try_http(environ, context):
    """Make one request; returns how it failed, if it did."""
    failure = None
    async with open_peer(lambda asked: json_reply(b"{}")) as peer, trio.open_nursery() as nursery:
        listeners = await nursery.start(partial(trio.serve_ssl_over_tcp, peer.serve, 0, context, host="127.0.0.1"))
        port = listeners[0].transport_listener.socket.getsockname()[1]
        client = HttpClient(f"https://localhost:{port}/", environ=environ)
        try:
            await (await client.request("POST", [], b"{}")).aclose()
        except TransportError as exc:
            failure = exc
        await client.aclose()
        nursery.cancel_scope.cancel()
    return failure


async def try_ws(environ, context):
    """Make one echo; returns how it failed, if it did."""

    async def serve_one(stream):
        with suppress(trio.BrokenResourceError, trio_websocket.HandshakeError):
            async with trio.open_nursery() as nursery:
                request = await trio_websocket.wrap_server_stream(nursery, stream)
                socket = await request.accept(subprotocol="mcp")
                await socket.send_message(await socket.get_message())
                await trio.sleep_forever()

    failure = None
    async with trio.open_nursery() as nursery:
        listeners = await nursery.start(partial(trio.serve_ssl_over_tcp, serve_one, 0, context, host="127.0.0.1"))
        port = listeners[0].transport_listener.socket.getsockname()[1]
        spec = ServerSpec("s", RemoteTarget(f"wss://localhost:{port}/", transport=TransportName.WS))
        transport, sink = WebSocketTransport(spec, Settings(), environ=environ), RecordingSink()
        try:
            await nursery.start(transport.run, sink)
            await transport.send(echo_frame(1))
            await sink.until(lambda sink: sink.delivered)
        except TransportError as exc:
            failure = exc
        nursery.cancel_scope.cancel()
    return failure


WAYS = pytest.mark.parametrize("connect", [try_http, try_ws], ids=["http", "ws"])

TRUSTED = {
    "file": {"SSL_CERT_FILE": "ca"},
    "extra": {"NODE_EXTRA_CA_CERTS": "ca"},
    "extra-besides": {"SSL_CERT_FILE": "other", "NODE_EXTRA_CA_CERTS": "ca"},
    "file-wins": {"SSL_CERT_FILE": "ca", "SSL_CERT_DIR": "missing"},
}


@WAYS
@pytest.mark.parametrize("names", TRUSTED.values(), ids=TRUSTED)
async def test_authorities(connect, names, files, authority):
    """Authorities are those of SSL_CERT_FILE, or the shipped ones, and those of NODE_EXTRA_CA_CERTS besides (S093)."""
    with trio.fail_after(5):
        failure = await connect(told(files, **names), server_context(authority, wants_ours=False))

    assert failure is None


@WAYS
@pytest.mark.parametrize(
    "names", [{}, {"SSL_CERT_FILE": ""}, {"SSL_CERT_FILE": "other"}], ids=["none", "empty", "other"]
)
async def test_a_stranger_is_not_trusted(connect, names, files, authority):
    """Without them the connection fails, and the error says what to do."""
    with trio.fail_after(5):
        failure = await connect(told(files, **names), server_context(authority, wants_ours=False))

    assert isinstance(failure, ConnectFailed)
    assert "its certificate is not trusted" in str(failure)


SHOWN = {
    "two-files": {"CLAUDE_CODE_CLIENT_CERT": "cert", "CLAUDE_CODE_CLIENT_KEY": "key"},
    "one-file": {"CLAUDE_CODE_CLIENT_CERT": "both"},
    "encrypted": {
        "CLAUDE_CODE_CLIENT_CERT": "cert",
        "CLAUDE_CODE_CLIENT_KEY": "locked",
        "CLAUDE_CODE_CLIENT_KEY_PASSPHRASE": PASSPHRASE,
    },
}


@WAYS
@pytest.mark.parametrize("names", SHOWN.values(), ids=SHOWN)
async def test_mutual(connect, names, files, authority):
    """A server that asks for a certificate is shown ours (S093)."""
    with trio.fail_after(5):
        failure = await connect(told(files, SSL_CERT_FILE="ca", **names), server_context(authority, wants_ours=True))

    assert failure is None


def refuse(listener, context):
    """Shake hands with one client as OpenSSL's own servers do, which say why they end it."""
    conversation, _ = listener.accept()
    below = conversation.dup()
    with suppress(ssl.SSLError):
        context.wrap_socket(conversation, server_side=True).close()
    below.shutdown(socket.SHUT_WR)
    below.settimeout(1)
    with suppress(OSError):
        while below.recv(1000):
            pass
    below.close()


async def post(url, environ):
    async with aclosing(HttpClient(url, environ=environ)) as client:
        await client.request("POST", [], b"{}")


async def run_ws(url, environ):
    spec = ServerSpec("s", RemoteTarget(url, transport=TransportName.WS))
    await WebSocketTransport(spec, Settings(), environ=environ).run(RecordingSink())


@pytest.mark.parametrize(("scheme", "connect"), [("https", post), ("wss", run_ws)])
async def test_mutual_without_ours(scheme, connect, files, authority):
    """A server that insists on a certificate and gets none ends the connection; the error says why."""
    context = server_context(authority, wants_ours=True)
    environ = told(files, SSL_CERT_FILE="ca")
    with trio.fail_after(5), socket.create_server(("127.0.0.1", 0)) as listener:
        url = f"{scheme}://localhost:{listener.getsockname()[1]}/"
        async with trio.open_nursery() as nursery:
            nursery.start_soon(trio.to_thread.run_sync, refuse, listener, context)
            with pytest.raises(TransportError, match="certificate required"):
                await connect(url, environ)


UNUSABLE = {
    "missing": ({"SSL_CERT_FILE": "missing"}, "SSL_CERT_FILE cannot be used: No such file"),
    "rubbish": ({"SSL_CERT_FILE": "rubbish"}, "SSL_CERT_FILE cannot be used: "),
    "extra": ({"NODE_EXTRA_CA_CERTS": "missing"}, "NODE_EXTRA_CA_CERTS cannot be used: No such file"),
    "cert": ({"CLAUDE_CODE_CLIENT_CERT": "rubbish"}, "CLAUDE_CODE_CLIENT_CERT cannot be used: "),
    "no-key": ({"CLAUDE_CODE_CLIENT_CERT": "cert"}, "CLAUDE_CODE_CLIENT_CERT cannot be used: "),
    "no-cert": ({"CLAUDE_CODE_CLIENT_KEY": "key"}, "CLAUDE_CODE_CLIENT_KEY is set without"),
    "locked": (
        {"CLAUDE_CODE_CLIENT_CERT": "cert", "CLAUDE_CODE_CLIENT_KEY": "locked"},
        "CLAUDE_CODE_CLIENT_CERT cannot be used: ",
    ),
    "wrong-words": (
        {
            "CLAUDE_CODE_CLIENT_CERT": "cert",
            "CLAUDE_CODE_CLIENT_KEY": "locked",
            "CLAUDE_CODE_CLIENT_KEY_PASSPHRASE": "CANARY",
        },
        "CLAUDE_CODE_CLIENT_CERT cannot be used: ",
    ),
    "many-words": (
        {
            "CLAUDE_CODE_CLIENT_CERT": "cert",
            "CLAUDE_CODE_CLIENT_KEY": "locked",
            "CLAUDE_CODE_CLIENT_KEY_PASSPHRASE": "CANARY" * 1000,
        },
        "CLAUDE_CODE_CLIENT_CERT cannot be used: ",
    ),
    **{
        f"pipe-{variable}": (
            {"CLAUDE_CODE_CLIENT_CERT": "cert"} | {variable: "pipe"},
            f"{variable} cannot be used: it names no regular file",
        )
        for variable in ("SSL_CERT_FILE", "NODE_EXTRA_CA_CERTS", "CLAUDE_CODE_CLIENT_CERT", "CLAUDE_CODE_CLIENT_KEY")
    },
}


@WAYS
@pytest.mark.parametrize(("names", "words"), UNUSABLE.values(), ids=UNUSABLE)
async def test_unusable(connect, names, words, files, authority):
    """A file that cannot be used is told with its variable, for good; nobody is asked, and no pipe is waited for."""
    with trio.fail_after(5):
        failure = await connect(told(files, **names), server_context(authority, wants_ours=False))

    assert isinstance(failure, ConnectFailed)
    assert words in str(failure)
    assert not str(failure).endswith(": ")
    assert not failure.can_retry
    assert "CANARY" not in str(failure)


def test_a_passphrase_is_not_shown():
    """It is a secret in every form."""
    assert PASSPHRASE not in repr(TlsChoice.of({"CLAUDE_CODE_CLIENT_KEY_PASSPHRASE": PASSPHRASE}))
