"""Owns the way from a changed file to a changed fleet: reading again, and watching the files that count.

What this is not: what a change means (`config.changes`), nor the change itself (`Runtime.apply`).

Rules.

1. One reading at a time; the fleet goes on while a thread reads.
2. Directories are watched, not files: editors replace files, and a file that counts may not exist yet.
3. A burst of changes is one: reading begins when it has been quiet for `DEBOUNCE` seconds, and at most after
   `MAX_BURST`, for a file that is written without end must not hold up another's edit.
4. What was edited between the reading of the configuration and the first look is no change of a file any more: so what
   it says then is compared once with what is applied.
"""

from __future__ import annotations

import logging
from contextlib import aclosing
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias

import trio
from attrs import field

from mcp_actors.actors.bell import Bell
from mcp_actors.config.changes import Applied
from mcp_actors.errors import ConfigError
from mcp_actors.files.places import CHOICES_FILE, MANAGED_FILE, PROJECT_FILE, Places
from mcp_actors.groups import bare_errors
from mcp_actors.values import define

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable
    from types import ModuleType

    from mcp_actors.fleet.running import Runtime

__all__ = ["DEBOUNCE", "choices_file", "keep_reloading", "reload", "take_prints", "watched_files"]

logger = logging.getLogger("mcp_actors.runtime")

# Seconds.
DEBOUNCE: Final = 0.3
MAX_BURST: Final = 3.0
POLL_INTERVAL: Final = 1.0
# Where events tell of changes all the same: not every file system has them.
NET_INTERVAL: Final = 10.0
# Milliseconds after which the library's thread looks whether it is cancelled; its own default makes a stop take 5 s.
RUST_TIMEOUT: Final = 200

# What a file looked like: device, inode, size, moment of change in ns; None: it was not there.
Print: TypeAlias = "tuple[int, int, int, int] | None"
# Gives the files to look at. Blocking.
_ListFiles: TypeAlias = "Callable[[], tuple[Path, ...]]"


async def reload(runtime: Runtime) -> Applied:
    """Read the configuration again and apply it. See `Runtime.reload`.

    Cancellation:
        Safe; what was begun is done.
    """
    configured = runtime.configured
    async with configured.reading:
        before = {str(problem) for problem in runtime.problems}
        try:
            loaded = await trio.to_thread.run_sync(configured.read_again)
        except ConfigError as error:
            configured.fault(error)
            changes = Applied(unchanged=tuple(configured.specs))
        else:
            changes = configured.take(loaded)
        for problem in runtime.problems:
            if str(problem) not in before:
                logger.warning("kept what ran before: %s", problem)
    # Outside: calls of one server that take their time hold up no later edit of another.
    await runtime.carry_out(changes)
    logger.info("reloaded: %s", changes)
    return changes


# ── watching ─────────────────────────────────────────────────────────────────────────────────────────────────────────


async def keep_reloading(
    runtime: Runtime,
    *,
    interval: float = POLL_INTERVAL,
    debounce: float = DEBOUNCE,
    is_polling: bool = False,
    then: Callable[[Runtime], Awaitable[object]] = reload,
    files: Callable[[Runtime], tuple[Path, ...]] | None = None,
    task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED,
) -> None:
    """Reload whenever a file that counts changes. Runs until cancelled; reports started when it watches.

    Args:
        runtime: what to reload.
        interval: seconds between two looks, where no events tell of changes.
        debounce: seconds that it must have been quiet.
        then: what to do about a change; what it raises ends the watching. It is begun at each change, also while it
            still runs for an earlier one: `Runtime.reload` reads one after the other, and the last one read holds.
        is_polling: look, also where the package watchfiles (extra ``watch``) could tell.
        files: gives the files to look at, in a thread; None: those that count for the configuration.

    Cancellation:
        Safe; takes up to a fifth of a second with watchfiles.

    Source:
        S025, S059, S420.
    """
    watchfiles = None if is_polling else _library()
    news = _News()
    list_files = partial(files or watched_files, runtime)
    prints = await _look(list_files)
    with bare_errors():
        async with trio.open_nursery() as nursery:
            if watchfiles is not None:
                nursery.start_soon(_tell_of_events, watchfiles, list_files, news)
            task_status.started()
            async with runtime.configured.reading:
                is_stale = await trio.to_thread.run_sync(runtime.configured.is_stale)
            if is_stale:
                nursery.start_soon(then, runtime)
            while True:
                with trio.move_on_after(NET_INTERVAL if news.are_told else interval):
                    await news.wait()
                seen = await _look(list_files)
                if seen != prints:
                    prints = await _quiet(list_files, seen, debounce)
                    nursery.start_soon(then, runtime)


def watched_files(runtime: Runtime) -> tuple[Path, ...]:
    """The files that count: those that were read, and those that would be if they were there. Blocking."""
    configured = runtime.configured
    places = Places.of(configured.environ)
    files = [
        places.claude_json,
        places.config_dir / "settings.json",
        places.state_dir / CHOICES_FILE,
        places.managed_dir / MANAGED_FILE,
        places.managed_dir / "managed-settings.json",
        *((drop_ins := places.managed_dir / "managed-settings.d"), *sorted(drop_ins.glob("*.json"))),
        *(directory / PROJECT_FILE for directory in places.upward()),
    ]
    for directory in places.project_directories():
        files += [directory / ".claude" / name for name in ("settings.json", "settings.local.json")]
    files += [path for path in map(Path, configured.loaded.files) if path.is_absolute()]
    return tuple(dict.fromkeys(files))


def choices_file(runtime: Runtime) -> tuple[Path, ...]:
    """The file of our own where ``approve``, ``enable`` and ``disable`` keep what a person chose."""
    return (Places.of(runtime.configured.environ).state_dir / CHOICES_FILE,)


def take_prints(files: Iterable[Path]) -> dict[Path, Print]:
    """What each file looks like now. Blocking."""
    return {path: _print_of(path) for path in files}


def _print_of(path: Path) -> Print:
    try:
        stat = path.stat()
    except (OSError, ValueError):
        return None
    return stat.st_dev, stat.st_ino, stat.st_size, stat.st_mtime_ns


async def _look(list_files: _ListFiles) -> dict[Path, Print]:
    return await trio.to_thread.run_sync(lambda: take_prints(list_files()))


async def _quiet(list_files: _ListFiles, seen: dict[Path, Print], debounce: float) -> dict[Path, Print]:
    """Wait until nothing changes any more (rule 3). Returns what the files look like then."""
    with trio.move_on_after(max(MAX_BURST, debounce)):
        while True:
            await trio.sleep(debounce)
            before, seen = seen, await _look(list_files)
            if before == seen:
                break
    return seen


@define(eq=False)
class _News:
    """Whether something may have changed that was not looked at yet. What is told during a look is for the next one."""

    # Whether somebody tells; else it is looked at often.
    are_told: bool = False
    _are_any: bool = False
    _bell: Bell = field(factory=Bell)

    def tell(self) -> None:
        self._are_any = True
        self._bell.ring()

    async def wait(self) -> None:
        while not self._are_any:
            await self._bell.wait()
        self._are_any = False


async def _tell_of_events(watchfiles: ModuleType, list_files: _ListFiles, news: _News) -> None:
    """Tell when the file system says that something changed. Ends when it cannot: then it is looked at often."""
    try:
        while True:
            directories = await trio.to_thread.run_sync(_directories, list_files)
            events = watchfiles.awatch(
                *directories, watch_filter=None, debounce=50, rust_timeout=RUST_TIMEOUT, recursive=False,
                ignore_permission_denied=True,
            )  # fmt: skip
            news.are_told = True
            news.tell()  # for what changed while nothing was watched
            async with aclosing(events):
                async for _ in events:
                    news.tell()
                    # Directories come and go, and other files count after a reload.
                    if directories != await trio.to_thread.run_sync(_directories, list_files):
                        break
    except OSError as error:
        logger.warning("watching files failed, looking at them instead: %s", error.strerror)
    finally:
        news.are_told = False


def _directories(list_files: _ListFiles) -> frozenset[Path]:
    """The directories to watch for these files: where they are or will be, as far as it exists, and what links lead to.

    Blocking.
    """
    found: set[Path] = set()
    for path in list_files():
        try:
            found.add(next(parent for parent in path.parents if parent.is_dir()))
            if path.is_symlink():
                found.add(path.resolve().parent)
        except (OSError, StopIteration, RuntimeError):
            continue
    return frozenset(path for path in found if path.is_dir())


def _library() -> ModuleType | None:
    try:
        import watchfiles
    except ImportError:
        return None
    return watchfiles
