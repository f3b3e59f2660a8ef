"""Generation of texts that are no translations: each text is one source, decoded as it is."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from bundle.manifest import BundleConfig, GenerationTask
from server.interface.decoding_options import NO_OPTIONS, DecodingOptions
from server.interface.engine_client import EngineClient
from server.interface.errors import InvalidRequest
from server.interface.interruption import checkpoint
from server.interface.request import Completion, Request
from server.text.segmentation.sentences import Segment
from server.text.tokenizers.tokenizer import Tokenizer
from server.translation.deadline import Deadline
from server.translation.limits import TranslationLimits
from server.translation.model_defaults import with_model_defaults
from server.translation.sentence_encoder import RequestBuilder, first_in_prefix, first_token
from server.translation.sentence_params import ParamsResolver
from server.translation.source_length import SourceLength
from server.translation.submission import Submission, num_tokens, sentence_tokens
from server.translation.text_stream import Followed, TextStream
from server.translation.token_details import sentence_details
from server.translation.types import Alternative, Translation, TranslationRequest, TranslationResult
from server.translation.worker_threads import runner_for


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


class Generator:
    """Generates texts with one model. `generate` may run many times at once on one event loop."""

    def __init__(
        self, engine: EngineClient, limits: TranslationLimits, tokenizer: Tokenizer, clock: Callable[[], float]
    ) -> None:
        self._engine = engine
        self._limits = limits
        self._tokenizer = tokenizer
        self._clock = clock
        self._config: BundleConfig = engine.bundle.config
        self._length = SourceLength(self._config)

    async def generate(self, request: GenerationRequest, stream: TextStream | None = None) -> GenerationOutcome:
        """Generate a text from each text, for the `stream` too. Cancelling it frees the rows of all of them.

        Raises `InvalidRequest` or `TextTooLong` before anything is decoded, `DeadlineExceeded`, and the errors of
        `EngineClient.generate`.
        """
        arrived = self._clock()
        task = self._task(request)
        request = replace(request, prefix=task.prefix if request.prefix is None else request.prefix)
        options = with_model_defaults(request.options, task.options, self._limits, self._config.shapes)
        sized = TranslationRequest(request.texts, "", "", options, request.timeout_seconds)
        self._limits.check_size(sized)
        self._limits.check_characters(replace(sized, texts=(*request.texts, request.prefix or "")))
        deadline = Deadline.of(self._limits.deadline(sized, arrived), arrived, self._clock)
        run = runner_for(request.num_characters, True, deadline)
        encoded = await run(self._encode, request, sized, deadline)
        if stream is not None:
            for index, (text, each) in enumerate(zip(request.texts, encoded.requests, strict=True)):
                stream.follow(index, [Followed(Segment("", text, ""), each)], self._tokenizer)
        submission = Submission(self._engine, deadline, arrived)
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
        for index, text in enumerate(request.texts):
            checkpoint()
            tokens = builder.tokens((request.prefix or "") + text)
            source = self._length.fitted(index, tokens, truncate=request.truncate)
            if len(source) < len(tokens):
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
