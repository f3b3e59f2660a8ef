"""A server that reports how long its event loop was held, for `python -m tests.faults.loop_holds`.

A clock in the loop ticks every 5 ms. A late tick counts as a hold, but for no more than the processor time that the
process took meanwhile: other processes on the machine delay ticks as well.
"""

import asyncio
import json
import runpy
import sys
import time
from collections.abc import Callable

import server.http.app

_TICK_SECONDS = 0.005
_NUM_TICKS = 20  # between two reports


async def _watch(observe: Callable[[float], None]) -> None:
    """Report the longest hold of each tenth of a second on standard error."""
    while True:
        longest = 0.0
        for _ in range(_NUM_TICKS):
            wall, cpu = time.perf_counter(), time.process_time()
            await asyncio.sleep(_TICK_SECONDS)
            held = min(time.perf_counter() - wall - _TICK_SECONDS, time.process_time() - cpu)
            longest = max(longest, held)
        observe(longest)
        if longest > 2 * _TICK_SECONDS:
            sys.stderr.write(json.dumps({"message": "hold", "seconds": round(longest, 4)}) + "\n")
            sys.stderr.flush()


if __name__ == "__main__":
    vars(server.http.app)["watch_event_loop"] = _watch
    runpy.run_module("kvasir", run_name="__main__")
