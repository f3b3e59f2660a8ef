"""What is asked of a translator, what comes back, and how much may be asked."""

from dataclasses import dataclass

from export.bundle import Shapes
from server.errors import InvalidRequest, TextTooLong
from server.request import FinishReason, GenerationParams

MAX_BEAM_SIZE = 8  # of any server
MAX_LENGTH_PENALTY = 10.0  # of either sign


@dataclass(frozen=True, slots=True)
class TranslationRequest:
    """Texts to translate and how; None leaves the choice to the server.

    `source` and `target` are languages of the model's bundle. `max_new_tokens` counts for each sentence, by default
    what the model can write.
    """

    texts: tuple[str, ...]
    source: str
    target: str
    beam_size: int | None = None
    length_penalty: float = 1.0
    max_new_tokens: int | None = None
    num_hypotheses: int = 1
    early_stopping: bool = False
    return_scores: bool = False
    timeout_seconds: float | None = None

    @property
    def num_characters(self) -> int:
        """Characters of all texts together."""
        return sum(map(len, self.texts))


@dataclass(frozen=True, slots=True)
class Alternative:
    """One whole translation of a text. `score` is NaN unless scores were asked for."""

    text: str
    score: float


@dataclass(frozen=True, slots=True)
class Translation:
    """What became of one text.

    Tokens count the end-of-sequence token of every sentence. `finish_reason` is LENGTH if any sentence ended so.
    `score` is the sentence's score; of several sentences the mean, weighted by their target tokens. `alternatives`
    are the second and further hypotheses: the i-th joins the i-th hypothesis of every sentence (the last there is,
    where a sentence has fewer).
    """

    text: str
    source_tokens: int
    target_tokens: int
    finish_reason: FinishReason
    score: float
    alternatives: tuple[Alternative, ...] = ()


@dataclass(frozen=True, slots=True)
class Phases:
    """Where the time of a request went. All but the first are the longest of its sentences, which share steps."""

    tokenize_seconds: float = 0.0
    queue_seconds: float = 0.0
    encode_seconds: float = 0.0
    decode_seconds: float = 0.0
    time_to_first_token_seconds: float = 0.0

    def by_name(self) -> dict[str, float]:
        """The four that answers and logs carry, in seconds, by the names they have there."""
        return {
            "tokenize": self.tokenize_seconds,
            "queue": self.queue_seconds,
            "encode": self.encode_seconds,
            "decode": self.decode_seconds,
        }


@dataclass(frozen=True, slots=True)
class TranslationResult:
    """The translations in the order of the texts, and the numbers that metrics and logs want."""

    translations: list[Translation]
    phases: Phases
    sentence_tokens: list[tuple[int, int]]  # source and target tokens of every sentence that was decoded
    num_splits: int  # places where a sentence was divided because the model takes no longer ones


@dataclass(frozen=True, slots=True)
class TranslationLimits:
    """How much one request may ask for, and what it gets where it does not ask. None is no limit."""

    max_texts: int | None = None
    max_text_characters: int | None = None
    max_beam_size: int = MAX_BEAM_SIZE
    default_beam_size: int = 4
    max_timeout_seconds: float | None = None

    def check_size(self, request: TranslationRequest) -> None:
        """Raise `InvalidRequest` or `TextTooLong` for more text than one request may hold."""
        if self.max_texts is not None and len(request.texts) > self.max_texts:
            raise InvalidRequest(
                f"{len(request.texts)} texts in one request; this server takes {self.max_texts}: send them in parts"
            )
        if self.max_text_characters is not None and request.num_characters > self.max_text_characters:
            raise TextTooLong(
                f"{request.num_characters} characters in one request; this server takes {self.max_text_characters}: "
                "send them in parts"
            )

    def generation_params(self, request: TranslationRequest, shapes: Shapes) -> GenerationParams:
        """How to decode each sentence; raises `InvalidRequest` for what this server or this model does not do."""
        beam_size = request.beam_size
        if beam_size is None:
            # Whoever wants several hypotheses and says nothing of beams wants as many beams as that takes.
            beam_size = max(self.default_beam_size, min(request.num_hypotheses, self.max_beam_size))
        max_new_tokens = shapes.max_target_tokens if request.max_new_tokens is None else request.max_new_tokens
        _check_range("beam_size", beam_size, self.max_beam_size, "on this server")
        _check_range("max_new_tokens", max_new_tokens, shapes.max_target_tokens, "with this model")
        _check_range("num_hypotheses", request.num_hypotheses, beam_size, f"with a beam_size of {beam_size}")
        if not abs(request.length_penalty) <= MAX_LENGTH_PENALTY:
            raise InvalidRequest(
                f"length_penalty is {request.length_penalty:g}; "
                f"it must be from {-MAX_LENGTH_PENALTY:g} to {MAX_LENGTH_PENALTY:g}"
            )
        return GenerationParams(
            beam_size=beam_size,
            length_penalty=request.length_penalty,
            max_new_tokens=max_new_tokens,
            num_hypotheses=request.num_hypotheses,
            early_stopping=request.early_stopping,
            return_scores=request.return_scores,
        )

    def deadline(self, request: TranslationRequest, arrived: float) -> float | None:
        """When the request's time is up, on the clock of `arrived`; None without any limit."""
        limit = self.max_timeout_seconds
        timeout_seconds = limit if request.timeout_seconds is None else request.timeout_seconds
        if timeout_seconds is None:
            return None
        if not timeout_seconds > 0 or (limit is not None and timeout_seconds > limit):
            upper = "" if limit is None else f" and at most {limit:g} on this server"
            raise InvalidRequest(f"timeout_seconds is {timeout_seconds:g}; it must be more than 0{upper}")
        return arrived + timeout_seconds


def _check_range(name: str, value: int, limit: int, where: str) -> None:
    if not 1 <= value <= limit:
        raise InvalidRequest(f"{name} is {value}; it must be from 1 to {limit} {where}")
