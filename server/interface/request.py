"""Requests to the engine, each for one sentence, and their completions."""

import secrets
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, fields
from enum import StrEnum
from itertools import count
from operator import attrgetter
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from bundle.manifest import Shapes
from server.interface.decoding_options import MAX_SEED, NO_OPTIONS, DecodingOptions
from server.interface.errors import InvalidRequest

TokenIds = NDArray[np.int32]
Tokens = tuple[int, ...]  # hashable
Pooling = Literal["mean", "first", "eos"]
"""Hidden states in an embedding: the mean of all, that of the first token, or that of the end-of-sequence token."""

# Called on the thread of the event loop, with all tokens that are final so far, and whether the request is complete.
ProgressListener = Callable[[list[int], bool], None]

_request_ids = count()


class FinishReason(StrEnum):
    """The reason why a request ended."""

    STOP = "stop"  # every returned hypothesis ended with the end-of-sequence token
    LENGTH = "length"  # max_new_tokens ended the best hypothesis
    REPETITION = "repetition"  # max_repetitions ended a loop in the best hypothesis
    CANCELLED = "cancelled"
    DEADLINE = "deadline"

    @classmethod
    def of_all(cls, reasons: "Iterable[FinishReason]") -> "FinishReason":
        """Combine the finish reasons of sentences: repetition outranks length, length outranks stop."""
        found = set(reasons)
        return next((reason for reason in (cls.REPETITION, cls.LENGTH) if reason in found), cls.STOP)


@dataclass(frozen=True, slots=True)
class Sampling:
    """Parameters of sampling from softmax(logits / temperature), restricted by each filter in this order.

    `top_k` keeps the k most likely tokens (0: all), `top_p` the most likely ones that together reach this probability,
    `min_p` those of at least this probability relative to the most likely one. A token depends on `seed`, the number
    of the sample and the position only.
    """

    temperature: float = 1.0
    top_k: int = 0
    top_p: float = 1.0
    min_p: float = 0.0
    seed: int = 0

    @classmethod
    def of(cls, options: DecodingOptions) -> "Sampling | None":
        """Return how tokens are sampled, with a random seed where the options have none; None if they are not."""
        if not options.is_sampling:
            return None
        return cls(
            temperature=1.0 if options.temperature is None else options.temperature,
            top_k=options.top_k or 0,
            top_p=1.0 if options.top_p is None else options.top_p,
            min_p=options.min_p or 0.0,
            seed=secrets.randbelow(MAX_SEED + 1) if options.seed is None else options.seed,
        )


@dataclass(frozen=True, slots=True)
class SentenceParams:
    """How one sentence is decoded: the options of its request, and what they come to for this sentence.

    `options` hold the defaults of the options that have a field here (`DecodingOptions.without_resolved`).
    `max_new_tokens` counts the end-of-sequence token and not the start token; `min_new_tokens` counts neither. Neither
    counts `target_prefix`, which every hypothesis begins with. `length_penalty` is the exponent of the hypothesis
    length in the beam score: log-probability / num_tokens ** length_penalty. `first_token`, of a language, begins every
    hypothesis at no cost; it counts as generated. `forced_target` asks for the score of these tokens, the end included,
    instead of a translation, and `pooling` for an embedding of the source. Each of the `required_terms` has
    alternatives, any one of which is enough. `uses_shortlist` restricts the tokens to those of the model's shortlist,
    unless another option needs all of them.
    """

    options: DecodingOptions = NO_OPTIONS
    beam_size: int = 1
    num_hypotheses: int = 1
    max_new_tokens: int = 256
    min_new_tokens: int = 0
    sampling: Sampling | None = None
    first_token: int | None = None
    target_prefix: Tokens = ()
    required_phrases: tuple[Tokens, ...] = ()
    required_terms: tuple[tuple[Tokens, ...], ...] = ()
    suppress_phrases: tuple[Tokens, ...] = ()
    return_attention: bool = False
    alignment_layer: int = -1
    forced_target: Tokens = ()
    pooling: Pooling | None = None
    uses_shortlist: bool = False
    _hash: int | None = field(default=None, init=False, repr=False, compare=False)

    def __hash__(self) -> int:
        # Kept: one value serves many sentences, and the sentence cache hashes it several times for each.
        if self._hash is None:
            object.__setattr__(self, "_hash", hash(_COMPARED(self)))
        return self._hash  # type: ignore[return-value]  # set above

    @property
    def decodes_independently(self) -> bool:
        """Whether each hypothesis is decoded by itself, without beams."""
        return self.sampling is not None or self.options.return_alternatives

    @property
    def required_groups(self) -> tuple[tuple[Tokens, ...], ...]:
        """All required phrases and terms: a phrase is a group without alternatives."""
        return (*((phrase,) for phrase in self.required_phrases), *self.required_terms)

    @property
    def num_rows(self) -> int:
        """Rows that a request takes: one for each beam, sample or alternative."""
        # Not `decodes_independently`: the engine reads this ten times for each request.
        is_independent = self.sampling is not None or self.options.return_alternatives
        return self.num_hypotheses if is_independent else self.beam_size


_COMPARED = attrgetter(*(each.name for each in fields(SentenceParams) if each.compare))


def num_hypotheses_held(patience: float, beam_size: int) -> int:
    """Return how many complete hypotheses end a beam search: beam_size * patience, halves rounded up."""
    return max(int(beam_size * patience + 0.5), 1)


@dataclass(slots=True)
class Timings:
    """Times at which a request reached each stage, in seconds of one monotonic clock."""

    arrived: float
    admitted: float = 0.0
    encoded: float = 0.0
    assigned: float = 0.0
    first_token: float = 0.0
    finished: float = 0.0

    @property
    def queue_seconds(self) -> float:
        """Time spent waiting for an encoder run and for rows; until the end if no rows were assigned."""
        if not self.admitted:
            return self.finished - self.arrived
        waited_for_rows = (self.assigned or self.finished) - self.encoded if self.encoded else 0.0
        return self.admitted - self.arrived + waited_for_rows

    @property
    def encode_seconds(self) -> float:
        """Time of the encoder run of this request; 0 if it was not admitted."""
        return max(self.encoded - self.admitted, 0.0)

    @property
    def decode_seconds(self) -> float:
        """Time from the assignment of rows to the last token."""
        return self.finished - self.assigned if self.assigned else 0.0


@dataclass(frozen=True, slots=True)
class TokenDetails:
    """Details of the tokens of a hypothesis. The end-of-sequence token is last if it was generated.

    `log_probabilities` are the model's. `alternatives` are the most likely tokens at each position with their
    log-probabilities, best first, if requested. `attention` [num_tokens, source_len] is the mean of the heads.
    """

    log_probabilities: list[float]
    alternatives: list[list[tuple[int, float]]]
    attention: NDArray[np.float32] | None


@dataclass(frozen=True, slots=True)
class Hypothesis:
    """One decoded translation. `token_ids` contains neither the start nor the end-of-sequence token.

    `log_probability` is the model's, summed over all generated tokens including the end-of-sequence token; the search
    ranks by `score`. Both are NaN for a greedy request without scores. A request with `pooling` has one hypothesis
    without tokens, with the `embedding` [d_model] of its source.
    """

    token_ids: list[int]
    log_probability: float
    score: float
    finish_reason: FinishReason
    details: TokenDetails | None = None
    embedding: NDArray[np.float32] | None = None

    def __reduce__(self) -> tuple[type["Hypothesis"], tuple[object, ...]]:
        # Dataclasses that are frozen and have slots are pickled field by field in Python: three times as slow.
        return Hypothesis, _HYPOTHESIS_FIELDS(self)


_HYPOTHESIS_FIELDS = attrgetter(*(each.name for each in fields(Hypothesis)))


@dataclass(slots=True, eq=False)
class Request:
    """One sentence for the engine. `source` [source_len] ends with the end-of-sequence token.

    `on_progress` receives final tokens while the sentence is decoded, and `on_completed` the completion, if it has an
    answer, before those of the other requests of its call. A request that is not `cacheable` is decoded by itself,
    without the cache. `accepted_earlier` marks a later request of an accepted call: a full queue does not reject it. A
    request of a further round queues as if it had arrived at `round_of`, with the first round of its call, and not
    behind the rest of that. `was_retried` marks a request whose engine died once; `num_streamed` counts the tokens that
    `on_progress` received.
    """

    source: TokenIds
    params: SentenceParams
    timings: Timings
    deadline: float | None = None
    on_progress: ProgressListener | None = None
    on_completed: "Callable[[Completion], None] | None" = None
    cacheable: bool = True
    accepted_earlier: bool = False
    round_of: float | None = None
    was_retried: bool = False
    num_streamed: int = 0
    id: int = field(default_factory=lambda: next(_request_ids))

    @property
    def is_followed(self) -> bool:
        """Whether anything of its answer is awaited before its call is complete."""
        return self.on_progress is not None or self.on_completed is not None

    def check_tokens(self, shapes: Shapes) -> None:
        """Raise `InvalidRequest` for tokens outside the vocabulary, and for too many or too few tokens.

        Tokenizers never produce such tokens. An int8 graph would read a wrong row for them.
        """
        sides = (
            ("source", self.source, shapes.vocab_size, shapes.max_source_tokens),
            ("target_prefix", self.params.target_prefix, shapes.target_vocab_size, shapes.max_target_tokens - 1),
            ("forced_target", self.params.forced_target, shapes.target_vocab_size, shapes.max_target_tokens),
        )
        for name, tokens, vocab_size, most in sides:
            fewest = int(name == "source")
            if not fewest <= len(tokens) <= most:
                raise InvalidRequest(
                    f"`{name}` must have {fewest} to {most} tokens with this model. Given: {len(tokens)}"
                )
            if len(tokens) and _largest(tokens) >= vocab_size:
                least, largest = int(np.min(tokens)), int(np.max(tokens))
                wrong = least if least < 0 else largest
                raise InvalidRequest(
                    f"tokens of `{name}` must be from 0 to {vocab_size - 1} with this model. Given: {wrong}"
                )


def check_all_tokens(requests: Sequence[Request], shapes: Shapes) -> None:
    """Raise the error of `Request.check_tokens` for the first request that has one.

    All sources are searched at once where no request has other tokens: NumPy takes microseconds for each search.
    """
    are_unusual = any(
        request.params.target_prefix
        or request.params.forced_target
        or not 0 < len(request.source) <= shapes.max_source_tokens
        for request in requests
    )
    if not are_unusual and len(requests) > 1:
        tokens = np.concatenate([request.source for request in requests])
        if _largest(tokens) < shapes.vocab_size:
            return
    for request in requests:
        request.check_tokens(shapes)


def _largest(tokens: TokenIds | Tokens) -> int:
    """Return the largest token; a negative one counts as larger than all others, so that one search finds both."""
    array = np.asarray(tokens)
    return int(array.view(np.dtype(f"u{array.itemsize}")).max())


@dataclass(frozen=True, slots=True)
class Completion:
    """The result of a request: hypotheses, best first (none if cancelled or expired), or an error."""

    request: Request
    hypotheses: list[Hypothesis]
    finish_reason: FinishReason
    error: Exception | None = None

    def report(self) -> None:
        """Pass the answer to the listeners of the request, on the event loop's thread."""
        if self.request.on_progress is not None:
            self.request.on_progress(self.hypotheses[0].token_ids, True)
        if self.request.on_completed is not None:
            self.request.on_completed(self)
