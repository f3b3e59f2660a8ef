"""The process that engine processes are forked from.

They are not forks of the server, which has threads, but of a process that has only imported the engine: they share the
memory of that.
"""

import multiprocessing
from multiprocessing.forkserver import ensure_running
from typing import Final

PROCESSES: Final = multiprocessing.get_context("forkserver")
PROCESSES.set_forkserver_preload(["server.workers.engine_imports"])


def start_forkserver() -> None:
    """Start the process, which imports the engine while this one goes on, if it does not run."""
    ensure_running()
