"""Tests of `private`, and that everybody who keeps a file of ours keeps it so."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import pytest

from mcp_actors.config.specs import ServerSpec, StdioTarget
from mcp_actors.files.locks import blocking_lock
from mcp_actors.files.private import (
    create_file,
    draft_of,
    is_private,
    make_private_directory,
    open_private_directory,
    read_private,
    why_doubted,
    write_private,
)
from mcp_actors.files.writing import change_file
from mcp_actors.model.outputs import save_files
from mcp_actors.model.pins import PinStore
from mcp_actors.tools.plans import SaveFile
from mcp_actors.transports.leftovers import open_journal

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


def take_lock(path: Path) -> None:
    with blocking_lock(path / "x.lock"):
        pass


def record_child(path: Path) -> None:
    journal = open_journal(path)
    assert journal is not None
    journal.record(os.getpid(), server="s", command="c")


# Each makes files in a directory that is not there yet, nor is the one above it.
WRITERS: dict[str, Callable[[Path], object]] = {
    "a login": lambda path: write_private(path / "c.json", b"x"),
    "a lock": take_lock,
    "a change's lock": lambda path: change_file(path.parent.parent / "f.json", lambda _: "{}", path.parent),
    "pins": lambda path: PinStore(path.parent).save(ServerSpec("s", StdioTarget("x")), ()),
    "an output": lambda path: save_files(path, [SaveFile(b"x", "txt", "text/plain", "text")]),
    "a child": record_child,
}


@pytest.mark.parametrize("umask", [0, 0o022, 0o077])
@pytest.mark.parametrize("writer", WRITERS)
def test_what_we_keep_is_private_whatever_the_umask(tmp_path: Path, writer: str, umask: int) -> None:
    """0600 in 0700 from the state directory on, and no draft stays beside it (S218, S251, fault 4)."""
    if writer == "a child" and sys.platform != "linux":
        pytest.skip("there is no journal without /proc")
    before = os.umask(umask)
    try:
        WRITERS[writer](tmp_path / "state" / "ours")
    finally:
        os.umask(before)

    made = list((tmp_path / "state").rglob("*"))
    assert mode(tmp_path / "state") == 0o700
    assert {mode(path) for path in made if path.is_dir()} == {0o700}
    assert {mode(path) for path in made if path.is_file()} == {0o600}
    assert [path for path in made if path.suffix == ".tmp"] == []


@pytest.mark.parametrize("make", [make_private_directory, open_private_directory])
def test_a_directory_that_is_there_is_closed_by_whoever_puts_secrets_there(
    tmp_path: Path, make: Callable[[Path], object]
) -> None:
    """Others leave the mode alone; a reader can ask whether it is private."""
    directory = tmp_path / "d"
    directory.mkdir()
    directory.chmod(0o755)
    assert not is_private(directory)

    make(directory)

    assert is_private(directory) is (make is open_private_directory)
    assert not is_private(tmp_path / "none")


@pytest.mark.parametrize("is_dangling", [False, True])
def test_a_new_file_goes_through_no_link(tmp_path: Path, is_dangling: bool) -> None:
    """Nor over a file: where a name is taken, that is told, and what stands there stays."""
    real = tmp_path / "real"
    if not is_dangling:
        real.write_bytes(b"theirs")
    (tmp_path / "link").symlink_to(real)

    with pytest.raises(FileExistsError):
        create_file(tmp_path / "link")

    assert real.exists() is not is_dangling
    write_private(tmp_path / "link", b"ours")
    assert (read_private(tmp_path / "link"), (tmp_path / "link").is_symlink()) == (b"ours", False)
    assert real.exists() is not is_dangling


def test_a_draft_that_nobody_wants_is_gone(tmp_path: Path) -> None:
    """Also when an error ends its use; until then it holds everything."""

    def use() -> None:
        with draft_of(tmp_path / "f", b"whole") as draft:
            assert (draft.parent, draft.read_bytes(), mode(draft)) == (tmp_path, b"whole", 0o600)
            raise KeyError

    with pytest.raises(KeyError):
        use()

    assert list(tmp_path.iterdir()) == []


def test_a_file_that_others_can_read_is_not_believed(tmp_path):
    """Nor a directory, nor a link that leads to nothing."""
    path = tmp_path / "c.json"
    path.write_bytes(b"x")
    path.chmod(0o644)

    with pytest.raises(PermissionError):
        read_private(path)
    with pytest.raises(IsADirectoryError):
        read_private(tmp_path)
    assert read_private(tmp_path / "none") is None


def test_a_directory_behind_a_link_is_refused(tmp_path):
    """Nobody can redirect our secrets."""
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")

    with pytest.raises(NotADirectoryError):
        open_private_directory(tmp_path / "link")


def test_a_failed_write_leaves_the_old_file_and_no_litter(tmp_path):
    """Atomic: old or new."""
    path = tmp_path / "d" / "c.json"
    write_private(path, b"old")

    with pytest.raises(TypeError):
        write_private(path, "no bytes")  # type: ignore[arg-type]

    assert read_private(path) == b"old"
    assert [entry.name for entry in path.parent.iterdir()] == ["c.json"]


@pytest.mark.parametrize(
    ("mode", "why"),
    [(0o700, None), (0o755, None), (0o770, "others may write there"), (0o702, "others may write there")],
)
def test_what_others_may_write_is_doubted(tmp_path: Path, mode: int, why: str | None) -> None:
    """A directory, and nothing where there is none."""
    directory = tmp_path / "d"
    directory.mkdir()
    directory.chmod(mode)

    assert why_doubted(directory) == why
    assert why_doubted(directory / "none") is None


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
def test_what_belongs_to_another_user_is_not_read(tmp_path: Path) -> None:
    """Even root, who could read it, does not take it for its own."""
    path = tmp_path / "d" / "c.json"
    write_private(path, b"x")
    os.chown(path, 12345, 12345)

    with pytest.raises(PermissionError):
        read_private(path)
    assert why_doubted(path) == "it belongs to another user"


def test_a_link_is_no_private_directory(tmp_path: Path) -> None:
    """It may lead elsewhere the next time."""
    (tmp_path / "real").mkdir(mode=0o700)
    (tmp_path / "link").symlink_to(tmp_path / "real")

    assert is_private(tmp_path / "real")
    assert not is_private(tmp_path / "link")
