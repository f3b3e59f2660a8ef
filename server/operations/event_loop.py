"""Event loop of the server: watchdog of its lag, and full garbage collections while it is idle.

A full collection visits every object of all running requests and holds the interpreter's lock meanwhile: 87 ms for
50,000 sentences. Objects without cycles, nearly all, are freed without it. Collections of young objects stay automatic.
"""

import asyncio
import gc
import logging
from collections.abc import Callable

from server.workers.on_demand_engine import return_free_pages

_log = logging.getLogger("kvasir")

_LAG_SECONDS = 0.25
_WARNING_SECONDS = 1.0


async def watch_event_loop(observe: Callable[[float], None]) -> None:
    """Call `observe` with the lag in seconds, several times a second. Runs until it is cancelled."""
    loop = asyncio.get_running_loop()
    while True:
        due = loop.time() + _LAG_SECONDS
        await asyncio.sleep(_LAG_SECONDS)
        lag = max(loop.time() - due, 0.0)
        observe(lag)
        if lag >= _WARNING_SECONDS:
            _log.warning("event loop blocked", extra={"seconds": round(lag, 3)})


_NEVER = 1_000_000_000
_INTERVAL_SECONDS = 1.0
_IDLE_SECONDS = 600.0  # between collections: a request may come just then, and full caches take 80 ms
# Collections of middle-aged objects since the last full one: as many as Python waits for, those after which a server
# that is never idle collects during small requests, and those after which it collects during any. Each follows some
# 7,000 new objects: a call of 50,000 lines makes 150.
_DUE, _URGENT, _OVERDUE = 10, 300, 30_000


def defer_full_collections() -> None:
    """Exclude the objects loaded so far, which live as long as the process, and end automatic full collections.

    Enables the others, which the start of a server disables while it loads. The garbage of a start, some thousand
    objects, is less than the 80 ms of a collection are worth.
    """
    gc.freeze()
    gc.enable()
    youngest, middle, _ = gc.get_threshold()
    gc.set_threshold(youngest, middle, _NEVER)


async def collect_when_idle(is_idle: Callable[[], bool], is_light: Callable[[], bool]) -> None:
    """Collect all garbage now and then, if possible while `is_idle`, else while the running requests are small.

    Free memory then goes back to the operating system. Runs until it is cancelled.
    """
    loop = asyncio.get_running_loop()
    last = loop.time()
    while True:
        await asyncio.sleep(_INTERVAL_SECONDS)
        if is_due(gc.get_count()[2], loop.time() - last, is_idle=is_idle(), is_light=is_light()):
            gc.collect()
            await asyncio.to_thread(return_free_pages)
            last = loop.time()


def is_due(num_waiting: int, seconds: float, *, is_idle: bool, is_light: bool) -> bool:
    """Return whether to collect, by the collections and the seconds since the last full one."""
    if num_waiting >= _URGENT:
        return is_light or num_waiting >= _OVERDUE
    return is_idle and num_waiting >= _DUE and seconds >= _IDLE_SECONDS
