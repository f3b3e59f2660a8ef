"""An engine's first sentence, before anybody waits for one."""

import time
from collections.abc import Callable

import numpy as np

from server.engine.engine import Engine
from server.interface.request import Request, SentenceParams, Timings


def warm_up(engine: Engine, submit: Callable[[Request], None]) -> None:
    """Decode the empty sentence, so that the first user does not pay for first-time work.

    `submit` hands it to whom the engine asks for work. Raises `EngineFailed` when the engine cannot decode it.
    """
    source = np.array([engine.limits.end_token], np.int32)
    submit(Request(source, SentenceParams(max_new_tokens=2), Timings(time.monotonic())))
    while not (completions := engine.step().completions):
        pass
    if (error := completions[0].error) is not None:
        raise error
