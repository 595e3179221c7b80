"""One server by name: resources, prompts, completion, logs, subscriptions, questions; the same face over both eras."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import trio
import trio.testing
from scripted_fleet import PERMANENT, echo_server, spec

from mcp_actors import Host, InputRequired, ServerRequest
from mcp_actors.errors import LocalProtocolError, RemoteProtocolError, RpcError, TransportBroken, UnknownServer
from mcp_actors.protocol.jsonrpc import decode, encode
from mcp_actors.runtime import open_runtime
from mcp_actors.testing.scripted import LEGACY_REVISIONS, MODERN_REVISIONS, ScriptedServer

if TYPE_CHECKING:
    from mcp_actors.fleet.running import Runtime

ERAS = {"modern": MODERN_REVISIONS, "legacy": LEGACY_REVISIONS}
both_eras = pytest.mark.parametrize("era", ERAS)


def library(era: str) -> ScriptedServer:
    server = echo_server(revisions=ERAS[era])
    server.add_resource("note://one", "first")
    server.add_resource("note://two", "second")
    server.add_template("note://{name}", name="note")
    server.add_prompt("greet", lambda call: f"hello {call['name']}", arguments=[{"name": "name", "required": True}])
    names = ("anna", "bert")
    server.add_completion(lambda call: [name for name in names if name.startswith(call.params["argument"]["value"])])
    return server


@both_eras
async def test_everything_a_server_offers_is_reached_by_name(era: str, autojump_clock: object) -> None:
    """Resources, templates, prompts and completion work alike in both eras (S319, S325, S335, S339, F18)."""
    server = library(era)

    async with open_runtime([spec("lib", server)]) as runtime:
        await runtime.wait_ready()
        lib = runtime.server("lib")
        uris = [resource.uri for resource in lib.resources]
        templates = [template.uri_template for template in await lib.templates()]
        text = (await lib.read_resource("note://two"))["contents"]
        prompt = await lib.get_prompt("greet", {"name": "Ada"})
        completion = await lib.complete({"type": "ref/prompt", "name": "greet"}, "name", "a")

    assert uris == ["note://one", "note://two"]
    assert templates == ["note://{name}"]
    assert text[0]["text"] == "second"
    assert "hello Ada" in str(prompt["messages"])
    assert completion["values"] == ["anna"]
    assert [item.name for item in lib.prompts] in ([], ["greet"])
    assert server.violations == []


async def test_what_is_not_offered_is_not_asked_for(autojump_clock: object) -> None:
    """Fault 69: lists are empty, the rest is an error here; the server hears nothing of it."""
    server = echo_server()

    async with open_runtime([spec("one", server)]) as runtime:
        await runtime.wait_ready()
        one = runtime.server("one")
        templates = await one.templates()
        with pytest.raises(LocalProtocolError, match="resources"):
            await one.read_resource("x://y")
        with pytest.raises(UnknownServer):
            runtime.server("two")

    assert (templates, one.resources, one.prompts) == ((), (), ())
    assert server.seen("resources/read") == []


@both_eras
async def test_a_watched_resource_tells_of_its_changes(era: str, autojump_clock: object) -> None:
    """S329, F01, F04: one facade; legacy subscribes and unsubscribes, modern listens; nothing is told afterwards."""
    server = library(era)
    seen: list[str] = []

    async with open_runtime([spec("lib", server)]) as runtime:
        await runtime.wait_ready()
        async with runtime.server("lib").watch_resource("note://one") as changes:
            await server.notify("notifications/resources/updated", {"uri": "note://one"})
            seen.append(await anext(changes))
        await trio.sleep(0.1)

    assert seen == ["note://one"]
    assert len(server.seen("resources/unsubscribe")) == (1 if era == "legacy" else 0)
    assert server.violations == []


@both_eras
async def test_list_changes_reach_the_catalog(era: str, autojump_clock: object) -> None:
    """S152, F04: a changed list is fetched again in both eras; in the modern one it is listened for."""
    server = echo_server(revisions=ERAS[era])

    async with open_runtime([spec("one", server)]) as runtime:
        await runtime.wait_ready()
        if era == "modern":
            await server.wait_seen("subscriptions/listen")
            await trio.sleep(0.1)
        server.add_tool("late", lambda call: "new")
        await server.notify("notifications/tools/list_changed")
        await trio.sleep(0.1)
        result = await runtime.call_tool("one.late")

    assert result.text == "new"


@both_eras
async def test_prompts_that_change_are_listed_anew_and_kept_where_that_fails(era: str, autojump_clock: object) -> None:
    """S336: after `prompts/list_changed` the new list counts; one that fails leaves the old one and says so."""
    server = library(era)

    async with open_runtime([spec("lib", server)]) as runtime:
        await runtime.wait_ready()
        lib = runtime.server("lib")
        if era == "modern":
            await server.wait_seen("subscriptions/listen")
            await trio.sleep(0.1)
        server.add_prompt("part", lambda call: "bye")
        await server.notify("notifications/prompts/list_changed")
        await trio.sleep(20)
        changed = [prompt.name for prompt in lib.prompts]
        server.refuse("prompts/list", -32603, "database gone")
        await server.notify("notifications/prompts/list_changed")
        await trio.sleep(20)
        kept, warnings = [prompt.name for prompt in lib.prompts], lib.status.warnings

    assert (changed, kept) == (["greet", "part"], ["greet", "part"])
    assert any("database gone" in warning for warning in warnings)


@pytest.mark.deadline(1000)
async def test_what_changed_while_nobody_listened_is_fetched_after_the_next_acknowledgement(
    autojump_clock: object,
) -> None:
    """F02: a subscription that ended is asked for again, and then the lists are fetched, not before."""
    server = echo_server(revisions=MODERN_REVISIONS)

    async with open_runtime([spec("one", server)]) as runtime:
        await runtime.wait_ready()
        await server.wait_seen("subscriptions/listen", 1)
        await trio.sleep(0.1)
        await server.end_listens()
        server.add_tool("late", lambda call: "new")
        await trio.sleep(1)
        early = runtime.catalog.resolve("one.late")
        await server.wait_seen("subscriptions/listen", 2)
        await trio.sleep(1)
        late = runtime.catalog.resolve("one.late")

    order = [
        message["method"] for message in server.received if message["method"] in ("subscriptions/listen", "tools/list")
    ]
    assert (early, late is not None) == (None, True)
    assert order[-2:] == ["subscriptions/listen", "tools/list"]


@pytest.mark.deadline(1000)
async def test_a_lost_subscription_is_asked_for_again_after_a_restart(autojump_clock: object) -> None:
    """F03, A10: a new connection subscribes to what is still watched, and tells that it may have changed meanwhile."""
    server = library("legacy")
    server.die_on("ping", times=1)

    async with open_runtime([spec("lib", server, **PERMANENT)]) as runtime:
        await runtime.wait_ready()
        lib = runtime.server("lib")
        await lib.set_log_level("warning")
        async with lib.watch_resource("note://one") as changes:
            await server.wait_seen("resources/subscribe", 1)
            with pytest.raises(TransportBroken):
                await lib.request("ping")
            await server.wait_seen("resources/subscribe", 2)
            maybe = await anext(changes)
            await server.notify("notifications/resources/updated", {"uri": "note://one"})
            uri = await anext(changes)

    assert (maybe, uri) == ("note://one", "note://one")
    assert [message["params"]["level"] for message in server.seen("logging/setLevel")] == ["warning", "warning"]


async def test_a_watched_resource_stays_watched_when_its_server_is_defined_anew(autojump_clock: object) -> None:
    """A10: another generation of a server takes over what is listened to, with the log level."""
    old, new = library("legacy"), library("legacy")
    seen: list[str] = []

    async with open_runtime([spec("lib", old)]) as runtime:
        await runtime.wait_ready()
        await runtime.server("lib").set_log_level("warning")
        async with runtime.server("lib").watch_resource("note://one") as changes:
            await old.wait_seen("resources/subscribe", 1)
            await runtime.add_server(spec("lib", new))
            await new.wait_seen("resources/subscribe", 1)
            await trio.testing.wait_all_tasks_blocked()
            await new.notify("notifications/resources/updated", {"uri": "note://one"})
            seen.append(await anext(changes))

    assert seen == ["note://one"]
    assert [message["params"]["level"] for message in new.seen("logging/setLevel")] == ["warning"]


@pytest.mark.deadline(2000)
async def test_a_subscription_that_lived_is_asked_for_again_soon(autojump_clock: object) -> None:
    """F02: the pauses grow while subscriptions end at once, and begin anew after one that lived for a minute."""
    server = echo_server(revisions=MODERN_REVISIONS)
    pauses: list[float] = []

    async with open_runtime([spec("one", server)]) as runtime:
        await runtime.wait_ready()
        for number, life in enumerate((1, 1, 1, 100), start=1):
            await server.wait_seen("subscriptions/listen", number)
            await trio.sleep(life)
            ended = trio.current_time()
            await server.end_listens()
            await server.wait_seen("subscriptions/listen", number + 1)
            pauses.append(trio.current_time() - ended)

    assert 15 <= pauses[0] <= 30 <= pauses[1] <= 60
    assert 30 <= pauses[2] <= 60
    assert 15 <= pauses[3] <= 30


@pytest.mark.parametrize("end", ["removed", "closed"])
async def test_watching_ends_with_what_is_watched(end: str, autojump_clock: object) -> None:
    """Invariant 1: who iterates over a server's changes or its log waits for no server that is gone for good."""
    closing = trio.Event()
    ended: list[str] = []

    async def hold(*, task_status: trio.TaskStatus[Runtime]) -> None:
        async with open_runtime([spec("lib", library("legacy"))]) as runtime:
            await runtime.wait_ready()
            task_status.started(runtime)
            await closing.wait()
            if end == "removed":
                await runtime.remove_server("lib")
                await trio.sleep_forever()

    async def follow(kind: str, runtime: Runtime, *, task_status: trio.TaskStatus[None]) -> None:
        lib = runtime.server("lib")
        async with lib.watch_resource("note://one") if kind == "resource" else lib.watch_log() as changes:
            task_status.started()
            async for _ in changes:
                pass
        ended.append(kind)

    async with trio.open_nursery() as nursery:
        runtime = await nursery.start(hold)
        async with trio.open_nursery() as watching:
            await watching.start(follow, "resource", runtime)
            await watching.start(follow, "log", runtime)
            closing.set()
        nursery.cancel_scope.cancel()

    assert sorted(ended) == ["log", "resource"]


@both_eras
async def test_log_messages_come_at_the_level_asked_for(era: str, autojump_clock: object) -> None:
    """F13: one verb for both eras; the messages reach who watches."""
    server = ScriptedServer(revisions=ERAS[era], fixed_capabilities={"tools": {}, "logging": {}})

    async def speak(call) -> str:
        await call.log("error", "trouble")
        return "done"

    server.add_tool("speak", speak)

    async with open_runtime([spec("one", server)]) as runtime:
        await runtime.wait_ready()
        one = runtime.server("one")
        await one.set_log_level("error")
        with pytest.raises(LocalProtocolError, match="no log level"):
            await one.set_log_level("loud")
        async with one.watch_log() as messages:
            await runtime.call_tool("one.speak")
            message = await anext(messages)

    assert (message.level, message.data) == ("error", "trouble")


# ── questions ────────────────────────────────────────────────────────────────────────────────────────────────────────


def asking_server() -> ScriptedServer:
    """Modern: `deploy` wants to know where, once; then tells what it heard."""
    server = echo_server(revisions=MODERN_REVISIONS)

    async def deploy(call) -> object:
        answers = call.params.get("inputResponses")
        if answers is None:
            form = {"type": "object", "properties": {"where": {"type": "string"}}}
            params = {"mode": "form", "message": "?", "requestedSchema": form}
            question = {"method": "elicitation/create", "params": params}
            return {"resultType": "input_required", "inputRequests": {"q": question}, "requestState": "s t\u00e4te"}
        return f"{answers['q']['content']['where']} {call.params['requestState']}"

    server.add_tool("deploy", deploy)
    return server


async def elicit(request: ServerRequest) -> dict[str, object]:
    await trio.sleep(1000)
    return {"action": "accept", "content": {"where": "prod"}}


@pytest.mark.deadline(5000)
async def test_a_modern_call_is_answered_in_rounds_and_a_persons_time_is_free(autojump_clock: object) -> None:
    """B07, S202: the state goes back untouched, ids are new, and a thousand seconds of thought time nothing out."""
    server = asking_server()

    async with open_runtime([spec("one", server)], host=Host({"elicitation/create": elicit})) as runtime:
        await runtime.wait_ready()
        result = await runtime.call_tool("one.deploy", timeout=5)

    calls = server.seen("tools/call")
    assert result.text == "prod s t\u00e4te"
    assert len({message["id"] for message in calls}) == 2
    assert "requestState" not in calls[0]["params"]
    assert server.violations == []


async def never(request: ServerRequest) -> dict[str, object]:
    raise AssertionError("the caller answers")


async def test_a_caller_answers_by_hand_in_another_run(autojump_clock: object) -> None:
    """B07, B08: the questions are stored and answered by a later process; the state comes back, no handler runs."""
    server, host = asking_server(), Host({"elicitation/create": never})

    async with open_runtime([spec("one", server)], host=host) as runtime:
        await runtime.wait_ready()
        asked = await runtime.server("one").request_once("tools/call", {"name": "deploy", "arguments": {}})
    assert isinstance(asked, InputRequired)
    stored = encode(asked.to_json())
    async with open_runtime([spec("one", server)], host=host) as runtime:
        again, view = InputRequired.from_json(decode(stored)), runtime.server("one")
        for wrong in ({}, {"q": {"action": "nonsense"}}, {"q": {"action": "decline"}, "more": {}}):
            with pytest.raises(LocalProtocolError):
                await view.answer(again, wrong)
        result = await view.answer(again, {"q": {"action": "accept", "content": {"where": "prod"}}}, timeout=5)

    assert [question.method for question in again.questions] == ["elicitation/create"]
    assert result["content"] == [{"type": "text", "text": "prod s t\u00e4te"}]
    assert len(server.seen("tools/call")) == 2
    assert server.violations == []


@both_eras
async def test_a_request_that_is_not_asked_back_has_its_result(era: str, autojump_clock: object) -> None:
    """B08: without questions it is as `request`, in both eras; an answer that breaks the rules names its server."""
    server = library(era)

    async with open_runtime([spec("lib", server)]) as runtime:
        await runtime.wait_ready()
        read = await runtime.server("lib").request_once("resources/read", {"uri": "note://one"})
        server.answer_with("resources/read", {"resultType": "nonsense"}, times=1)
        with pytest.raises(RemoteProtocolError, match="nonsense") as invalid:
            await runtime.server("lib").request_once("resources/read", {"uri": "note://one"})

    assert read["contents"][0]["text"] == "first"
    assert invalid.value.server == "lib"


async def test_a_question_that_was_not_offered_is_an_invalid_answer(autojump_clock: object) -> None:
    """F08: without a handler nothing was declared, so the answer breaks the rules."""
    server = asking_server()

    async with open_runtime([spec("one", server)]) as runtime:
        await runtime.wait_ready()
        with pytest.raises(Exception, match=r"elicitation|input"):
            await runtime.call_tool("one.deploy", timeout=5)


@pytest.mark.deadline(5000)
async def test_legacy_clocks_stop_while_a_person_is_asked(autojump_clock: object) -> None:
    """S202, S297: a call with five seconds survives a thousand seconds of thought, no more."""
    server = echo_server(revisions=LEGACY_REVISIONS)

    async def deploy(call) -> str:
        answer = await call.ask("elicitation/create", {"message": "?", "requestedSchema": {"type": "object"}})
        await trio.sleep(call.arguments.get("then", 1))
        return str(answer["content"]["where"])

    server.add_tool("deploy", deploy)

    async with open_runtime([spec("one", server)], host=Host({"elicitation/create": elicit})) as runtime:
        await runtime.wait_ready()
        result = await runtime.call_tool("one.deploy", timeout=5)
        with pytest.raises(trio.TooSlowError, match="wall"):
            await runtime.call_tool("one.deploy", {"then": 6}, timeout=5)

    assert result.text == "prod"


async def test_a_page_that_must_be_visited_first_is_visited_and_the_call_sent_again(autojump_clock: object) -> None:
    """S207, F10: -32042 names the page; the call follows the consent, three times at most."""
    server = echo_server(revisions=LEGACY_REVISIONS)
    page = {"mode": "url", "message": "sign", "url": "https://h/sign", "elicitationId": "e1"}
    server.refuse("tools/call", -32042, "visit", {"elicitations": [page]}, times=1)
    asked: list[object] = []

    async def consent(request: ServerRequest) -> dict[str, object]:
        asked.append(request.params)
        return {"action": "accept"}

    host = Host({"elicitation/create": consent}, {"elicitation": {"url": {}}})
    async with open_runtime([spec("one", server)], host=host) as runtime:
        await runtime.wait_ready()
        result = await runtime.call_tool("one.echo", {"text": "signed"})
        server.refuse("tools/call", -32042, "visit", {"elicitations": [page]})
        with pytest.raises(RpcError):
            await runtime.call_tool("one.echo", {"text": "never"})

    assert result.text == "signed"
    assert asked == [page] * 4
