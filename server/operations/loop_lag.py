"""Watchdog of the event loop: how late it runs what is due."""

import asyncio
import logging
from collections.abc import Callable

_log = logging.getLogger("kvasir")

_INTERVAL_SECONDS = 0.25
_WARNING_SECONDS = 1.0


async def watch_event_loop(observe: Callable[[float], None]) -> None:
    """Call `observe` with the lag in seconds, several times a second. Runs until it is cancelled."""
    loop = asyncio.get_running_loop()
    while True:
        due = loop.time() + _INTERVAL_SECONDS
        await asyncio.sleep(_INTERVAL_SECONDS)
        lag = max(loop.time() - due, 0.0)
        observe(lag)
        if lag >= _WARNING_SECONDS:
            _log.warning("event loop blocked", extra={"seconds": round(lag, 3)})
