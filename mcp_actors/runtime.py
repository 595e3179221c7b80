"""Owns the composition: `open_runtime` wires configuration, transports and actors to a `Runtime`.

What this is not: any of them, or what a program does with it (`fleet.running`).
"""

from __future__ import annotations

import logging
import os
import random
from contextlib import asynccontextmanager, contextmanager, nullcontext
from functools import partial
from typing import TYPE_CHECKING

import trio

from mcp_actors.actors.host import wire_host
from mcp_actors.actors.lifetime import run_actors, stop_bound
from mcp_actors.actors.registry import Registry
from mcp_actors.actors.supervisor import Supervisor
from mcp_actors.config.settings import read_settings
from mcp_actors.files.given import ConfigLike
from mcp_actors.fleet.configured import Configured
from mcp_actors.fleet.opener import Opener
from mcp_actors.fleet.running import Runtime
from mcp_actors.fleet.sleeping import keep_awake
from mcp_actors.groups import bare_errors

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator, Mapping
    from pathlib import Path

    from mcp_actors.actors.host import Host
    from mcp_actors.auth.driving import SignInPrompter
    from mcp_actors.config.loaded import LoadedConfig
    from mcp_actors.config.settings import Settings
    from mcp_actors.config.specs import ServerSpec
    from mcp_actors.transports.base import Transport

__all__ = ["ConfigLike", "open_runtime"]

logger = logging.getLogger("mcp_actors.runtime")


@asynccontextmanager
async def open_runtime(
    config: ConfigLike = None,
    *,
    settings: Settings | None = None,
    environ: Mapping[str, str] | None = None,
    transports: Callable[[ServerSpec], Transport] | None = None,
    state_dir: Path | None = None,
    host: Host | None = None,
    sign_in: SignInPrompter | None = None,
    reread: Callable[[], LoadedConfig] | None = None,
) -> AsyncIterator[Runtime]:
    """Run a fleet while the block runs.

    Starts at once, from scratch (S103), and waits for nothing (`Runtime.wait_ready` does). On exit every server is
    stopped, in parallel and bounded by the stop ladder; no process, thread, descriptor or task of it is left.

    Args:
        config: a mapping ``{"mcpServers": {...}}``, the path or the JSON text of a file, server specs, what `loading`
            loaded; None: the files that apply in the working directory.
        settings: numbers; None: read from `environ`.
        environ: environment for settings, ``${VAR}`` and children; None: this process's.
        transports: builds the transport of a spec, for transports of your own; None: the shipped ones.
        state_dir: where logins are kept, and living children noted: the next run with the same directory stops what a
            killed run left behind, and a server of that name starts after that (fault 4); None: nowhere.
        host: answers what servers ask (roots, sampling, elicitation); None: nothing is offered to them.
        sign_in: asks a person to sign in when a server demands it during a call; None: such calls fail typed.
        reread: reads the configuration again for `Runtime.reload`, in a thread; None: what `config` names is read.

    Raises:
        ConfigError: `config` as a whole cannot be used; a bad entry is a problem of its own (`Runtime.problems`).

    Cancellation:
        Stops the fleet, shielded and bounded by the stop ladder.
    """
    environ = dict(os.environ) if environ is None else environ
    if settings is None:
        settings, warnings = read_settings(environ)
        for warning in warnings:
            logger.warning("%s", warning)
    configured = Configured(config, environ, reread)
    opener = Opener(settings, environ, state_dir, sign_in)
    wired = wire_host(host, opener.extensions)
    leftovers = opener.sweep()
    registry = Registry(window=settings.publish_window)
    supervisor = Supervisor(
        settings,
        registry.mailbox.ref,
        opener if transports is None else transports,
        chance=lambda: 1.0 - random.random(),  # in (0, 1]
        host=wired,
        admit=configured.admit,
        wait_for=leftovers.wait_for if leftovers else lambda _: None,
    )
    opener.waiting = partial(_stopped, supervisor, registry)
    runtime = Runtime(settings, registry, supervisor, configured, opener)
    closing = trio.Event()
    beside = [runtime.waker.run, partial(keep_awake, runtime)]
    if wired.task is not None:
        beside.insert(0, partial(wired.task, runtime))
    if leftovers and leftovers.under_way:
        beside.append(leftovers.run)
    with bare_errors(), wired.while_running(runtime):
        async with trio.open_nursery() as nursery:
            specs = configured.loaded.specs
            await nursery.start(run_actors, registry, supervisor, specs, closing, stop_bound(settings), beside)
            try:
                yield runtime
            finally:
                closing.set()


@contextmanager
def _stopped(supervisor: Supervisor, registry: Registry, name: str) -> Iterator[None]:
    """Stop the clocks of a server's connect, and of its calls, while a person signs in to it (S202)."""
    connection = registry.snapshot.connections.get(name)
    with supervisor.paused(name), nullcontext() if connection is None else connection.paused():
        yield
