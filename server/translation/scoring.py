"""Scoring of given translations by teacher forcing, batched with all other requests."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from server.interface.decoding_options import NO_OPTIONS, DecodingOptions, DetailOptions
from server.interface.engine_client import EngineClient
from server.interface.errors import InvalidRequest, TextTooLong
from server.interface.interruption import checkpoint
from server.interface.request import Completion, Request, SentenceParams, Tokens
from server.text.tokenizers.tokenizer import Tokenizer
from server.translation.deadline import Deadline
from server.translation.limits import TranslationLimits
from server.translation.sentence_encoder import RequestBuilder, first_token
from server.translation.submission import Submission, sentence_tokens
from server.translation.token_counts import TokenCounts
from server.translation.token_details import sentence_details
from server.translation.types import Phases, SentenceDetails, TranslationRequest
from server.translation.worker_threads import runner_for


@dataclass(frozen=True, slots=True)
class ScoreRequest:
    """Texts and their translations. Each text is one sentence."""

    texts: tuple[str, ...]
    translations: tuple[str, ...]
    source: str
    target: str
    options: DetailOptions = NO_OPTIONS
    timeout_seconds: float | None = None


@dataclass(frozen=True, slots=True)
class Score:
    """The score of one translation: log-probability / num_tokens ** length_penalty; the end counts."""

    log_probability: float
    score: float
    num_tokens: int
    details: SentenceDetails | None


@dataclass(frozen=True, slots=True)
class ScoreResult:
    """The scores in the order of the texts, and the numbers for metrics and logs."""

    scores: list[Score]
    phases: Phases
    sentence_tokens: TokenCounts


class Scorer:
    """Scores translations with one model. `score` may run many times at once on one event loop."""

    def __init__(
        self, engine: EngineClient, limits: TranslationLimits, tokenizer: Tokenizer, clock: Callable[[], float]
    ) -> None:
        self._engine = engine
        self._limits = limits
        self._tokenizer = tokenizer
        self._clock = clock

    async def score(self, request: ScoreRequest) -> ScoreResult:
        """Score all pairs. Raises as `Pipeline.translate` does."""
        arrived = self._clock()
        if len(request.texts) != len(request.translations):
            raise InvalidRequest(
                "`translation` must have one entry for each text. "
                f"Given: {len(request.translations)} for {len(request.texts)} texts"
            )
        everything = TranslationRequest(
            (*request.texts, *request.translations),
            request.source,
            request.target,
            timeout_seconds=request.timeout_seconds,
        )
        self._limits.check_characters(everything)
        self._limits.check_size(replace(everything, texts=request.texts))
        self._limits.check_details(request.options, self._engine.bundle.config.shapes)
        deadline = Deadline.of(self._limits.deadline(everything, arrived), arrived, self._clock)
        run = runner_for(everything.num_characters, True, deadline)
        requests = await run(self._requests, request, deadline)
        submission = Submission(self._engine, deadline, arrived)
        completions = await submission.submit(requests)
        scores = await run(self._scores, completions.values(), request.options)
        return ScoreResult(scores, submission.phases, sentence_tokens(completions.values()))

    def _scores(self, completions: Iterable[Completion], options: DetailOptions) -> list[Score]:
        scores = []
        for completion in completions:
            checkpoint()
            [hypothesis] = completion.hypotheses
            details = None
            if options.wants_details:
                details = sentence_details(completion.request.source, hypothesis, options, self._tokenizer)
            num_tokens = len(completion.request.params.forced_target)
            scores.append(Score(hypothesis.log_probability, hypothesis.score, num_tokens, details))
        return scores

    def _requests(self, request: ScoreRequest, deadline: Deadline) -> list[Request]:
        options, shapes = request.options, self._engine.bundle.config.shapes
        params = SentenceParams(
            DecodingOptions.of(options).without_resolved().with_changes(return_scores=True),
            return_attention=options.return_attention or options.return_alignments,
            alignment_layer=options.alignment_layer,
        )
        first = first_token(self._engine.bundle.config, request.target)
        builder = RequestBuilder(self._tokenizer, request.source, request.target, deadline.at)
        requests = []
        for number, (text, translation) in enumerate(zip(request.texts, request.translations, strict=True)):
            checkpoint()
            source = builder.tokens(text)
            target: Tokens = (*self._tokenizer.encode_target(translation), self._tokenizer.end_token)
            target = target if first is None else (first, *target)
            for name, length, limit in (
                ("text", len(source), shapes.max_source_tokens),
                ("translation", len(target), shapes.max_target_tokens),
            ):
                if length > limit:
                    raise TextTooLong(
                        f"{name} {number} must have at most {limit} tokens with this model. Given: {length}"
                    )
            requests.append(builder.request(source, replace(params, forced_target=target, first_token=first)))
        return requests
