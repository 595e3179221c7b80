"""A runtime with two children, to be killed hard (fault 4) or interrupted (fault 16) by the test."""

import os
import sys
from pathlib import Path

import trio

from mcp_actors.config.settings import Settings
from mcp_actors.config.specs import ServerSpec, StdioTarget
from mcp_actors.protocol.types import Frame
from mcp_actors.transports.leftovers import open_journal
from mcp_actors.transports.stdio import StdioTransport


class Sink:
    def __init__(self):
        self.came = trio.Event()

    def deliver(self, raw):
        self.came.set()

    def ended(self, error):
        pass


async def main(python, script, mode, marker, journal):
    async with trio.open_nursery() as nursery:
        pids = []
        for name in ("one", "two"):
            target = StdioTarget(python, ("-S", "-E", script, mode, marker))
            transport = StdioTransport(
                ServerSpec(name, target), Settings(), environ=dict(os.environ), journal=open_journal(Path(journal))
            )
            sink = Sink()
            await nursery.start(lambda task_status, t=transport, s=sink: t.run(s, task_status=task_status))
            await transport.send(Frame(b"{}"))
            await sink.came.wait()
            pids.append(str(transport.diagnostics().pid))
        sys.stdout.write(" ".join(pids) + "\n")
        sys.stdout.flush()
        await trio.sleep_forever()


trio.run(main, *sys.argv[1:])
