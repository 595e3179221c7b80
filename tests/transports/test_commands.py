"""`commands`: which file is started, or why none is."""

from __future__ import annotations

import pytest

from mcp_actors.errors import ConnectFailed
from mcp_actors.transports.commands import (
    SHELL_PREFIX,
    FileKind,
    final_command,
    look_up,
    resolve_command,
    resolve_final,
)

FILES = {
    "/bin/tool": FileKind.EXECUTABLE,
    "/usr/bin/tool": FileKind.EXECUTABLE,
    "/usr/bin/late": FileKind.EXECUTABLE,
    "/bin/late": FileKind.NOT_EXECUTABLE,
    "/work/here": FileKind.EXECUTABLE,
    "/work/sub/run": FileKind.EXECUTABLE,
    "/work/bin/near": FileKind.EXECUTABLE,
    "/bin/plain": FileKind.NOT_EXECUTABLE,
    "/work/dir": FileKind.DIRECTORY,
    "/opt/with space": FileKind.EXECUTABLE,
}


def stand(path):
    return FILES.get(path.replace("/./", "/"), FileKind.MISSING)


def resolve(command, path="/bin:/usr/bin:/opt", cwd="/work"):
    environ = {} if path is None else {"PATH": path}
    return resolve_command(command, environ=environ, cwd=cwd, look_up=stand)


@pytest.mark.parametrize(
    ("command", "path", "found"),
    [
        ("tool", "/bin:/usr/bin", "/bin/tool"),
        ("tool", "/usr/bin:/bin", "/usr/bin/tool"),
        ("late", "/bin:/usr/bin", "/usr/bin/late"),
        ("tool", None, "/bin/tool"),
        ("here", "/bin:", "/work/here"),
        ("near", "bin", "/work/bin/near"),
        ("./here", "/bin", "/work/./here"),
        ("sub/run", "/bin", "/work/sub/run"),
        ("/usr/bin/tool", "", "/usr/bin/tool"),
        ("with space", "/opt", "/opt/with space"),
    ],
)
def test_command_is_found(command, path, found) -> None:
    """Names are looked up on the child's PATH and relative ones start at the child's directory."""
    assert resolve(command, path) == found


@pytest.mark.parametrize(
    ("prefix", "words"),
    [
        (None, ["srv", "a b", "it's", ""]),
        ("  ", ["srv", "a b", "it's", ""]),
        ("/opt/wrap", ["/opt/wrap", """srv 'a b' 'it'"'"'s' ''"""]),
        ("bash -c", ["bash", "-c", """srv 'a b' 'it'"'"'s' ''"""]),
        ("'/opt/my wrap' --", ["/opt/my wrap", "--", """srv 'a b' 'it'"'"'s' ''"""]),
    ],
)
def test_a_prefix_gets_the_command_line_as_one_argument(prefix, words) -> None:
    """S068: quoted so that a shell reads the very words of the entry."""
    environ = {} if prefix is None else {SHELL_PREFIX: prefix}

    assert final_command("srv", ["a b", "it's", ""], environ) == words


def test_a_prefix_that_is_not_there_is_named() -> None:
    """S068: whoever set it is told, not whoever wrote the entry."""
    with pytest.raises(ConnectFailed, match=f"^{SHELL_PREFIX}: command '/nonexistent/wrap' does not exist"):
        resolve_final("sh", [], {SHELL_PREFIX: "/nonexistent/wrap"}, environ={"PATH": "/bin"}, cwd="/")


def test_a_prefix_that_cannot_be_taken_apart_is_named() -> None:
    """S068: the error names the variable."""
    with pytest.raises(ConnectFailed, match=SHELL_PREFIX):
        final_command("srv", [], {SHELL_PREFIX: "'open"})


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("nothing", ["'nothing'", "not found", "/bin:/usr/bin:/opt", "check the spelling"]),
        ("plain", ["'plain'", "not executable", "/bin:/usr/bin:/opt", "chmod +x"]),
        ("/nonexistent", ["'/nonexistent'", "does not exist", "check the spelling"]),
        ("/bin/plain", ["is not executable", "chmod +x"]),
        ("./dir", ["is a directory", "from /work"]),
        ("~/bin/tool", ["~ is not expanded", "${HOME}"]),
        ("tool -y pkg", ["'tool' in `command`", "`args`"]),
        ("https://h.example.com/mcp", ["is an address", "`url`"]),
        ("", ["the command is empty"]),
        ("  ", ["the command is empty"]),
    ],
)
def test_error_names_command_path_and_remedy(command, words) -> None:
    """A command that cannot be started is named with what was searched and what to do (fault 15)."""
    with pytest.raises(ConnectFailed) as caught:
        resolve(command)

    assert [word for word in words if word not in str(caught.value)] == []
    assert not caught.value.can_retry


def test_empty_path_is_said() -> None:
    """An empty PATH is shown as such, and still means the child's directory."""
    assert resolve("here", "") == "/work/here"
    with pytest.raises(ConnectFailed, match=r"\(empty\)"):
        resolve("tool", "")


def test_look_up_tells_kinds_apart(tmp_path) -> None:
    """The file system is asked what stands at a path; a NUL in it is no crash."""
    plain, program = tmp_path / "plain", tmp_path / "program"
    plain.write_text("x")
    program.write_text("x")
    plain.chmod(0o644)
    program.chmod(0o755)

    kinds = [look_up(str(path)) for path in (tmp_path, plain, program, tmp_path / "none", "a\0b")]

    assert kinds == [
        FileKind.DIRECTORY,
        FileKind.NOT_EXECUTABLE,
        FileKind.EXECUTABLE,
        FileKind.MISSING,
        FileKind.MISSING,
    ]
