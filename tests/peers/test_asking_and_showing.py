"""What server-everything asks and offers, through the Python API and the command line, end to end."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
import trio

from mcp_actors import open_runtime
from mcp_actors.elicitation.handlers import Root, SamplingAnswer
from mcp_actors.elicitation.hooks import read_hooks
from mcp_actors.elicitation.policy import Mode, Policy, PreparedAnswer
from mcp_actors.elicitation.requests import Action, Answer, Stage
from mcp_actors.fleet.questions import Questions
from mcp_actors.model.face import ModelFace
from mcp_actors.model.outputs import Outputs
from mcp_actors.questions.prompters import CallableQuestionPrompter
from mcp_actors.tools.permissions import Mode as PermissionMode
from mcp_actors.tools.plans import ModelImage, ModelText

if TYPE_CHECKING:
    from pathlib import Path

    from mcp_actors.actors.slots import Progress
    from mcp_actors.elicitation.handlers import SamplingRequest
    from mcp_actors.elicitation.requests import InputRequest
    from mcp_actors.fleet.running import Runtime

pytestmark = [pytest.mark.peers, pytest.mark.slow, pytest.mark.timeout(400), pytest.mark.deadline(60)]


def everything(npm_bin: Path) -> dict[str, object]:
    return {"mcpServers": {"everything": {"command": str(npm_bin / "mcp-server-everything"), "args": ["stdio"]}}}


async def offered(runtime: Runtime, name: str) -> None:
    """Wait until the server lists this tool: its list grows after it has heard of our roots."""
    await runtime.wait_ready()
    while runtime.catalog.resolve(f"everything.{name}") is None:
        await runtime.wait_published()


# ── the Python API ───────────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_form_is_shown_filled_in_and_judged(npm_bin: Path) -> None:
    """The prompter sees a cleaned form; what does not fit is asked for again; defaults are filled in."""
    seen: list[InputRequest] = []

    async def fill(request: InputRequest) -> dict[str, object]:
        seen.append(request)
        return {"name": "Ann", "integer": 500 if len(seen) == 1 else 7}

    questions = Questions(CallableQuestionPrompter(fill))
    async with open_runtime(everything(npm_bin), host=questions.host) as runtime:
        await offered(runtime, "trigger-elicitation-request")
        result = await runtime.call_tool("everything.trigger-elicitation-request")
        open_now = questions.pending

    assert "Name: Ann" in result.text
    assert "Favorite Integer: 7" in result.text
    assert '"untitledSingleSelectEnum": "Monica"' in result.text
    assert [set(request.problems) for request in seen] == [set(), {"integer"}]
    assert open_now == ()


@pytest.mark.parametrize(("error_path", "stages"), [(False, ["first"]), (True, ["first", "completion", "first"])])
async def test_a_page_is_opened_after_consent_on_either_path(
    npm_bin: Path, error_path: bool, stages: list[str]
) -> None:
    """elicitation/create of mode url, and -32042 with its completion and the call made again (S207)."""
    seen: list[InputRequest] = []

    async def consent(request: InputRequest) -> Answer:
        seen.append(request)
        return Answer(Action.ACCEPT)

    questions = Questions(CallableQuestionPrompter(consent))
    arguments = {"url": "https://example.org/sign", "message": "sign here", "errorPath": error_path}
    async with open_runtime(everything(npm_bin), host=questions.host) as runtime:
        await offered(runtime, "trigger-url-elicitation")
        result = await runtime.call_tool("everything.trigger-url-elicitation", arguments)

    assert "completed the URL elicitation" in result.text
    assert [str(request.stage) for request in seen] == stages
    assert seen[-1].url is not None
    assert seen[-1].url.text == "https://example.org/sign"
    assert seen[-1].stage is Stage.FIRST


async def test_a_hook_answers_before_the_person(npm_bin: Path, tmp_path: Path) -> None:
    """S286, S318: a hook for this server fills the form; nobody else is asked."""
    answer = {"hookSpecificOutput": {"hookEventName": "Elicitation", "action": "accept", "content": {"name": "Hook"}}}
    (tmp_path / "answer.json").write_text(json.dumps(answer), "utf-8")
    hook = {"type": "command", "command": "cat", "args": [str(tmp_path / "answer.json")]}
    hooks = read_hooks({"Elicitation": [{"matcher": "everything", "hooks": [hook]}]})

    async def never(request: InputRequest) -> None:
        raise AssertionError(request)

    questions = Questions(CallableQuestionPrompter(never), hooks=hooks)
    async with open_runtime(everything(npm_bin), host=questions.host) as runtime:
        await offered(runtime, "trigger-elicitation-request")
        result = await runtime.call_tool("everything.trigger-elicitation-request")

    assert "Name: Hook" in result.text


async def test_roots_and_a_sample_are_given(npm_bin: Path, tmp_path: Path) -> None:
    """It gets the roots that were declared, and a model's words within the limits."""
    asked: list[SamplingRequest] = []

    async def sample(request: SamplingRequest) -> SamplingAnswer:
        asked.append(request)
        return SamplingAnswer({"type": "text", "text": "words of a model"}, model="tiny")

    questions = Questions(sample=sample, roots=[Root(tmp_path.as_uri(), "here")])
    async with open_runtime(everything(npm_bin), host=questions.host) as runtime:
        await offered(runtime, "get-roots-list")
        roots = await runtime.call_tool("everything.get-roots-list")
        sampled = await runtime.call_tool("everything.trigger-sampling-request", {"prompt": "p", "maxTokens": 9})

    assert tmp_path.as_uri() in roots.text
    assert "words of a model" in sampled.text
    assert [(request.server, request.max_tokens) for request in asked] == [("everything", 9)]


async def test_what_a_model_gets(npm_bin: Path, tmp_path: Path) -> None:
    """Links become text, pictures pictures, archives files, structured content JSON; progress arrives (S212-S220)."""
    steps: list[float] = []

    def note(progress: Progress) -> None:
        steps.append(progress.progress)

    async with open_runtime(everything(npm_bin)) as runtime:
        await runtime.wait_ready()
        face = ModelFace(runtime, mode=PermissionMode.BYPASS, outputs=Outputs(tmp_path / "out"))
        links = await face.call("mcp__everything__get-resource-links", {"count": 2})
        annotated = await face.call(
            "mcp__everything__get-annotated-message", {"messageType": "error", "includeImage": True}
        )
        weather = await face.call("mcp__everything__get-structured-content", {"location": "Chicago"})
        archive = await face.call(
            "mcp__everything__gzip-file-as-resource",
            {"name": "a.gz", "data": "data:text/plain;base64,aGVsbG8=", "outputType": "resource"},
        )
        await face.call("mcp__everything__trigger-long-running-operation", {"duration": 0.2, "steps": 4}, progress=note)
        listed = await face.call("ListMcpResourcesTool", {"server": "everything"})
        read = await face.call("ReadMcpResourceTool", {"server": "everything", "uri": "demo://resource/dynamic/blob/1"})
        found = await face.search("tiny logo image")

    assert "[Resource link: Blob Resource 1 (demo://resource/dynamic/blob/1)]" in text_of(links)
    assert "Error: Operation failed" in text_of(annotated)
    assert [type(block) for block in annotated.blocks] == [ModelText, ModelImage]
    assert json.loads(text_of(weather)).keys() == {"temperature", "conditions", "humidity"}
    saved = [path for path in (tmp_path / "out").iterdir() if path.suffix == ".gz"]
    assert len(saved) == 1
    assert str(saved[0]) in text_of(archive)
    assert saved[0].stat().st_mode & 0o777 == 0o600
    assert steps == sorted(steps)
    assert steps
    assert json.loads(text_of(listed))["resources"][0]["server"] == "everything"
    [content] = json.loads(text_of(read))["contents"]
    assert "Resource 1" in await trio.Path(content["blobSavedTo"]).read_text("utf-8")
    assert found[0].view.tool.name == "get-tiny-image"


def text_of(result: object) -> str:
    return "\n".join(block.text for block in result.blocks if isinstance(block, ModelText))  # type: ignore[attr-defined]


async def test_a_subscription_tells_of_updates(npm_bin: Path) -> None:
    """A watched resource is told of once the server simulates updates (F01)."""
    uri = "demo://resource/dynamic/text/1"
    async with open_runtime(everything(npm_bin)) as runtime:
        await runtime.wait_ready()
        server = runtime.server("everything")
        async with server.watch_resource(uri) as changes:
            await runtime.call_tool("everything.toggle-subscriber-updates")
            changed = await anext(changes)
            contents = (await server.read_resource(changed))["contents"]

    assert changed == uri
    assert isinstance(contents, list)
    assert contents[0]["uri"] == uri


async def test_prepared_answers_need_no_person(npm_bin: Path) -> None:
    """Both questions of -32042 are answered by a rule that names the message."""
    policy = Policy(Mode.ANSWERS, (PreparedAnswer(Action.ACCEPT, message="open"),))
    questions = Questions(policy=policy)
    async with open_runtime(everything(npm_bin), host=questions.host) as runtime:
        await offered(runtime, "trigger-url-elicitation")
        result = await runtime.call_tool(
            "everything.trigger-url-elicitation", {"url": "https://example.org/", "errorPath": True}
        )

    assert "completed the URL elicitation" in result.text


# ── the command line ─────────────────────────────────────────────────────────────────────────────────────────────────


def mcp_actors(npm_bin: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "mcp_actors", "--strict-config", "--config", json.dumps(everything(npm_bin))]
    return subprocess.run(
        [*command, *words], capture_output=True, text=True, timeout=90, check=False, stdin=subprocess.DEVNULL
    )


FORM, PAGE = "everything.trigger-elicitation-request", "everything.trigger-url-elicitation"


@pytest.mark.parametrize(
    ("words", "code", "out", "err"),
    [
        (["call", FORM], 0, "declined", "everything is declined"),
        (["call", FORM, "--elicit", "accept-defaults"], 0, "declined", "there is no default for name"),
        (["call", FORM, "--elicit", "{answers}"], 0, "Name: Ann", ""),
        (["call", PAGE, "url=https://example.org/", "--elicit", "{consent}"], 0, "completed the URL", ""),
        (["call", PAGE, "url=https://a.example/", "errorPath:=true", "--elicit", "{consent}"], 0, "completed", ""),
        (["call", PAGE, "url=https://a.example/", "errorPath:=true"], 1, "", "the answer was decline"),
        (["call", "everything.trigger-sampling-request", "prompt=p", "--sample", "my words"], 0, "my words", "asks"),
        (["call", "everything.get-roots-list", "--root", "{place}"], 0, "file://", ""),
        (["call", "everything.get-resource-links"], 0, "demo://resource/dynamic/blob/1", ""),
        (["call", "everything.get-resource-links", "--output", "markdown"], 0, "](<demo://resource", ""),
        (
            ["call", "everything.get-annotated-message", "messageType=success", "--output", "markdown"],
            0,
            "*(for user, priority 0.7)*",
            "",
        ),
        (
            ["call", "everything.trigger-long-running-operation", "duration=0.2", "steps=2", "--progress"],
            0,
            "completed",
            "2/2",
        ),
        (["call", "everything.get-structured-content", "location=Chicago", "--output", "raw"], 0, '"humidity"', ""),
        (["tools", "--search", "tiny logo"], 0, "everything.get-tiny-image", ""),
        (["tools", "--format", "anthropic"], 0, '"input_schema"', ""),
        (["resources", "--templates"], 0, "demo://resource/dynamic/text/{resourceId}", ""),
        (["read", "everything", "demo://resource/dynamic/text/3"], 0, "Resource 3", ""),
        (["read", "@everything:demo://resource/dynamic/text/3"], 0, "Resource 3", ""),
        (["read", "everything", "demo://nowhere"], 1, "", "lists what there is"),
        (["prompts"], 0, "/mcp__everything__args-prompt <city> [state]", ""),
        (["prompt", "everything.args-prompt", "city=Paris"], 0, "weather in Paris", ""),
        (["prompt", '/mcp__everything__args-prompt "Le Havre" Normandy'], 0, "Le Havre, Normandy", ""),
        (["prompt", "everything.args-prompt"], 2, "", "missing city; usage: /mcp__everything__args-prompt <city>"),
    ],
)
def test_verbs(npm_bin: Path, tmp_path: Path, words: list[str], code: int, out: str, err: str) -> None:
    """Each verb says on standard output what it got, and on standard error what else there is to say."""
    (tmp_path / "answers.json").write_text('{"name": "Ann"}', "utf-8")
    (tmp_path / "consent.json").write_text('[{"message": "open", "action": "accept"}]', "utf-8")
    places = {
        "{answers}": str(tmp_path / "answers.json"),
        "{consent}": str(tmp_path / "consent.json"),
        "{place}": str(tmp_path),
    }

    ran = mcp_actors(npm_bin, *(places.get(word, word) for word in words))

    assert ran.returncode == code, ran.stderr
    assert out in ran.stdout
    assert err in ran.stderr
    assert bool(err) == bool(ran.stderr)


def on_terminal(npm_bin: Path, words: list[str], lines: list[str], term: str = "dumb") -> tuple[int, str, str]:
    """Run a verb for a person: standard input and error are a terminal; a line is typed at each colon.

    Returns:
        Exit code, standard output (a pipe), and what stood on the terminal.
    """
    command = [sys.executable, "-m", "mcp_actors", "--strict-config", "--config", json.dumps(everything(npm_bin))]
    ours, theirs = pty.openpty()
    child = subprocess.Popen(
        [*command, *words], stdin=theirs, stderr=theirs, stdout=subprocess.PIPE, env={**os.environ, "TERM": term}
    )
    os.close(theirs)
    typed, shown, at = iter(lines), "", 0
    while True:
        try:
            chunk = os.read(ours, 65536)
        except OSError:  # the other end is closed: the verb has ended
            break
        shown += chunk.decode()
        if shown[at:].endswith(": "):
            at = len(shown)
            os.write(ours, (next(typed) + "\n").encode())
    out, _ = child.communicate(timeout=60)
    os.close(ours)
    return child.returncode, out.decode(), shown


@pytest.mark.parametrize("term", ["dumb", "xterm"])
def test_a_person_fills_a_form_at_the_terminal(npm_bin: Path, term: str) -> None:
    """Field by field, a wrong value is asked for again, all is shown before it is sent; data stays pure."""
    lines = ["Ann", "yes", "", "", "", "", "500", "7", *[""] * 6, "y"]

    code, out, shown = on_terminal(npm_bin, ["call", FORM], lines, term)

    assert code == 0, shown
    assert "Name: Ann" in out
    assert "Favorite Integer: 7" in out
    assert "asks:" not in out
    assert "The server 'everything' asks:" in shown
    assert "This will be sent:" in shown
    assert "! " in shown


def test_a_person_declines_a_page_at_the_terminal(npm_bin: Path) -> None:
    """The whole URL is shown before anything is opened; no is an answer."""
    code, out, shown = on_terminal(npm_bin, ["call", PAGE, "url=https://example.org/deep/page?x=1"], ["d"])

    assert code == 0, shown
    assert "declined" in out
    assert "https://example.org/deep/page?x=1" in shown


def test_pictures_are_saved(npm_bin: Path, tmp_path: Path) -> None:
    """`--save-images` writes a private file, and the text says where."""
    ran = mcp_actors(npm_bin, "call", "everything.get-tiny-image", "--save-images", str(tmp_path / "pictures"))

    [picture] = (tmp_path / "pictures").iterdir()
    assert str(picture) in ran.stdout
    assert picture.suffix == ".png"
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert picture.stat().st_mode & 0o777 == 0o600


def test_output_json_is_what_the_server_sent(npm_bin: Path) -> None:
    """`--output json` is the result object; texts keep their emoji and line ends."""
    ran = mcp_actors(npm_bin, "call", "everything.get-annotated-message", "messageType=debug", "--output", "json")

    [block] = json.loads(ran.stdout)["content"]
    assert block["annotations"] == {"priority": 0.3, "audience": ["assistant"]}
