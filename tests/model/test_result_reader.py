"""What a model gets of a result."""

from __future__ import annotations

import base64
import io

import pytest
from scripted_fleet import spec

from mcp_actors.errors import RemoteProtocolError
from mcp_actors.model.face import ModelFace
from mcp_actors.model.outputs import Outputs
from mcp_actors.runtime import open_runtime
from mcp_actors.testing.scripted import ScriptedServer
from mcp_actors.tools.permissions import Mode
from mcp_actors.tools.plans import Limits, ModelImage
from tests.model.shop import shop, text_of

pytestmark = pytest.mark.deadline(10)


OPEN = Mode.BYPASS


@pytest.mark.parametrize("is_saved", [True, False])
async def test_too_large_a_result_is_spilled(tmp_path, is_saved: bool) -> None:
    """S222, S223: the model is told where the whole lies; without a directory it is told that it was lost."""
    outputs = Outputs(tmp_path / "out") if is_saved else None
    async with open_runtime([spec("shop", shop())]) as runtime:
        await runtime.wait_ready()
        face = ModelFace(runtime, mode=OPEN, limits=Limits(max_tokens=100), outputs=outputs)
        text = text_of(await face.call("mcp__shop__big"))

    assert len(text) < 1000
    if is_saved:
        [path] = (tmp_path / "out").iterdir()
        assert str(path) in text
        assert path.read_text("utf-8") == "x" * 5000
    else:
        assert "could not be saved" in text


@pytest.mark.parametrize("is_strict", [True, False])
async def test_a_broken_promise_is_noted_and_raises_only_where_asked(is_strict: bool) -> None:
    """Faults 84 and 85: all blocks stay, the note says why; `is_strict` raises."""
    pytest.importorskip("jsonschema_rs")
    async with open_runtime([spec("shop", shop())]) as runtime:
        await runtime.wait_ready()
        face = ModelFace(runtime, mode=OPEN, is_strict=is_strict)
        if is_strict:
            with pytest.raises(RemoteProtocolError, match="does not fit its schema"):
                await face.call("mcp__shop__odd")
            return
        result = await face.call("mcp__shop__odd")

    assert text_of(result) == 't\n{"n":"no"}'
    assert "structured content is invalid" in result.notes[0]


async def test_a_large_picture_is_made_small() -> None:
    """S214: a picture beyond the good edge comes smaller, as a picture."""
    image_module = pytest.importorskip("PIL.Image")
    out = io.BytesIO()
    image_module.new("RGB", (9000, 40), "red").save(out, "PNG")
    block = {"type": "image", "data": base64.b64encode(out.getvalue()).decode(), "mimeType": "image/png"}
    server = ScriptedServer("camera")
    server.add_tool("shoot", lambda call: {"content": [block]})

    async with open_runtime([spec("camera", server)]) as runtime:
        await runtime.wait_ready()
        result = await ModelFace(runtime, mode=OPEN).call("mcp__camera__shoot")

    [picture] = [shown for shown in result.blocks if isinstance(shown, ModelImage)]
    assert max(image_module.open(io.BytesIO(picture.data)).size) <= 1568


async def test_meta_of_a_result_is_for_the_host() -> None:
    """S227: the host finds it, cleaned, beside what the model gets."""
    server = ScriptedServer("one")
    answer = {"content": [{"type": "text", "text": "t"}], "_meta": {"trace": "a\u200bb"}}
    server.add_tool("x", lambda call: answer)

    async with open_runtime([spec("one", server)]) as runtime:
        await runtime.wait_ready()
        result = await ModelFace(runtime, mode=OPEN).call("mcp__one__x")

    assert (text_of(result), result.meta["trace"]) == ("t", "ab")
