"""What is taken out of a server's words: what we gave it to know us by, and nothing else."""

from __future__ import annotations

import base64
import html
import json
from urllib.parse import quote, quote_plus

import pytest

from mcp_actors.errors import AuthRequired, RpcError, UnsupportedRevision
from mcp_actors.sent_secrets import (
    MAX_VALUES,
    SentSecrets,
    hide,
    longest_first,
    of_arguments,
    of_environment,
    of_request,
    starred,
)

URL = "https://h.example.com/mcp?key=query-s3cret&v=1"


@pytest.mark.parametrize(
    ("headers", "said", "told"),
    [
        ([("Authorization", "Bearer tok-s3cret")], "no: Bearer tok-s3cret", "no: ***"),
        ([("authorization", "Bearer tok-s3cret")], "invalid key tok-s3cret!", "invalid key ***!"),
        ([("Authorization", "Bearer tok-s3cret")], "a Bearer token is missing", "a Bearer token is missing"),
        ([("X-Api-Key", "key-s3cret")], '{"error":"key-s3cret"}', '{"error":"***"}'),
        ([("Cookie", "sid=one-s3cret; b=two-s3cret")], "one-s3cret two-s3cret", "*** ***"),
        ([("X-A", "s3cret"), ("X-B", "s3cret-longer")], "s3cret-longer", "***"),
        ([], "/mcp?key=query-s3cret&v=1", "/mcp?key=***&v=1"),
        # No secrets: what the protocol says, and what is too short to be one.
        ([("Mcp-Session-Id", "session-1")], "session-1 is not known", "session-1 is not known"),
        ([("Accept", "application/json")], "application/json only", "application/json only"),
        ([("X-Version", "2")], "HTTP 200 in 2 s", "HTTP 200 in 2 s"),
    ],
)
def test_what_was_sent_is_starred_where_it_is_repeated(headers, said, told) -> None:
    """Whole values and their parts; the longest first, so that no rest of one is left (fault 102)."""
    assert starred(said, of_request(headers, URL)) == told


def test_a_query_is_known_by_both_its_spellings() -> None:
    """A server may repeat a value as it stands in the URL, or as that means."""
    secrets = of_request([], "https://h.example.com/?key=s3%2Bcret")

    assert starred("s3%2Bcret s3+cret", secrets) == "*** ***"


def test_a_childs_credentials_are_known_by_name() -> None:
    """A variable with a credential's name is one; a path or a switch is told as it is (S090, S352)."""
    secrets = of_environment({"GH_TOKEN": "tok-s3cret", "api-key": "key-s3cret", "HOME": "/home/u", "KEY": "short"})

    assert starred("tok-s3cret key-s3cret /home/u short", secrets) == "*** *** /home/u short"


@pytest.mark.parametrize(
    ("sent", "told"),
    [
        ("a/b+c&d-s3cret", "***"),
        ("user", "user"),
    ],
)
@pytest.mark.parametrize(
    "spell",
    [
        str,
        lambda text: quote(text, safe=""),
        quote_plus,
        html.escape,
        lambda text: json.dumps(text)[1:-1].replace("/", "\\/"),
        lambda text: json.dumps(text)[1:-1].replace("+", "\\u002B"),
    ],
)
def test_a_secret_is_known_in_every_spelling(spell, sent, told) -> None:
    """As in a URL, in a form, in HTML, and in JSON of those who escape more than they must."""
    assert starred(spell(sent), longest_first([sent])) == told


def test_a_childs_arguments_are_known_by_option() -> None:
    """An option's value, in one word or two, a header, a URL's password and query; not where a key lies (S352)."""
    arguments = (
        "-y",
        "x",
        "--api-key",
        "one-s3cret",
        "--token=two-s3cret",
        "--header",
        "Authorization: Bearer three-s3cret",
    )
    arguments += (
        "https://u:four-s3cret@h.example/mcp?key=five-s3cret",
        "--key-file",
        "/etc/key-file",
        "key=six-s3cret",
    )

    said = starred(" ".join(arguments), of_arguments(arguments))

    assert said == (
        "-y x --api-key *** --token=*** --header Authorization: *** https://u:***@h.example/mcp?key=*** "
        "--key-file /etc/key-file key=***"
    )


@pytest.mark.parametrize(("pair", "said"), [("me:p%40ss-w0rd", "p@ss-w0rd"), ("key-s3cret:", "key-s3cret")])
def test_basic_credentials_are_known_by_what_they_encode(pair, said) -> None:
    """The password, as sent and as meant; a key that comes as the user."""
    headers = [("Authorization", "Basic " + base64.b64encode(pair.encode()).decode())]

    assert starred(f"no: {said}", of_request(headers, "https://h.example.com")) == "no: ***"


def test_an_error_loses_secrets_in_every_word_that_it_quotes() -> None:
    """Reason, message and remedy; nothing else of it changes (fault 102)."""
    error = AuthRequired(reason="no tok-s3cret", remedy="login --scopes tok-s3cret", said="tok-s3cret")

    hide(error, ("tok-s3cret",))

    assert (error.reason, error.remedy, error.said) == ("no ***", "login --scopes ***", "***")


def nested(depth):
    """So many lists around a secret."""
    data = "tok-s3cret"
    for _ in range(depth):
        data = [data]
    return data


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (None, None),
        (7, 7),
        ("no tok-s3cret", "no ***"),
        ({"why": "tok-s3cret", "n": 1, "b": True}, {"why": "***", "n": 1, "b": True}),
        ({"tok-s3cret": [{"x": ("tok-s3cret", None)}]}, {"***": [{"x": ("***", None)}]}),
        ({"url": "https://h/?k=tok-s3cret"}, {"url": "https://h/?k=***"}),
        ({"supported": ["2025-11-25"]}, {"supported": ["2025-11-25"]}),
    ],
)
def test_the_data_of_an_error_is_words_too(data, told) -> None:
    """Wherever it stands in them, as a name too; what is no secret is the same as before (fault 102, S354)."""
    error = RpcError(code=1, message="no", data=data)

    hide(error, ("tok-s3cret",))

    assert error.data == told


@pytest.mark.parametrize("depth", [1, 50, 100, 900])
def test_data_that_nests_too_deep_is_not_told(depth) -> None:
    """Invariant 5: what is not looked through might hold a secret; nobody falls over it."""
    error = RpcError(code=1, message="no", data=nested(depth))

    hide(error, ("tok-s3cret",))

    assert "s3cret" not in str(error.data)
    assert "***" in str(error.data)


def test_data_is_left_alone_where_nothing_was_sent() -> None:
    """Without secrets there is nothing to look for, however deep it nests."""
    data = nested(900)
    error = RpcError(code=1, message="no", data=data)

    hide(error, ())

    assert error.data is data


def test_the_revisions_that_a_server_names_are_words_too() -> None:
    """A list in an error is looked through like a text."""
    error = UnsupportedRevision(offered=("2025-11-25",), supported=("tok-s3cret",))

    hide(error, ("tok-s3cret",))

    assert error.supported == ("***",)


def test_a_connection_knows_what_its_earlier_requests_carried() -> None:
    """A token that was renewed, an address before a redirect: an answer that is still out may repeat either."""
    sent = SentSecrets()
    sent.note([("authorization", "Bearer one-s3cret"), ("accept", "x/y-s3cret")], "https://h/?k=old-s3cret")
    sent.note([("authorization", "Bearer two-s3cret"), ("x-key", "key-s3cret")], "https://h/?k=new-s3cret")

    said = starred("one-s3cret two-s3cret key-s3cret old-s3cret new-s3cret x/y-s3cret", sent.secrets)

    assert said == "*** *** *** *** *** x/y-s3cret"


def test_what_a_connection_knows_is_bounded_for_each_header() -> None:
    """Invariant 5: a header that changes with each request pushes out no other, nor a value that is sent again."""
    sent = SentSecrets()

    for number in range(10 * MAX_VALUES):
        sent.note([("authorization", "Bearer tok-s3cret"), ("dpop", f"proof-{number:04}")], "https://h/")
    sent.note([("authorization", "Bearer new-s3cret")], "https://h/")
    told = [
        name for name in ("tok-s3cret", "new-s3cret", "proof-0159", "proof-0144", "proof-0143") if name in sent.secrets
    ]

    assert told == ["tok-s3cret", "new-s3cret", "proof-0159", "proof-0144"]
    assert len([each for each in sent.secrets if each.startswith("proof")]) == MAX_VALUES


def test_what_was_sent_is_not_in_its_repr() -> None:
    """S354: whoever formats it learns nothing."""
    sent = SentSecrets()
    sent.note([("authorization", "Bearer tok-s3cret")], "https://h/?k=url-s3cret")

    assert "s3cret" not in repr(sent)
