"""A server that reports how long its event loop was held, for `python -m tests.faults.loop_holds`.

A clock in the loop ticks every 5 ms. A late tick counts as a hold, but for no more than the processor time that the
process took meanwhile: other processes on the machine delay ticks as well.
"""

import asyncio
import gc
import json
import os
import runpy
import sys
import threading
import time
from collections import Counter, deque
from collections.abc import Callable
from types import FrameType

import server.http.app

_TICK_SECONDS = 0.005
_SHOWN_FRAMES = 6
_IDLE = ("wait", "select", "_worker", "_send_rest", "run")  # threads that wait, and the loop between callbacks
STACKS_VARIABLE = "WATCHED_STACKS"  # 1: report what the threads were doing during holds


class StackSampler:
    """Innermost frames of all threads, sampled every 2 ms by a thread of its own."""

    def __init__(self) -> None:
        self._samples: deque[tuple[float, str]] = deque(maxlen=20_000)
        threading.Thread(target=self._sample, daemon=True).start()

    def _sample(self) -> None:
        own = threading.get_ident()
        while True:
            time.sleep(0.002)
            now = time.perf_counter()
            for number, frame in sys._current_frames().items():
                if number != own and frame.f_code.co_name not in _IDLE:
                    self._samples.append((now, _shown(frame)))

    def between(self, begun: float, ended: float) -> list[str]:
        """Return the most frequent frames of a period."""
        counts = Counter(shown for moment, shown in list(self._samples) if begun <= moment <= ended)
        return [f"{count} x {shown}" for shown, count in counts.most_common(4)]


def _shown(frame: FrameType | None) -> str:
    frames: list[str] = []
    while frame is not None and len(frames) < _SHOWN_FRAMES:
        frames.append(f"{frame.f_code.co_filename.rpartition('/')[2]}:{frame.f_lineno} {frame.f_code.co_name}")
        frame = frame.f_back
    return " < ".join(frames)


class HoldClock:
    """The longest hold of the event loop since the last call of `take`, and what the threads were doing."""

    def __init__(self) -> None:
        self._longest = self._collection_began = 0.0
        self._stacks: list[str] = []
        self._sampler = StackSampler() if os.environ.get(STACKS_VARIABLE) else None
        self._collections: deque[tuple[float, float]] = deque(maxlen=100)
        gc.callbacks.append(self._on_collection)

    def _on_collection(self, phase: str, _: dict[str, int]) -> None:
        now = time.perf_counter()
        if phase == "start":
            self._collection_began = now
        else:
            self._collections.append((now, now - self._collection_began))

    async def tick(self) -> None:
        """Measure until cancelled."""
        while True:
            wall, cpu = time.perf_counter(), time.process_time()
            await asyncio.sleep(_TICK_SECONDS)
            now = time.perf_counter()
            held = min(now - wall - _TICK_SECONDS, time.process_time() - cpu)
            if held > self._longest:
                self._longest = held
                self._stacks = [] if self._sampler is None else self._sampler.between(wall, now)
                collecting = sum(seconds for ended, seconds in list(self._collections) if wall <= ended <= now)
                if collecting > _TICK_SECONDS:
                    self._stacks.append(f"{collecting * 1000:.0f} ms of garbage collection")

    def take(self) -> tuple[float, list[str]]:
        """Return the longest hold in seconds with its stacks, and begin again."""
        taken = self._longest, self._stacks
        self._longest, self._stacks = 0.0, []
        return taken


async def _watch(observe: Callable[[float], None]) -> None:
    """Report the longest hold of each tenth of a second on standard error."""
    clock = HoldClock()
    ticking = asyncio.create_task(clock.tick())
    try:
        while True:
            await asyncio.sleep(0.1)
            held, stacks = clock.take()
            observe(held)
            if held > 0.01:
                sys.stderr.write(json.dumps({"message": "hold", "seconds": round(held, 4), "stacks": stacks}) + "\n")
                sys.stderr.flush()
    finally:
        ticking.cancel()


if __name__ == "__main__":
    vars(server.http.app)["watch_event_loop"] = _watch
    runpy.run_module("kvasir", run_name="__main__")
