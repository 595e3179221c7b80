r"""`windows_commands`: rules that were never run on Windows, so the tests model its two readers instead."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_actors.errors import ConnectFailed
from mcp_actors.transports.windows_commands import (
    quote_argument,
    quote_batch_argument,
    resolve_windows_command,
    windows_command_line,
)

FILES = {
    r"C:\Program Files\nodejs\npx.CMD",
    r"C:\Program Files\nodejs\npx",
    r"C:\bin\uvx.exe",
    r"D:\work\run.bat",
    r"D:\work\npx.cmd",
    r"C:\bin\tool.py",
}
ENV = {"Path": r'"C:\Program Files\nodejs";C:\bin', "PathExt": ".COM;.EXE;.BAT;.CMD;.exe"}


def resolve(command):
    return resolve_windows_command(command, environ=ENV, cwd=r"D:\work", is_file=FILES.__contains__)


def split(text):
    """The usual C rules by which a program splits its command line."""
    args, current, quoted, begun, index = [], "", False, False, 0
    while index < len(text):
        char = text[index]
        if char == "\\":
            run = len(text[index:]) - len(text[index:].lstrip("\\"))
            index += run
            if text[index : index + 1] == '"':
                current += "\\" * (run // 2)
                if run % 2:
                    current += '"'
                    index += 1
            else:
                current += "\\" * run
            begun = True
            continue
        if char == '"':
            if quoted and text[index + 1 : index + 2] == '"':
                current += '"'
                index += 1
            else:
                quoted = not quoted
            begun = True
        elif char in " \t" and not quoted:
            if begun:
                args.append(current)
            current, begun = "", False
        else:
            current += char
            begun = True
        index += 1
    return [*args, current] if begun else args


@pytest.mark.parametrize(
    ("command", "found"),
    [
        ("npx", r"C:\Program Files\nodejs\npx.CMD"),
        ("uvx", r"C:\bin\uvx.EXE"),
        ("uvx.exe", r"C:\bin\uvx.exe"),
        (r".\run", r"D:\work\run.BAT"),
        (r"C:\bin\uvx.exe", r"C:\bin\uvx.exe"),
    ],
)
def test_command_is_found_through_pathext(command, found) -> None:
    """Batch files are found by their bare name, and a file without extension is not taken for a program (fault 15)."""
    names = {path.lower() for path in FILES}

    path = resolve_windows_command(command, environ=ENV, cwd=r"D:\work", is_file=lambda path: path.lower() in names)

    assert path.lower() == found.lower()


@pytest.mark.parametrize("command", ["run", "tool.py", "nothing"])
def test_not_found_names_command_and_path(command) -> None:
    """The child's directory is not searched for bare names; the error names command and PATH (fault 15)."""
    with pytest.raises(ConnectFailed) as caught:
        resolve(command)

    assert repr(command) in str(caught.value)
    assert ENV["Path"] in str(caught.value)


@pytest.mark.parametrize(
    ("arg", "quoted"),
    [
        ("plain", "plain"),
        ("", '""'),
        ("a b", '"a b"'),
        ("tail\\", "tail\\"),
        ("a b\\", '"a b\\\\"'),
        ('say "hi"', '"say \\"hi\\""'),
    ],
)
def test_argument_of_a_program(arg, quoted) -> None:
    """A program's argument is quoted by the C rules only where it must be."""
    assert quote_argument(arg) == quoted


@pytest.mark.parametrize(
    ("arg", "quoted"),
    [
        ("plain", "plain"),
        ("", '""'),
        ("a b", '"a b"'),
        ("a&b", '"a&b"'),
        ("%PATH%", '"%%cd:~,%PATH%%cd:~,%"'),
        ('a"b', '"a""b"'),
        ('a\\"b', '"a\\\\""b"'),
        ("tail\\", '"tail\\\\"'),
        ("a^b|c>d", '"a^b|c>d"'),
        ("ümlaut", '"ümlaut"'),
    ],
)
def test_argument_of_a_batch_file(arg, quoted) -> None:
    """What the command interpreter gives a meaning to is quoted, and percent is defused (fault 15)."""
    assert quote_batch_argument(arg) == quoted


@given(st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"])))
def test_program_sees_its_argument_unchanged(arg) -> None:
    """Whatever the argument, the C rules give it back."""
    assert split("p " + quote_argument(arg)) == ["p", arg]


@given(st.text(st.sampled_from('ab \\"%&^|<>()!')))
def test_batch_argument_survives_both_readers(arg) -> None:
    """After percent expansion and the C rules the argument is what it was, and no operator stands outside quotes."""
    line = quote_batch_argument(arg)

    # The variable "cd" cut to nothing expands to nothing, and leaves the first percent of the pair.
    assert split("p " + line.replace("%%cd:~,%", "%")) == ["p", arg]
    assert line == arg or (line[0], line[-1]) == ('"', '"')


@pytest.mark.parametrize("arg", ["a\nb", "a\rb", "a\0b"])
def test_what_cannot_be_passed_is_refused(arg) -> None:
    """Line ends and NUL cannot reach a batch file and are refused (fault 15)."""
    with pytest.raises(ConnectFailed):
        quote_batch_argument(arg)


def test_whole_lines() -> None:
    """Programs are started directly, batch files through the interpreter with extensions on and AutoRun off."""
    exe = windows_command_line(r"C:\Program Files\x.exe", ["a b"])
    batch = windows_command_line(r"C:\Program Files\nodejs\npx.cmd", ["-y", "a b"])

    assert exe == r'"C:\Program Files\x.exe" "a b"'
    assert batch == r'cmd.exe /e:ON /v:OFF /d /c ""C:\Program Files\nodejs\npx.cmd" -y "a b""'


def test_batch_file_with_percent_in_its_path_is_refused() -> None:
    """A batch file whose own path would be expanded is refused."""
    with pytest.raises(ConnectFailed):
        windows_command_line(r"C:\100%\x.bat", [])
