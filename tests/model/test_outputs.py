"""Files that results leave behind."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import trio

from mcp_actors.model.outputs import KEPT_SECONDS, Outputs, save_files
from mcp_actors.tools.plans import SaveFile

FILE = SaveFile(b"data", "bin", "application/octet-stream", "resource")


def test_files_are_private_and_their_names_cannot_be_foreseen(tmp_path) -> None:
    """S218: mode 0600 in a directory of mode 0700, a random name, our own extension."""
    paths = save_files(tmp_path / "new" / "out", [FILE, FILE], prefix="tool-")

    assert len(set(paths)) == 2
    for path in map(Path, paths):
        assert path.stat().st_mode & 0o777 == 0o600
        assert path.name.startswith("tool-")
        assert path.suffix == ".bin"
    assert (tmp_path / "new" / "out").stat().st_mode & 0o777 == 0o700


def test_what_cannot_be_written_is_none(tmp_path) -> None:
    """A directory that is a file saves nothing, and raises nothing."""
    (tmp_path / "out").write_text("in the way", "utf-8")

    assert save_files(tmp_path / "out", [FILE]) == [None]


@pytest.mark.deadline(10)
async def test_old_outputs_are_swept(tmp_path) -> None:
    """What is older than a week goes when the next one comes; what is younger stays."""
    outputs = Outputs(tmp_path)
    [old], [young] = await outputs.save([FILE]), await outputs.save([FILE])
    past = (await trio.Path(old).stat()).st_mtime - KEPT_SECONDS - 60
    os.utime(old, (past, past))

    [new] = await outputs.save([FILE])

    assert sorted(str(path) for path in tmp_path.iterdir()) == sorted([young, new])
    assert await outputs.save([]) == []
