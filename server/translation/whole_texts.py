"""Embedding, generation and scoring: each text is one source, read as a whole, batched with all other requests."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from bundle.manifest import GenerationTask
from server.interface.decoding_options import NO_OPTIONS, DecodingOptions, DetailOptions
from server.interface.engine_client import EngineClient
from server.interface.errors import InvalidRequest, TextTooLong
from server.interface.interruption import checkpoint
from server.interface.request import Completion, Pooling, Request, SentenceParams, TokenIds, Tokens
from server.text.segmentation.sentences import Segment
from server.text.tokenizers.tokenizer import Tokenizer
from server.translation.assembly import sentence_details
from server.translation.engine_requests import (
    ParamsResolver,
    RequestBuilder,
    first_in_prefix,
    first_token,
    fitted,
    with_model_defaults,
)
from server.translation.execution import Deadline, Runner, runner_for
from server.translation.limits import TranslationLimits
from server.translation.submission import Submission, num_tokens, sentence_tokens
from server.translation.text_stream import Followed, TextStream
from server.translation.types import (
    Alternative,
    Phases,
    SentenceDetails,
    TokenCounts,
    Translation,
    TranslationRequest,
    TranslationResult,
)


@dataclass(frozen=True, slots=True)
class EmbeddingRequest:
    """Texts to embed, each with `prefix` before it. With `truncate`, a text that is too long loses its end."""

    texts: tuple[str, ...]
    pooling: Pooling = "mean"
    normalize: bool = True
    prefix: str = ""
    truncate: bool = False
    timeout_seconds: float | None = None
    bypass_cache: bool = False

    @property
    def num_characters(self) -> int:
        """The number of characters that the model reads."""
        return sum(map(len, self.texts)) + len(self.prefix) * len(self.texts)


@dataclass(frozen=True, slots=True)
class EmbeddingResult:
    """Embeddings [d_model] and numbers of source tokens in the order of the texts; the truncated texts by index."""

    embeddings: list[NDArray[np.float32]]
    num_tokens: list[int]
    truncated: frozenset[int]
    phases: Phases


class _Task:
    """What the tasks share: each runs on one model, and its method may run many times at once on one event loop."""

    def __init__(
        self, engine: EngineClient, limits: TranslationLimits, tokenizer: Tokenizer, clock: Callable[[], float]
    ) -> None:
        self._engine = engine
        self._limits = limits
        self._tokenizer = tokenizer
        self._clock = clock
        self._config = engine.bundle.config

    def _begin(self, sized: TranslationRequest, num_characters: int) -> tuple[Deadline, Runner, Submission]:
        """Return the deadline of a call that arrives now, with the runner for its texts, and its submission."""
        arrived = self._clock()
        deadline = Deadline.of(self._limits.deadline(sized, arrived), arrived, self._clock)
        return deadline, runner_for(num_characters, True, deadline), Submission(self._engine, deadline, arrived)

    def _sources(
        self, builder: RequestBuilder, texts: Sequence[str], prefix: str, *, truncate: bool
    ) -> Iterator[tuple[TokenIds, bool]]:
        """Yield the source of each text behind the prefix, and whether it lost its end."""
        for index, text in enumerate(texts):
            checkpoint()
            tokens = builder.tokens(prefix + text)
            source = fitted(index, tokens, self._config, truncate=truncate)
            yield source, len(source) < len(tokens)


class Embedder(_Task):
    """Embeds texts with one model."""

    async def embed(self, request: EmbeddingRequest) -> EmbeddingResult:
        """Embed all texts. Raises `InvalidRequest` or `TextTooLong`, and the errors of `EngineClient.generate`."""
        sized = TranslationRequest(
            (*request.texts, request.prefix) if request.prefix else request.texts,
            "",
            "",
            timeout_seconds=request.timeout_seconds,
        )
        self._limits.check_size(TranslationRequest(request.texts, "", ""))
        self._limits.check_characters(sized)
        deadline, run, submission = self._begin(sized, request.num_characters)
        requests, truncated = await run(self._requests, request, deadline)
        completions = await submission.submit(requests)
        embeddings = await run(_embeddings, [completions[each.id] for each in requests], request.normalize)
        return EmbeddingResult(embeddings, [len(each.source) for each in requests], truncated, submission.phases)

    def _requests(self, request: EmbeddingRequest, deadline: Deadline) -> tuple[list[Request], frozenset[int]]:
        params = SentenceParams(pooling=request.pooling)
        builder = RequestBuilder(self._tokenizer, "", "", deadline.at, cacheable=not request.bypass_cache)
        sources = list(self._sources(builder, request.texts, request.prefix, truncate=request.truncate))
        truncated = frozenset(index for index, (_, is_truncated) in enumerate(sources) if is_truncated)
        return [builder.request(source, params) for source, _ in sources], truncated


def _embeddings(completions: Iterable[Completion], normalize: bool) -> list[NDArray[np.float32]]:
    found = []
    for completion in completions:
        embedding = completion.hypotheses[0].embedding
        assert embedding is not None, "a request with `pooling` has an embedding"
        length = np.linalg.norm(embedding) if normalize else 0.0
        found.append(embedding / length if length > 0 else embedding)
    return found


@dataclass(frozen=True, slots=True)
class GenerationRequest:
    """Texts to continue from, and options.

    `task` is one that the model names; `prefix` is a text before each of the texts, in place of the model's own. With
    `truncate`, a text that is too long loses its last tokens; otherwise it is rejected.
    """

    texts: tuple[str, ...]
    options: DecodingOptions = NO_OPTIONS
    prefix: str | None = None
    task: str | None = None
    truncate: bool = False
    timeout_seconds: float | None = None
    bypass_cache: bool = False

    @property
    def num_characters(self) -> int:
        """The number of characters that the model reads."""
        return sum(map(len, self.texts)) + len(self.prefix or "") * len(self.texts)


@dataclass(frozen=True, slots=True)
class GenerationOutcome:
    """Generated texts in the order of the request, the model, and the indices of the truncated texts."""

    result: TranslationResult
    model: str
    truncated: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class _Encoded:
    """Requests for the engine, with the same indices as their texts."""

    requests: list[Request]
    options: DecodingOptions
    truncated: frozenset[int]
    seed: int | None


class Generator(_Task):
    """Generates texts with one model."""

    async def generate(self, request: GenerationRequest, stream: TextStream | None = None) -> GenerationOutcome:
        """Generate a text from each text, for the `stream` too. Cancelling it frees the rows of all of them.

        Raises `InvalidRequest` or `TextTooLong` before anything is decoded, `DeadlineExceeded`, and the errors of
        `EngineClient.generate`.
        """
        task = self._task(request)
        request = replace(request, prefix=task.prefix if request.prefix is None else request.prefix)
        options = with_model_defaults(request.options, task.options, self._limits, self._config.shapes)
        sized = TranslationRequest(request.texts, "", "", options, request.timeout_seconds)
        self._limits.check_size(sized)
        self._limits.check_characters(replace(sized, texts=(*request.texts, request.prefix or "")))
        deadline, run, submission = self._begin(sized, request.num_characters)
        encoded = await run(self._encode, request, sized, deadline)
        if stream is not None:
            for index, (text, each) in enumerate(zip(request.texts, encoded.requests, strict=True)):
                stream.follow(index, [Followed(Segment("", text, ""), each)], self._tokenizer)
        completions = await submission.submit(encoded.requests)
        if stream is not None:
            await stream.complete(completions)
        texts = await run(self._texts, encoded, completions)
        tokens = sentence_tokens(completions[each.id] for each in encoded.requests)
        result = TranslationResult(texts, submission.phases, tokens, num_splits=0, seed=encoded.seed)
        return GenerationOutcome(result, self._config.name, encoded.truncated)

    def _task(self, request: GenerationRequest) -> GenerationTask:
        described = self._config.generation
        assert described is not None, "the model was chosen for this task"
        if request.task is None:
            return described
        if request.prefix is not None:
            raise InvalidRequest("`task` cannot be combined with `prefix`: a task has its own prefix")
        if request.task not in described.tasks:
            available = ", ".join(sorted(described.tasks)) or "none; send its text as `prefix`"
            raise InvalidRequest(f"`task` must be one that the model names: {available}. Given: {request.task}")
        return described.tasks[request.task]

    def _encode(self, request: GenerationRequest, sized: TranslationRequest, deadline: Deadline) -> _Encoded:
        config, options = self._config, sized.options
        params = self._limits.sentence_params(sized, config.shapes)
        resolver = ParamsResolver(
            replace(params, first_token=first_token(config, "")), options, self._tokenizer, config.shapes
        )
        cacheable = not request.bypass_cache
        builder = RequestBuilder(self._tokenizer, "", "", deadline.at, cacheable=cacheable)
        requests, truncated = [], set()
        sources = self._sources(builder, request.texts, request.prefix or "", truncate=request.truncate)
        for index, (source, is_truncated) in enumerate(sources):
            if is_truncated:
                truncated.add(index)
            resolved = first_in_prefix(resolver.resolve(index, len(source)), config.shapes)
            requests.append(builder.request(source, resolved))
        return _Encoded(requests, options, frozenset(truncated), params.sampling.seed if params.sampling else None)

    def _texts(self, encoded: _Encoded, completions: Mapping[int, Completion]) -> list[Translation]:
        return [self._text(completions[request.id], encoded.options) for request in encoded.requests]

    def _text(self, completion: Completion, options: DecodingOptions) -> Translation:
        checkpoint()
        source, hypotheses = completion.request.source, completion.hypotheses
        best, *others = hypotheses
        alternatives = [
            Alternative(self._tokenizer.decode(each.token_ids), each.score, each.log_probability) for each in others
        ]
        return Translation(
            self._tokenizer.decode(best.token_ids),
            len(source),
            num_tokens(best),
            best.finish_reason,
            best.score,
            tuple(alternatives),
            best.log_probability,
            (sentence_details(source, best, options, self._tokenizer),) if options.wants_details else (),
        )


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


class Scorer(_Task):
    """Scores translations with one model."""

    async def score(self, request: ScoreRequest) -> ScoreResult:
        """Score all pairs. Raises as `Pipeline.translate` does."""
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
        self._limits.check_details(request.options, self._config.shapes)
        deadline, run, submission = self._begin(everything, everything.num_characters)
        requests = await run(self._requests, request, deadline)
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
        options, shapes = request.options, self._config.shapes
        params = SentenceParams(
            DecodingOptions.of(options).without_resolved().with_changes(return_scores=True),
            return_attention=options.return_attention or options.return_alignments,
            alignment_layer=options.alignment_layer,
        )
        first = first_token(self._config, request.target)
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
