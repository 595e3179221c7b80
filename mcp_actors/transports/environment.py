"""Owns the environment of a child: a short base from the parent's, and the entry's own variables over it.

What this is not: expansion of ``${VAR}`` (that is done by config) or finding the program (`commands`). Pure: both
environments are passed in, nothing is read from the process.

Rule 1: a secret of the host never reaches a server that did not ask for it by name (E08, fault 101).
Rule 2: the entry wins over the base (S067).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mcp_actors.values import frozen

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["BASES", "Base", "child_environment"]


@frozen
class Base:
    """What a child inherits on one platform."""

    names: frozenset[str]
    # Families of names, by how they begin.
    prefixes: tuple[str, ...] = ()
    # Whether the platform takes "Path" and "PATH" for the same name.
    folds_case: bool = False

    def admits(self, name: str) -> bool:
        """Whether the child inherits this variable."""
        key = name.upper() if self.folds_case else name
        return key in self.names or key.startswith(self.prefixes)


_SHARED: Final = frozenset({"LANG", "LANGUAGE", "TZ", "TMP", "TEMP", "TMPDIR"})

# Platform (os.name) -> its base. The Windows row is table-tested and was never run on Windows.
BASES: Final[Mapping[str, Base]] = {
    "posix": Base(
        frozenset({"HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER"}) | _SHARED,
        # An empty tuple of prefixes would admit nothing; locale categories are many.
        prefixes=("LC_",),
    ),
    "nt": Base(
        frozenset(
            {
                "ALLUSERSPROFILE",
                "APPDATA",
                "COMSPEC",
                "HOMEDRIVE",
                "HOMEPATH",
                "LOCALAPPDATA",
                "NUMBER_OF_PROCESSORS",
                "OS",
                "PATH",
                "PATHEXT",
                "PROCESSOR_ARCHITECTURE",
                "PROGRAMDATA",
                "PROGRAMFILES",
                "PROGRAMFILES(X86)",
                "PROGRAMW6432",
                "SYSTEMDRIVE",
                "SYSTEMROOT",
                "USERNAME",
                "USERPROFILE",
                "WINDIR",
            }
        )
        | _SHARED,
        prefixes=("LC_",),
        folds_case=True,
    ),
}

# Bash exports functions as values that begin so; no server needs one, and old shells run what follows.
_FUNCTION_MARK: Final = "()"


def child_environment(
    parent: Mapping[str, str], entry: Mapping[str, str], *, project: str | None = None, platform: str = "posix"
) -> dict[str, str]:
    """Build the whole environment of a child.

    Args:
        parent: the runtime's environment (name -> value).
        entry: the server entry's own variables (name -> value), already expanded; taken as they are.
        project: the directory that the user works in, told as ``CLAUDE_PROJECT_DIR``; None: nothing is told.
        platform: a key of `BASES`.

    Returns:
        Name -> value. Names keep the spelling they had; where the platform folds case the entry's spelling replaces
        the parent's.

    Source:
        S067, E08, fault 101.
    """
    base = BASES[platform]
    env = {name: value for name, value in parent.items() if base.admits(name) and not value.startswith(_FUNCTION_MARK)}
    if base.folds_case:
        mine = {name.upper() for name in entry}
        env = {name: value for name, value in env.items() if name.upper() not in mine}
    if project is not None:
        env["CLAUDE_PROJECT_DIR"] = project
    env.update(entry)
    return env
