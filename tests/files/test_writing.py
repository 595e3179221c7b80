"""Tests of `writing`: a file is replaced as a whole, or stays as it was to the byte."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
import threading
from typing import TYPE_CHECKING

import pytest

from mcp_actors.config.editing import set_value
from mcp_actors.errors import ConfigError
from mcp_actors.files.writing import Change, change_file, plan_change

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "here").mkdir()
    return tmp_path / "here" / "f.json"


@pytest.fixture
def state(tmp_path: Path) -> Path:
    return tmp_path / "ours" / "state"


def adds(name: str) -> Callable[[str | None], str]:
    return lambda text: set_value("{}\n" if text is None else text, ("s", name), 1, "f")


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.parametrize(("is_private", "expected"), [(True, 0o600), (False, 0o640)])
def test_a_new_file_is_private_unless_it_is_to_be_shared(
    file: Path, state: Path, is_private: bool, expected: int
) -> None:
    """A file that we make is for its user alone; a project's file is as the umask says."""
    before = os.umask(0o027)
    try:
        change = change_file(file, adds("a"), state, is_private=is_private)
    finally:
        os.umask(before)

    assert (change.before, json.loads(file.read_text())) == (None, {"s": {"a": 1}})
    assert mode(file) == expected


def test_mode_stays_and_nothing_is_left_beside_the_file(file: Path, state: Path) -> None:
    """The new file has the old one's mode; locks lie in our own directory, which is private."""
    file.write_text("{}")
    file.chmod(0o664)

    change_file(file, adds("a"), state)

    assert mode(file) == 0o664
    assert list(file.parent.iterdir()) == [file]
    assert (mode(state), mode(state / "locks")) == (0o700, 0o700)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
def test_owner_stays(file: Path, state: Path) -> None:
    """The new file belongs to whom the old one did."""
    file.write_text("{}")
    os.chown(file, 12345, 23456)

    change_file(file, adds("a"), state)

    assert (file.stat().st_uid, file.stat().st_gid) == (12345, 23456)


@pytest.mark.parametrize("is_dangling", [False, True])
def test_a_link_stays_a_link(file: Path, state: Path, tmp_path: Path, is_dangling: bool) -> None:
    """The file that a link leads to is the one that changes, or is made."""
    real = tmp_path / "dotfiles.json"
    if not is_dangling:
        real.write_text("{}")
    file.symlink_to(real)

    change_file(file, adds("a"), state)

    assert file.is_symlink()
    assert json.loads(real.read_text()) == {"s": {"a": 1}}


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_encoding_stays(file: Path, state: Path, encoding: str) -> None:
    """A byte order mark and its encoding are kept (fault 22)."""
    file.write_bytes('{"é": "x"}'.encode(encoding))
    head = file.read_bytes()[:2]

    change_file(file, adds("a"), state)

    assert json.loads(file.read_bytes().decode(encoding)) == {"é": "x", "s": {"a": 1}}
    assert file.read_bytes()[:2] == head


@pytest.mark.parametrize("data", [b'{"s": ', b"", b"\xff\xfe\xff", b"{} trailing", b"[1]"])
def test_a_file_that_does_not_parse_is_not_touched(file: Path, state: Path, data: bytes) -> None:
    """It stays as it was, to the byte, with no other file beside it (fault 23)."""
    file.write_bytes(data)
    before = file.stat()

    with pytest.raises(ConfigError):
        change_file(file, adds("a"), state)

    assert (file.read_bytes(), file.stat().st_ino, file.stat().st_mtime_ns) == (
        data,
        before.st_ino,
        before.st_mtime_ns,
    )
    assert list(file.parent.iterdir()) == [file]


def loop(path: Path) -> None:
    path.symlink_to(path.name)


@pytest.mark.parametrize("make", [os.mkdir, os.mkfifo, loop], ids=["directory", "pipe", "loop"])
def test_only_plain_files_are_written(file: Path, state: Path, make: Callable[[Path], None]) -> None:
    """A folder, a pipe or a link that leads to itself is refused at once."""
    make(file)

    with pytest.raises(ConfigError, match="cannot be read"):
        change_file(file, adds("a"), state)


def test_a_write_protected_file_is_not_replaced(file: Path, state: Path) -> None:
    """Whoever took the right to write away meant it."""
    file.write_text("{}")
    file.chmod(0o444)

    with pytest.raises(ConfigError, match="write-protected"):
        change_file(file, adds("a"), state)

    assert file.read_text() == "{}"


def test_a_missing_folder_is_told(tmp_path: Path, state: Path) -> None:
    """No folder is made for another program's file."""
    with pytest.raises(ConfigError, match="cannot be written"):
        change_file(tmp_path / "no" / "f.json", adds("a"), state)


def test_no_change_writes_nothing(file: Path, state: Path) -> None:
    """A change that changes nothing leaves even the time of the file alone, and makes none."""
    assert change_file(file, lambda text: text or "", state).is_empty
    assert not file.exists()
    file.write_text("{}")
    before = file.stat()

    assert change_file(file, lambda text: text or "", state).is_empty
    assert (file.stat().st_ino, file.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


def test_a_plan_writes_nothing(file: Path) -> None:
    """What would be done is told, and nothing is done."""
    assert plan_change(file, adds("a")) == Change(file, None, '{\n  "s": {\n    "a": 1\n  }\n}\n')
    assert not file.exists()


def test_a_writer_without_our_lock_loses_nothing(file: Path, state: Path) -> None:
    """What another program writes while we think is seen, and the change is made again to that."""
    file.write_text("{}")
    interruptions = iter(["theirs", "more"])

    def change(text: str | None) -> str:
        edited = adds("ours")(text)
        if (name := next(interruptions, None)) is not None:
            file.write_text(adds(name)(file.read_text()))
        return edited

    change_file(file, change, state)

    assert json.loads(file.read_text()) == {"s": {"theirs": 1, "more": 1, "ours": 1}}


def test_a_file_that_never_rests_is_given_up(file: Path, state: Path) -> None:
    """The tries are bounded, and the last writer's text stays."""
    file.write_text('{"n": 0}')

    def change(text: str | None) -> str:
        file.write_text(json.dumps({"n": json.loads(file.read_text())["n"] + 1}))
        return adds("a")(text)

    with pytest.raises(ConfigError, match="all the time"):
        change_file(file, change, state)

    assert json.loads(file.read_text()) == {"n": 50}


WRITER = """
import sys
from pathlib import Path
from mcp_actors.config.editing import set_value
from mcp_actors.files.writing import change_file
file, state, writer = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]
print("ready", flush=True)
sys.stdin.readline()
for number in range(10):
    name = f"{writer}-{number}"
    change_file(file, lambda text: set_value(text or "{}", ("mcpServers", name), {"command": "x"}, "f"), state)
"""


@pytest.mark.slow
def test_eight_writers_add_ten_servers_each(file: Path, state: Path) -> None:
    """Eighty servers in the end, and whoever reads meanwhile sees whole JSON at every moment (fault 31)."""
    words = [sys.executable, "-c", WRITER, str(file), str(state)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    writers = [subprocess.Popen([*words, str(number)], **pipes) for number in range(8)]
    is_done = threading.Event()
    faults: list[Exception] = []

    def read() -> None:
        while not is_done.is_set():
            try:
                json.loads(file.read_text())
            except FileNotFoundError:
                continue
            except ValueError as exc:
                faults.append(exc)

    reader = threading.Thread(target=read)
    reader.start()
    try:
        for writer in writers:
            assert writer.stdout is not None
            writer.stdout.readline()
        for writer in writers:
            assert writer.stdin is not None
            writer.stdin.write("go\n")
            writer.stdin.flush()
        for writer in writers:
            writer.communicate(timeout=90)
    finally:
        is_done.set()
        reader.join()
        for writer in writers:
            writer.kill()
            writer.wait()

    assert [writer.returncode for writer in writers] == [0] * 8
    assert faults == []
    assert len(json.loads(file.read_text())["mcpServers"]) == 80
