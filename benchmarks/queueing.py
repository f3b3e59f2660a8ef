"""Simulated latency of 1 to 64 replicas behind a balancer, from measured step times, with a table of sizes.

    python -m benchmarks.queueing BUNDLE [--objective 0.5] [--requests 20000]

A replica decodes all its requests together, so each step takes longer the more it has; beyond its rows requests wait.
Arrivals are Poisson. The balancer sends each request to the next replica in turn, to the replica with the fewest
unfinished requests, or to one that the client's key selects (clients have rates as 1, 1/2, 1/3, ...). The step times
are processor times of one thread, so other programs on the machine change them little.
"""

import asyncio
import heapq
import random
import time
from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, count
from pathlib import Path
from statistics import median
from typing import Annotated

import numpy as np
import typer

from bundle.loading import load_bundle
from server.interface.request import Request, SentenceParams, Timings
from server.workers.stepped_engine import SteppedEngine

REPLICAS = (1, 2, 4, 8, 16, 32, 64)
MAX_ROWS = 32
_SOURCE_TOKENS = 20
_STEPS = 24
_SHARE_OF_CAPACITY = (0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95)
_NUM_CLIENTS = 200


@dataclass(frozen=True, slots=True)
class ServiceTimes:
    """Seconds of a step with n requests, `base + per_request * n`, and of encoding one; how many run at once."""

    base: float
    per_request: float
    encode: float
    max_running: int = 32

    def step(self, num_requests: int) -> float:
        """Return the seconds of a step."""
        return self.base + self.per_request * num_requests

    def capacity(self, mean_tokens: float) -> float:
        """Return the requests a second of one replica that is always full."""
        full = self.max_running
        return full / (mean_tokens * self.step(full) + full * self.encode)


def measured(bundle_folder: Path, beam_size: int, repeat: int = 5) -> ServiceTimes:
    """Measure one engine with one thread on sentences of equal length, beam search included; sizes take turns."""
    bundle = load_bundle(bundle_folder)
    engine = SteppedEngine.open(bundle, MAX_ROWS, 4096)
    vocabulary = bundle.config.shapes.vocab_size
    numbers = np.random.default_rng(1)
    counts = [max(1, MAX_ROWS // beam_size // share) for share in (8, 4, 2, 1)]
    seconds: dict[tuple[int, int], list[float]] = {}

    async def run(num_requests: int, num_tokens: int) -> float:
        params = SentenceParams(beam_size=beam_size, min_new_tokens=num_tokens, max_new_tokens=num_tokens)
        end = bundle.config.special_tokens.end_of_sequence
        sources = numbers.integers(1, vocabulary - 1, (num_requests, _SOURCE_TOKENS)).astype(np.int32)
        sources[:, -1] = end
        begun = time.thread_time()
        requests = [Request(source, params, Timings(time.monotonic())) for source in sources]
        call = asyncio.ensure_future(engine.generate(requests))
        await asyncio.sleep(0)
        while engine.has_work:
            engine.step()
        elapsed = time.thread_time() - begun
        await call
        return elapsed

    for _ in range(repeat):
        for num_requests in counts:
            for num_tokens in (1, _STEPS):
                taken = asyncio.run(run(num_requests, num_tokens))
                seconds.setdefault((num_requests, num_tokens), []).append(taken)
    taken_by = {size: median(each) for size, each in seconds.items()}
    steps = [(taken_by[each, _STEPS] - taken_by[each, 1]) / (_STEPS - 1) for each in counts]
    per_request, base = np.polyfit(counts, steps, 1)
    encode = median((taken_by[each, 1] - step) / each for each, step in zip(counts, steps, strict=True))
    return ServiceTimes(float(max(base, 0.0)), float(per_request), max(encode, 0.0), MAX_ROWS // beam_size)


@dataclass(slots=True)
class _Replica:
    """One engine. Every running request advances by the same number of steps; `steps` is that number so far."""

    times: ServiceTimes
    now: float = 0.0
    steps: float = 0.0
    running: list[tuple[float, int]] = field(default_factory=list)  # a heap of (steps at the end, request)
    waiting: deque[tuple[float, int]] = field(default_factory=deque)  # (steps, request)

    @property
    def num_unfinished(self) -> int:
        return len(self.running) + len(self.waiting)

    def add(self, now: float, tokens: float, request: int) -> Iterator[tuple[float, int]]:
        """Accept a request at `now`; yield the requests that ended before, with their times."""
        yield from self.advance(now)
        self.waiting.append((tokens, request))
        self._admit()

    def advance(self, until: float) -> Iterator[tuple[float, int]]:
        """Yield the requests that end until then, with their times."""
        while self.running:
            step = self.times.step(len(self.running))
            end = self.now + (self.running[0][0] - self.steps) * step
            if end > until:
                self.steps += (until - self.now) / step
                break
            self.now, self.steps = end, self.running[0][0]
            yield end, heapq.heappop(self.running)[1]
            self._admit()
        self.now = until

    def _admit(self) -> None:
        while self.waiting and len(self.running) < self.times.max_running:
            tokens, request = self.waiting.popleft()
            # Encoding stops the steps of all; expressed in steps of the present batch.
            delay = self.times.encode / self.times.step(len(self.running) + 1)
            self.running = [(end + delay, other) for end, other in self.running]
            heapq.heapify(self.running)
            heapq.heappush(self.running, (self.steps + delay + tokens, request))


Choice = Callable[[Sequence[_Replica], int], int]  # of a replica, for a client


def round_robin() -> Choice:
    """Return a choice of each replica in turn."""
    turns = count()
    return lambda replicas, _: next(turns) % len(replicas)


def least_outstanding() -> Choice:
    """Return a choice of the replica with the fewest unfinished requests; equal ones take turns."""
    turns = count()

    def choose(replicas: Sequence[_Replica], _: int) -> int:
        turn = next(turns)
        return min(range(len(replicas)), key=lambda i: (replicas[i].num_unfinished, (i - turn) % len(replicas)))

    return choose


def by_key() -> Choice:
    """Return a choice by the client, as of a balancer that hashes keys."""
    return lambda replicas, client: random.Random(client).randrange(len(replicas))  # noqa: S311 - a hash


BALANCERS: dict[str, Callable[[], Choice]] = {
    "round robin": round_robin,
    "least outstanding": least_outstanding,
    "session by key": by_key,
}


def simulate(
    times: ServiceTimes, num_replicas: int, rate: float, choose: Choice, num_requests: int, seed: int = 1
) -> list[float]:
    """Return the latencies of requests after a warm-up, in seconds, sorted."""
    chance = random.Random(seed)  # noqa: S311 - a simulation
    replicas = [_Replica(times) for _ in range(num_replicas)]
    weights = list(accumulate(1 / rank for rank in range(1, _NUM_CLIENTS + 1)))
    arrived: list[float] = []
    latencies = [0.0] * num_requests
    now = 0.0

    def ended(completions: Iterator[tuple[float, int]]) -> None:
        for end, request in completions:
            latencies[request] = end - arrived[request]

    for request in range(num_requests):
        now += chance.expovariate(rate)
        for replica in replicas:
            ended(replica.advance(now))
        client = bisect_left(weights, chance.random() * weights[-1])
        tokens = max(3.0, min(chance.gammavariate(2.5, 6.0), 120.0))
        arrived.append(now)
        ended(replicas[choose(replicas, client)].add(now, tokens, request))
    for replica in replicas:
        ended(replica.advance(float("inf")))
    return sorted(latencies[num_requests // 5 :])


def quantile(latencies: Sequence[float], share: float) -> float:
    """Return a quantile of sorted latencies."""
    return latencies[min(round(share * len(latencies)), len(latencies) - 1)]


def highest_rate(
    times: ServiceTimes, num_replicas: int, balancer: str, objective: float, num_requests: int
) -> tuple[float, float]:
    """Return the highest rate of the grid at which 99 % of requests meet the objective, and its 99th percentile."""
    best = 0.0, float("nan")
    for share in _SHARE_OF_CAPACITY:
        rate = share * num_replicas * times.capacity(15.0)
        latencies = simulate(times, num_replicas, rate, BALANCERS[balancer](), num_requests)
        if (high := quantile(latencies, 0.99)) > objective:
            break
        best = rate, high
    return best


def main(
    bundle_folder: Annotated[Path, typer.Argument(metavar="BUNDLE")],
    objective: Annotated[float, typer.Option(help="seconds that 99 % of requests may take")] = 0.5,
    beam_size: Annotated[int, typer.Option(help="beams of each request")] = 4,
    requests: Annotated[int, typer.Option(help="simulated requests for each cell")] = 20_000,
) -> None:
    """Print the table of sizes."""
    times = measured(bundle_folder, beam_size)
    print(
        f"step {times.base * 1e3:.2f} ms + {times.per_request * 1e3:.3f} ms a sentence, encoder "
        f"{times.encode * 1e3:.2f} ms a sentence; a full replica answers {times.capacity(15.0):.0f} sentences/s\n"
    )
    print(f"Sentences a second, of which 99 % within {objective:g} s (99th percentile in ms):\n")
    print(f"| replicas | {' | '.join(BALANCERS)} |\n|---|{'---|' * len(BALANCERS)}")
    for num_replicas in REPLICAS:
        cells = []
        for balancer in BALANCERS:
            rate, high = highest_rate(times, num_replicas, balancer, objective, requests)
            cells.append(f"{rate:.0f} ({high * 1e3:.0f})")
        print(f"| {num_replicas} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    typer.run(main)
