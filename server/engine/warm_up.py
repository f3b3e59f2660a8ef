"""Warm-up of an engine, before it receives requests."""

import time
from collections.abc import Callable, Sequence

import numpy as np

from server.engine.engine import Engine
from server.interface.request import Request, SentenceParams, Timings


def warm_up(engine: Engine, submit: Callable[[Sequence[Request]], object]) -> None:
    """Decode or embed the empty sentence, so that the first request does not pay for one-time work.

    `submit` queues it in the engine's source of requests. Raises `EngineFailed` if the engine cannot decode it.
    """
    source = np.array([engine.limits.end_token], np.int32)
    params = SentenceParams(max_new_tokens=2, pooling=None if engine.has_decoder else "mean")
    submit([Request(source, params, Timings(time.monotonic()))])
    while not (completions := engine.step().completions):
        pass
    if (error := completions[0].error) is not None:
        raise error
