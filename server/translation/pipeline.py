"""The text pipeline of one model: read, segment, mask, encode, decode, restore, join."""

import time
from collections.abc import Callable

from server.interface.engine_client import EngineClient
from server.text.spans import Span
from server.text.tokenizers.registry import open_tokenizer
from server.translation.assembly import assemble
from server.translation.attempts import Attempts, copying_of
from server.translation.engine_requests import SentenceEncoder
from server.translation.execution import INLINE_CHARACTERS, Deadline
from server.translation.formality_choice import FormalityChoice
from server.translation.limits import TranslationLimits
from server.translation.quality import QualityCheck
from server.translation.reading import TextReader
from server.translation.repairs import Repairs
from server.translation.submission import Submission
from server.translation.text_stream import TextOutput, TextStream
from server.translation.types import TranslationRequest, TranslationResult
from server.translation.whole_texts import Embedder, Generator, Scorer


class Pipeline:
    """Translates texts with one model. `translate` may run many times at once on one event loop."""

    def __init__(
        self,
        engine: EngineClient,
        limits: TranslationLimits,
        clock: Callable[[], float] = time.monotonic,
        *,
        inline_characters: float = INLINE_CHARACTERS,
    ) -> None:
        """Open the tokenizer. Texts of more than `inline_characters` are processed in threads."""
        self.engine, self.limits = engine, limits
        self._clock = clock
        self.bundle = engine.bundle
        self.tokenizer = open_tokenizer(self.bundle)
        self._config = config = self.bundle.config
        self._copying = copying_of(config, self.tokenizer)
        self.masks = self._copying.masks  # which can stand for spans
        languages = (*config.source_languages, *config.target_languages)
        self._reader = TextReader(self.tokenizer, config.shapes, languages, inline_characters, self._copying.lost_signs)
        self.scorer = Scorer(engine, limits, self.tokenizer, clock)
        self.embedder = Embedder(engine, limits, self.tokenizer, clock)
        self.generator = Generator(engine, limits, self.tokenizer, clock)

    def masked_spans(self, text: str) -> list[Span]:
        """Return the machine-readable spans of a text that the model does not copy."""
        return [span for span in self._reader.spans(text) if span.kind not in self._copying.copied]

    async def translate(self, request: TranslationRequest, stream: TextStream | None = None) -> TranslationResult:
        """Translate all texts, in their order, for the `stream` too. Cancelling it frees the rows of all its sentences.

        Raises `InvalidRequest` or `TextTooLong` before anything is decoded, `DeadlineExceeded`, and the errors of
        `EngineClient.generate`.
        """
        arrived = self._clock()
        self.limits.check_size(request)
        deadline = Deadline.of(self.limits.deadline(request, arrived), arrived, self._clock)
        quality = self._quality(request, is_streamed=stream is not None)
        encoder = SentenceEncoder(request, self.limits, self.tokenizer, self._config, deadline.at)
        submission = Submission(self.engine, deadline, arrived, accepted_earlier=request.accepted_earlier)
        async with deadline.interrupts():
            texts = await self._reader.read(request, deadline, keeps_target=self._keeps_target(request))
            output = TextOutput(stream, texts, self.tokenizer)
            repairs = Repairs.of(request, self.limits, self._config)
            await Attempts(request, texts, encoder, submission, output, self.tokenizer, self._copying, repairs).decode()
            qualities = {} if quality is None else await texts.run(quality.assess, deadline.in_time(texts.sentences))
            result = await texts.run(assemble, texts, request, self.tokenizer, submission.phases, encoder.seed)
            if quality is not None:
                result = await texts.run(quality.with_qualities, result, qualities)
            if (choice := FormalityChoice.of(request)) is not None:
                result = choice.with_mismatches(result, texts.texts)
            deadline.check()
        output.assembled(result.translations)
        return result

    def _keeps_target(self, request: TranslationRequest) -> bool:
        if request.language_is_detected or request.options.is_about_whole_texts:
            return False
        return self.limits.keeps_target(request.options)

    def check(self, request: TranslationRequest) -> None:
        """Raise `InvalidRequest` or `TextTooLong` for options that this server or this model lacks, for any text."""
        self._quality(request)
        SentenceEncoder(request, self.limits, self.tokenizer, self._config).check_texts(len(request.texts))

    def _quality(self, request: TranslationRequest, *, is_streamed: bool = False) -> QualityCheck | None:
        return QualityCheck.of(request, self.limits, self._config, self.tokenizer, is_streamed=is_streamed)
