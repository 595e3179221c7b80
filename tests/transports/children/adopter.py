"""A process that orphans are left to, as to process 1 of a container. Stops a server with some; prints who is left."""

import ctypes
import os
import sys
from functools import partial

import trio

from mcp_actors.config.settings import Settings
from mcp_actors.config.specs import ServerSpec, StdioTarget
from mcp_actors.testing.contracts import RecordingSink
from mcp_actors.transports import procfs
from mcp_actors.transports.stdio import StdioTransport

PR_SET_CHILD_SUBREAPER = 36
# One in the group whose parent has ended, one with a session of its own whose parent has not.
CODE = "(sleep 600 & echo) ; setsid sleep 600 & echo '{}'; read end"


async def main():
    spec = ServerSpec("s", StdioTarget("/bin/sh", ("-c", CODE)))
    settings = Settings(stop_interrupt=0.1, stop_terminate=0.1)
    transport, sink = StdioTransport(spec, settings, environ=dict(os.environ)), RecordingSink()
    async with trio.open_nursery() as nursery:
        await nursery.start(partial(transport.run, sink))
        while sum(row.group != os.getpgrp() for row in procfs.descendants(os.getpid())) < 3:
            await trio.lowlevel.checkpoint()
        nursery.cancel_scope.cancel()


ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
trio.run(main)
sys.stdout.write(repr([row for row in procfs.stats() if row.parent == os.getpid()]))
