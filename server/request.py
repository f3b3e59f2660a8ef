"""What travels between the translator and the engine: one sentence to decode, and what came of it."""

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import count

import numpy as np
from numpy.typing import NDArray

TokenIds = NDArray[np.int32]

# Is told, on the event loop's thread, the tokens that a request's best answer is certain to begin with, each time from
# the first one on, and whether they are all of it.
ProgressListener = Callable[[list[int], bool], None]

_request_ids = count()


class FinishReason(StrEnum):
    """Why a request ended."""

    STOP = "stop"  # every returned hypothesis ended with the end-of-sequence token
    LENGTH = "length"  # the best hypothesis was ended by max_new_tokens
    CANCELLED = "cancelled"
    DEADLINE = "deadline"


@dataclass(frozen=True, slots=True)
class GenerationParams:
    """How one request is decoded. Values are checked where they enter the house, not here.

    `max_new_tokens` counts the end-of-sequence token and not the start token. `length_penalty` is the
    exponent of the hypothesis length in the beam score: log-probability / num_tokens ** length_penalty.
    """

    beam_size: int = 1
    length_penalty: float = 1.0
    max_new_tokens: int = 256
    num_hypotheses: int = 1
    early_stopping: bool = False
    return_scores: bool = False


@dataclass(slots=True)
class Timings:
    """When a request passed each station, in seconds of one monotonic clock."""

    arrived: float
    admitted: float = 0.0
    encoded: float = 0.0
    seated: float = 0.0
    first_token: float = 0.0
    finished: float = 0.0

    @property
    def queue_seconds(self) -> float:
        """Waiting for an encoder run and then for rows (to the end, for a request that never got them)."""
        if not self.admitted:
            return self.finished - self.arrived
        waited_for_rows = (self.seated or self.finished) - self.encoded if self.encoded else 0.0
        return self.admitted - self.arrived + waited_for_rows

    @property
    def encode_seconds(self) -> float:
        """The encoder run this request shared, 0 when it was never admitted."""
        return max(self.encoded - self.admitted, 0.0)

    @property
    def decode_seconds(self) -> float:
        """All decoder steps, from getting its rows to the last token."""
        return self.finished - self.seated if self.seated else 0.0


@dataclass(frozen=True, slots=True)
class Hypothesis:
    """One decoded answer. `token_ids` holds neither the start nor the end-of-sequence token.

    `log_probability` is the sum over all generated tokens, the end-of-sequence token among them; `score` is
    what the search ranked by. Both are NaN for a greedy request that did not ask for scores.
    """

    token_ids: list[int]
    log_probability: float
    score: float
    finish_reason: FinishReason


@dataclass(slots=True, eq=False)
class Request:
    """One sentence for the engine. `source` [source_len] ends with the end-of-sequence token.

    `on_progress` hears of it while it is decoded; a request without costs the engine nothing for it.
    """

    source: TokenIds
    params: GenerationParams
    timings: Timings
    deadline: float | None = None
    on_progress: ProgressListener | None = None
    id: int = field(default_factory=lambda: next(_request_ids))


@dataclass(frozen=True, slots=True)
class Completion:
    """A request that left the engine: its hypotheses, best first (none if cancelled or expired), or what failed it."""

    request: Request
    hypotheses: list[Hypothesis]
    finish_reason: FinishReason
    error: Exception | None = None
