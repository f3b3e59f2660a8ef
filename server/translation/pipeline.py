"""The text pipeline of one model: read, segment, protect, encode, decode, restore, join."""

import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace

from bundle.loading import Bundle
from server.interface.engine_client import EngineClient
from server.text.protection.protected import Restored
from server.text.tokenizers.registry import open_tokenizer
from server.translation.assembly import assemble, with_kept_sentences
from server.translation.copy_check import CopyCheck
from server.translation.deadline import Deadline
from server.translation.embedding import Embedder
from server.translation.formality_choice import FormalityChoice
from server.translation.generation import Generator
from server.translation.limits import TranslationLimits
from server.translation.plain_texts import NO_NEGATIONS, LostNegations, PlainTextPath, has_plain_options
from server.translation.protection_strategies import ByParts, Escalation
from server.translation.quality import QualityCheck
from server.translation.reading import SegmentedTexts, TextReader
from server.translation.recovery import Recovery, Suspect, is_plain, of_part, suspects_of, with_outcomes
from server.translation.restoration import Restorer
from server.translation.rounds import Rounds
from server.translation.scoring import Scorer
from server.translation.sentence_encoder import SentenceEncoder
from server.translation.sentences import Sentence
from server.translation.source_checks import SourceChecks
from server.translation.submission import Submission
from server.translation.text_output import TextOutput, written
from server.translation.text_stream import TextStream
from server.translation.types import TranslationRequest, TranslationResult, one_after_the_other
from server.translation.worker_threads import INLINE_CHARACTERS


class Pipeline:
    """Translates texts with one model. `translate` may run many times at once on one event loop.

    With `checks_copying` items of kinds that the model never copies are not sent as they are. With `checks_sources`
    sentences that are not in the source language, and texts that are none, are kept.
    """

    def __init__(
        self,
        engine: EngineClient,
        limits: TranslationLimits,
        clock: Callable[[], float] = time.monotonic,
        *,
        inline_characters: float = INLINE_CHARACTERS,
        checks_copying: bool = False,
        checks_sources: bool = False,
    ) -> None:
        """Open the tokenizer. Texts of more than `inline_characters` are processed in threads."""
        self._engine = engine
        self._limits = limits
        self._clock = clock
        self._tokenizer = open_tokenizer(engine.bundle)
        self._config = engine.bundle.config
        self._reader = TextReader(self._tokenizer, self._config.shapes, inline_characters)
        self._checks = SourceChecks(self._tokenizer, limits) if checks_sources else None
        self._plain_texts = PlainTextPath(engine, limits, self._tokenizer, self._config, self._reader, self._checks)
        self._copy_check = CopyCheck(engine, limits, self._tokenizer) if checks_copying else None
        self.scorer = Scorer(engine, limits, self._tokenizer, clock)
        self.embedder = Embedder(engine, limits, self._tokenizer, clock)
        self.generator = Generator(engine, limits, self._tokenizer, clock)

    @property
    def bundle(self) -> Bundle:
        """The model that it translates with."""
        return self._engine.bundle

    @property
    def limits(self) -> TranslationLimits:
        """The limits and defaults of the server."""
        return self._limits

    async def translate(self, request: TranslationRequest, stream: TextStream | None = None) -> TranslationResult:
        """Translate all texts, in their order, for the `stream` too. Cancelling it frees the rows of all its sentences.

        Raises `InvalidRequest` or `TextTooLong` before anything is decoded, `DeadlineExceeded`, and the errors of
        `EngineClient.generate`.
        """
        arrived = self._clock()
        self._limits.check_size(request)
        deadline = Deadline.of(self._limits.deadline(request, arrived), arrived, self._clock)
        may_be_plain = stream is None and has_plain_options(request)
        if may_be_plain and (plain := await self._plain_texts.translate(request, deadline, arrived)) is not None:
            result, lost = plain
            return await self._with_negations(result, lost, request, deadline) if lost else result
        return await self._translate_any(request, stream, deadline, arrived, is_special=may_be_plain)

    async def _with_negations(
        self, result: TranslationResult, lost: LostNegations, request: TranslationRequest, deadline: Deadline
    ) -> TranslationResult:
        """Return the result with other translations of the texts that `lost` a negation."""
        indices = sorted({index for index, _ in lost})
        again = replace(request, texts=tuple(request.texts[index] for index in indices), accepted_earlier=True)
        numbers = {index: number for number, index in enumerate(indices)}
        means = {(numbers[index], sentence): each for (index, sentence), each in lost.items()}
        second = await self._translate_any(again, None, deadline, self._clock(), means)
        translations = list(result.translations)
        for index, translation in zip(indices, second.translations, strict=True):
            translations[index] = translation
        return replace(
            result,
            translations=translations,
            phases=one_after_the_other(result.phases, second.phases),
            sentence_tokens=result.sentence_tokens + second.sentence_tokens,
            outcomes=Counter(result.outcomes) + Counter(second.outcomes),
        )

    async def _translate_any(
        self,
        request: TranslationRequest,
        stream: TextStream | None,
        deadline: Deadline,
        arrived: float,
        lost: LostNegations = NO_NEGATIONS,
        *,
        is_special: bool = False,
    ) -> TranslationResult:
        """Translate texts that may have something to protect, and surely have if they are known to be special.

        An earlier search `lost` negations of some sentences.
        """
        quality = self._quality(request, is_streamed=stream is not None)
        texts = await self._read(request, deadline, is_special=is_special)
        for sentence in texts.sentences if lost else ():
            sentence.negation_means = lost.get((sentence.text, sentence.written), sentence.negation_means)
        output = TextOutput(stream, texts, self._tokenizer)
        encoder = SentenceEncoder(request, self._limits, self._tokenizer, self._config, deadline.at)
        submission = Submission(self._engine, deadline, arrived, accepted_earlier=request.accepted_earlier)
        async with texts.deadline.interrupts():
            await Rounds(request, texts, encoder, submission, output, self._tokenizer).decode()
            suspects = await self._recover(request, texts, encoder, submission, is_streamed=stream is not None)
            qualities = (
                {} if quality is None else await texts.run(quality.assess, texts.deadline.in_time(texts.sentences))
            )
            result = await texts.run(assemble, texts, request, self._tokenizer, submission.phases, encoder.seed)
            result = with_outcomes(with_kept_sentences(result, request.texts, texts), suspects)
            if quality is not None:
                result = await texts.run(quality.with_qualities, result, qualities)
            if (choice := FormalityChoice.of(request)) is not None:
                result = choice.with_other_addresses(result, texts.texts)
            texts.deadline.check()
        output.assembled(result.translations)
        return result

    async def _recover(
        self,
        request: TranslationRequest,
        texts: SegmentedTexts,
        encoder: SentenceEncoder,
        submission: Submission,
        *,
        is_streamed: bool,
    ) -> Sequence[Suspect]:
        """Decode sentences again whose translations may lack something; return them with their outcomes."""
        if texts.check is not None and texts.check.doubts and not is_streamed:
            texts.check.mark_doubtful(texts.sentences)
        target_words = self._reader.truecaser(request.target, is_target=True)
        recovery = Recovery(request, self._limits, self._tokenizer, encoder, target_words, is_streamed=is_streamed)
        found = await texts.run(suspects_of, recovery, texts.deadline.in_time(texts.sentences))
        plain = [each for each in found if is_plain(each[0])]
        await recovery.recover([suspect for _, suspect in plain], submission)
        for sentence, suspect in plain:
            if suspect.outcome == "recovered":
                sentence.jobs[0].answers = [(Restored(suspect.translation), suspect.hypothesis)]
        protected = [each for each in found if not is_plain(each[0])]
        first = texts.protections[0]
        if recovery.recovers and protected and isinstance(first, Escalation):
            submission.next_round()
            await self._translate_by_parts(
                recovery, protected, ByParts(first.notation, first.cases), encoder, submission
            )
        suspects = [suspect for _, suspect in found]
        recovery.settle(suspects)
        return suspects

    async def _translate_by_parts(
        self,
        recovery: Recovery,
        found: Sequence[tuple[Sentence, Suspect]],
        protection: ByParts,
        encoder: SentenceEncoder,
        submission: Submission,
    ) -> None:
        """Translate the parts of sentences with items. A sentence keeps its first answer if that has more of it."""
        first = [(sentence.parts, sentence.jobs) for sentence, _ in found]
        sentences = [sentence for sentence, _ in found]
        completions = await submission.submit([of_part(each) for each in encoder.encode(sentences, protection)])
        lost = {id(each) for each in Restorer(self._tokenizer, encoder, 1).restore(sentences, completions)}
        for (sentence, suspect), (parts, jobs) in zip(found, first, strict=True):
            if sentence.jobs is not jobs and id(sentence) not in lost:
                translation = written(sentence)
                hypotheses = [job.answers[0][1] for job in sentence.jobs]
                if recovery.is_better(translation, hypotheses, suspect):
                    suspect.translation, suspect.outcome = translation, "recovered"
                    continue
            sentence.parts, sentence.jobs = parts, jobs

    async def _read(self, request: TranslationRequest, deadline: Deadline, *, is_special: bool) -> SegmentedTexts:
        """Return the segmented texts, with the kinds of items that the model never copies."""
        texts = await self._reader.read(request, deadline, is_special=is_special)
        if self._copy_check is not None and not texts.is_plain:
            async with deadline.interrupts():
                kinds = await self._copy_check.never_copied(request.source, request.target, texts.item_kinds())
            for sentence in texts.sentences:
                sentence.never_copied = kinds
        if self._checks is not None and (check := self._checks.of(request)) is not None:
            texts.check = check
            await texts.run(check.mark, texts.deadline.in_time(texts.sentences))
        return texts

    def may_be_special(self, text: str, source: str) -> bool:
        """Return whether a text takes the slower path: it may lose something, or a sentence has unusual capitals."""
        return self._reader.may_be_special(text) or self._reader.has_unusual_casing(text, source)

    def check(self, request: TranslationRequest) -> None:
        """Raise `InvalidRequest` or `TextTooLong` for options that this server or this model lacks, for any text."""
        self._quality(request)
        SentenceEncoder(request, self._limits, self._tokenizer, self._config).check_texts(len(request.texts))

    def _quality(self, request: TranslationRequest, *, is_streamed: bool = False) -> QualityCheck | None:
        return QualityCheck.of(request, self._limits, self._config, self._tokenizer, is_streamed=is_streamed)
