"""Arrival times of requests, fixed before the first is sent and independent of the server."""

import random

import numpy as np
import numpy.typing as npt

from loadtest.workload.scenario import Stage


def arrival_times(stage: Stage, seed: int) -> npt.NDArray[np.float64]:
    """Return the arrivals of an open-loop stage, ascending seconds from its start: shape [requests].

    Poisson arrivals have exponential gaps; a changing rate inverts its integral (Çinlar 1975).
    The same stage and seed give the same instants. Raises `ScenarioInvalid` for closed loops and unknown knees.
    """
    start, end = stage.rates()
    num_expected = (start + end) / 2 * stage.seconds
    if stage.arrivals == "constant":
        arrived = np.arange(np.ceil(num_expected), dtype=np.float64)
    else:
        arrived = _unit_poisson(num_expected, random.Random(f"arrivals/{stage.name}/{seed}"))
    # `arrived` counts expected requests: solve start * t + growth / 2 * t**2 = arrived, without a division by growth.
    growth = (end - start) / stage.seconds
    times: npt.NDArray[np.float64] = 2 * arrived / (start + np.sqrt(np.maximum(start**2 + 2 * growth * arrived, 0)))
    return times[times < stage.seconds]


def _unit_poisson(until: float, rng: random.Random) -> npt.NDArray[np.float64]:
    """Return the arrivals of a Poisson process of rate 1 before `until`."""
    arrived, now = [], rng.expovariate(1.0)
    while now < until:
        arrived.append(now)
        now += rng.expovariate(1.0)
    return np.array(arrived, dtype=np.float64)
