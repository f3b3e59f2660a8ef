"""Decoding of sentences: an attempt, a check, and at most two further attempts for what it lost.

1. The model reads the sentence; a mask stands for each span of a kind that it does not copy. The best hypothesis with
   all spans is the answer.
2. Masks stand for the spans that were lost. Where the bundle has the repair, a number that is missing is required.
3. The sentence is translated in pieces around its spans, which cannot lose one.

Numbers that are still missing are named, and nothing is put in their place.
"""

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np
import regex

from bundle.manifest import BundleConfig, Repair, SpanCopying
from server.interface.interruption import checkpoint
from server.interface.request import Completion, Hypothesis, Request, Tokens
from server.text.digits import NumberCheck, compare, has_judged_numbers
from server.text.glossary import capitalized_like
from server.text.joining import is_unspaced
from server.text.number_forms import edits_of, forms
from server.text.protection.masked_sentence import (
    MaskedSentence,
    Restored,
    Strategy,
    TokenAttention,
    read_sentence,
    replaced,
    unchanged,
)
from server.text.readers.units import ProtectedSpan, Unit
from server.text.spans import READABLE, SpanKind
from server.text.tokenizers.tokenizer import Tokenizer
from server.translation.engine_requests import Part, SentenceEncoder
from server.translation.execution import all_or_none
from server.translation.formality_choice import Answers, FormalityChoice
from server.translation.reading import Job, SegmentedTexts, Sentence
from server.translation.remembered import note_readings, reading_requests
from server.translation.repairs import Repairs, may_have_parts
from server.translation.repairs import parts as parts_of
from server.translation.submission import Submission
from server.translation.text_stream import TextOutput
from server.translation.types import TranslationRequest

Attempt = Callable[[Sentence], Sequence[Part | Restored]]

# Sentences that a stream decodes before the next ones; docs/decisions/text.md has the numbers.
BLOCK_SENTENCES = 32
# By how much the score of a translation with a required number may be lower, and how far the number may be from its
# place in the source, in lengths of the sentence: a search that must write a number breaks a sentence to begin with it.
_BEGINNING = regex.compile(r"\s+\p{Lu}(?:\p{Ll}|\s)")  # of a sentence
_MAX_LOSS = 0.5
_MAX_SHIFT = 0.5
# What a bundle copies before it was measured: everything, and these masks. A lost span costs another attempt.
_UNMEASURED = SpanCopying(copied=tuple(READABLE), masks=tuple(f"X{number}" for number in range(1, 10)))


class Attempts:
    """Decodes the sentences of one call.

    A long stream is decoded in blocks of consecutive sentences, which the engine takes in their order. The further
    attempts of a block begin as soon as it is complete, whether or not the later ones are.
    """

    def __init__(
        self,
        request: TranslationRequest,
        texts: SegmentedTexts,
        encoder: SentenceEncoder,
        submission: Submission,
        output: TextOutput,
        tokenizer: Tokenizer,
        copying: SpanCopying,
        repairs: Repairs,
    ) -> None:
        self._request = request
        self._texts = texts
        self._encoder = encoder
        self._submission = submission
        self._output = output
        self._tokenizer = tokenizer
        self._repairs = repairs
        self._choice = FormalityChoice.of(request)
        self._num_hypotheses = request.options.num_hypotheses
        self._copied = frozenset(copying.copied)
        self._masks = copying.masks
        self._is_unspaced = is_unspaced(request.target)
        options = request.options
        # A client that asks for scores or several translations of a term wants those of the model.
        needs_model = options.num_hypotheses > 1 or options.wants_details or options.is_about_whole_texts
        self._exact_terms = None if needs_model or options.return_scores else request.glossary
        output.restore, output.is_final = self._final, self._is_final

    async def decode(self) -> None:
        """Give all sentences their answers. Raises as `Submission.submit` and `SentenceEncoder.jobs` do."""
        sentences = self._texts.sentences
        size = BLOCK_SENTENCES if self._output.has_followed_texts else max(len(sentences), 1)
        blocks = [sentences[start : start + size] for start in range(0, len(sentences), size)]
        if self._request.memory is not None:
            await self._read_remembered(sentences)
        encoded = await self._texts.run(self._encode_all, blocks)
        self._output.encoded()
        if len(blocks) > 1:
            await self._decode_blocks(blocks, encoded)
        else:
            completions = await self._submission.submit(*encoded)
            await self._settle(sentences, completions, self._submission)
        if not self._output.is_streamed:
            await self._complete_parts()
        if self._choice is not None:
            await self._correct_formality(self._choice)
        await self._texts.run(self._judge, self._texts.deadline.in_time(sentences))

    # The first attempt

    async def _read_remembered(self, sentences: Sequence[Sentence]) -> None:
        """Let the model read translations of the memory: similar ones to begin with, and equal ones to place tags."""
        read = await self._texts.run(reading_requests, sentences, self._encoder, self._tokenizer)
        if read:
            completions = await self._submission.submit([each for _, requests in read for each in requests])
            await self._texts.run(note_readings, read, completions, self._encoder, self._tokenizer)
            self._submission.next_round()

    def _encode_all(self, blocks: Sequence[Sequence[Sentence]]) -> list[list[Request]]:
        return [
            self._encode((sentence, self._first(sentence)) for sentence in self._in_time(block)) for block in blocks
        ]

    def _encode(self, attempts: Iterable[tuple[Sentence, Sequence[Part | Restored]]]) -> list[Request]:
        """Give sentences the parts of an attempt, and return the requests of those that are decoded."""
        listed = list(attempts)
        decoded = [part for _, parts in listed for part in parts if isinstance(part, Part)]
        jobs = iter(self._encoder.jobs(decoded))
        requests: list[Request] = []
        for sentence, parts in listed:
            sentence.parts = [next(jobs) if isinstance(part, Part) else part for part in parts]
            sentence.jobs = [part for part in sentence.parts if isinstance(part, Job)]
            requests += [job.request for job in sentence.jobs]
        return requests

    def _first(self, sentence: Sentence) -> Sequence[Part | Restored]:
        checkpoint()
        unit, start, end = sentence.unit, sentence.start, sentence.end
        if not any(map(str.isalpha, unit.masked(" ", start, end) if unit.protected else unit.text[start:end])):
            return (unchanged(unit, (start, end)),)
        sentence.has_numbers = has_judged_numbers(unit.text[start:end])
        if sentence.memory is not None and sentence.memory.is_exact:
            return (replaced(unit, (start, end), sentence.memory.target, sentence.attention),)
        if (parts := self._only_term(sentence)) is not None:
            return parts
        spans = unit.protected_in(start, end) if unit.protected else ()
        sentence.means = [self._first_means(span) for span in spans]
        for index in range(_num_in_front(unit, spans, start)):
            if sentence.means[index] is Strategy.MASK:
                sentence.means[index] = Strategy.PLACED
        return self._with_means(sentence)

    def _first_means(self, span: ProtectedSpan) -> Strategy:
        if span.is_readable and span.kind in self._copied:
            return Strategy.AS_IS
        return Strategy.PLACED if span.kind is SpanKind.SYMBOL else Strategy.MASK

    def _only_term(self, sentence: Sentence) -> Sequence[Restored] | None:
        """Return the parts of a sentence that is a term of the glossary; None for any other."""
        unit, start, end = sentence.unit, sentence.start, sentence.end
        if self._exact_terms is None or (term := self._exact_terms.only_term(unit.text[start:end])) is None:
            return None
        first, last = start + term.start, start + term.end
        if unit.protected_in(first, last):
            return None
        return (unchanged(unit, (start, first)), replaced(unit, (first, last), term.text), unchanged(unit, (last, end)))

    def _with_means(
        self, sentence: Sentence, required: Sequence[tuple[str, ...]] = (), suppressed: tuple[Tokens, ...] = ()
    ) -> Sequence[Part | Restored]:
        """Return the sentence with its means; in pieces if there are not enough masks, or if it is too long."""
        built = self._read(sentence, sentence.start, sentence.end, sentence.means)
        if built is not None:
            needs_beams = ("parts" in self._repairs.enabled and may_have_parts(built.text)) or (
                "numbers" in self._repairs.enabled and sentence.has_numbers
            )
            source = sentence.source if not built.is_shouted else None
            part = Part(
                sentence.text, built, source,
                needs_beams=needs_beams,
                required=required,
                suppressed=suppressed,
                prefix=() if sentence.means or built.is_shouted else sentence.prefix,
            )  # fmt: skip
            if not sentence.means or self._encoder.fits(part):
                return (part,)
        sentence.means = [Strategy.APART] * len(sentence.means)
        return list(self._pieces(sentence))

    def _read(
        self, sentence: Sentence, start: int, end: int, means: Sequence[Strategy], *, is_fragment: bool = False
    ) -> MaskedSentence | None:
        request = self._request
        localizes = sentence.has_numbers and request.options.localize_numbers
        return read_sentence(
            sentence.unit, start, end, means, self._masks,
            is_unspaced=self._is_unspaced,
            is_fragment=is_fragment,
            is_shouted=self._repairs.is_shouted(sentence.unit.masked(" ", start, end)),
            edits_of=edits_of(sentence.unit.text[start:end], request.source, request.target) if localizes else None,
        )  # fmt: skip

    def _pieces(self, sentence: Sentence) -> Iterator[Part | Restored]:
        """Yield the fragments between spans, the spans, and the marks around them."""
        unit, position, goes_on = sentence.unit, sentence.start, False
        protected = [(each.start, each.end) for each in unit.protected_in(sentence.start, sentence.end)]
        for start, end in (*protected, (sentence.end, sentence.end)):
            words = [at for at in range(position, start) if unit.text[at].isalnum()]
            if any(unit.text[at].isalpha() for at in words):
                first, last = words[0], words[-1] + 1
                yield unchanged(unit, (position, first))
                built = self._read(sentence, first, last, (), is_fragment=True)
                assert built is not None, "a fragment has no spans"
                yield Part(sentence.text, built, goes_on=goes_on)
                position, goes_on = last, True
            yield unchanged(unit, (position, end))
            position = end

    # Answers

    async def _decode_blocks(self, blocks: Sequence[Sequence[Sentence]], encoded: Sequence[Sequence[Request]]) -> None:
        arriving = [_Arriving(requests) for requests in encoded]
        parts: list[Submission] = []

        async def submit() -> None:
            completions = await self._submission.submit(*encoded)
            for block in arriving:
                block.add_all(completions)

        async def settle(block: Sequence[Sentence], its_completions: _Arriving) -> None:
            completions = await its_completions.all()
            parts.append(part := self._submission.part(completions))
            await self._settle(block, completions, part)

        settling = [settle(block, completions) for block, completions in zip(blocks, arriving, strict=True)]
        try:
            await all_or_none([submit(), *settling])
        finally:
            self._submission.join(parts)

    async def _settle(
        self, sentences: Sequence[Sentence], completions: Mapping[int, Completion], submission: Submission
    ) -> None:
        """Restore sentences from their first attempt, and decode those that lost something again, at most twice."""
        run = self._texts.run
        unsettled = await self._restored(sentences, completions)
        attempts: Sequence[Attempt] = (self._masked, lambda sentence: list(self._pieces(sentence)))
        for attempt in attempts:
            if not unsettled:
                break
            submission.next_round()
            requests = await run(self._encode_again, unsettled, attempt)
            unsettled = await self._restored(unsettled, await submission.submit(requests))
        assert not unsettled, "pieces lose nothing"
        if "numbers" in self._repairs.enabled:
            await self._require_numbers(sentences, submission)
        self._output.settled(sentences)

    def _encode_again(self, sentences: Sequence[Sentence], attempt: Attempt) -> list[Request]:
        return self._encode((sentence, attempt(sentence)) for sentence in self._in_time(sentences))

    def _masked(self, sentence: Sentence) -> Sequence[Part | Restored]:
        """Return the sentence with masks for the spans that it lost; in pieces if a mask was lost."""
        means = list(sentence.means)
        for index in sentence.lost:
            span = sentence.unit.protected_in(sentence.start, sentence.end)[index]
            if means[index] is not Strategy.AS_IS:
                means = [Strategy.APART] * len(means)
                break
            means[index] = Strategy.PLACED if span.kind is SpanKind.SYMBOL else Strategy.MASK
        sentence.means = means
        return list(self._pieces(sentence)) if Strategy.APART in means else self._with_means(sentence)

    async def _restored(
        self, sentences: Sequence[Sentence], completions: Mapping[int, Completion]
    ) -> Sequence[Sentence]:
        """Give sentences their answers, and return those that lost a span."""
        await self._output.decoded(completions)
        return await self._texts.run(self._restore_all, sentences, completions)

    def _restore_all(self, sentences: Sequence[Sentence], completions: Mapping[int, Completion]) -> Sequence[Sentence]:
        return [sentence for sentence in self._in_time(sentences) if not self._restore(sentence, completions)]

    def _restore(
        self,
        sentence: Sentence,
        completions: Mapping[int, Completion],
        choice: FormalityChoice | None = None,
    ) -> bool:
        checkpoint()
        for job in sentence.jobs:
            job.completion = completions[job.request.id]
            answers, lost = self._answers(job, sentence, choice or self._choice)
            if not answers:
                sentence.lost = lost
                return False
            job.answers = answers
        return True

    def _answers(self, job: Job, sentence: Sentence, choice: FormalityChoice | None) -> tuple[Answers, Sequence[int]]:
        """Return as many hypotheses as are wanted that lost no span, restored, or what the best one lost."""
        assert job.completion is not None, "it was decoded"
        answers: list[tuple[Restored, Hypothesis]] = []
        lost: Sequence[int] = ()
        for hypothesis in job.completion.hypotheses:
            restored = self._restored_answer(job, hypothesis)
            if not isinstance(restored, Restored):
                lost = lost if lost and len(lost) <= len(restored) else restored
                continue
            answers.append((restored, hypothesis))
            if len(answers) == self._num_hypotheses and choice is None:
                break
        if answers and choice is None and "numbers" in self._repairs.enabled and len(sentence.jobs) == 1:
            best, answers = answers, self._with_numbers(job, answers)
            if answers is not best:
                sentence.repair = "numbers"
        if choice is not None:
            return choice.ordered(job.part.text, answers)[: self._num_hypotheses], lost
        return answers, lost

    def _with_numbers(self, job: Job, answers: list[tuple[Restored, Hypothesis]]) -> list[tuple[Restored, Hypothesis]]:
        """Return the first hypothesis of the same search that has all numbers; the best one if none has."""
        if not _num_differences(self._numbers_of(job.part, answers[0][0])) or job.completion is None:
            return answers
        for hypothesis in job.completion.hypotheses:
            restored = self._restored_answer(job, hypothesis)
            if isinstance(restored, Restored) and not _num_differences(self._numbers_of(job.part, restored)):
                return [(restored, hypothesis)]
        return answers

    def _restored_answer(self, job: Job, hypothesis: Hypothesis) -> Restored | tuple[int, ...]:
        text = self._tokenizer.decode(hypothesis.token_ids)
        attention = self._attention(job, hypothesis, text) if job.request.params.return_attention else None
        restored = job.part.restore(text, attention)
        if isinstance(restored, Restored) and self._request.glossary is not None and restored.block is None:
            source = job.part.text
            terms = self._request.glossary.target_terms(source)
            restored = replace(restored, text=capitalized_like(source, restored.text, terms))
        return restored

    def _attention(self, job: Job, hypothesis: Hypothesis, text: str) -> TokenAttention | None:
        """Return the attention between a text and the model input; None unless it was recorded for these tokens."""
        if not job.part.needs_attention or hypothesis.details is None or hypothesis.details.attention is None:
            return None
        weights = hypothesis.details.attention[: len(hypothesis.token_ids)]
        source_spans = self._encoder.source_spans(job.part.text)
        target_spans = self._tokenizer.target_spans(hypothesis.token_ids, text)
        if weights.shape != (len(target_spans), len(source_spans)):
            return None
        return TokenAttention(np.ascontiguousarray(weights), source_spans, target_spans)

    def _final(self, part: MaskedSentence, answer: str) -> str | None:
        """Return the text of the best hypothesis for a stream; None if another attempt may follow."""
        restored = part.restore(answer, None)
        if not isinstance(restored, Restored):
            return None
        if "numbers" in self._repairs.enabled and _num_differences(self._numbers_of(part, restored)):
            return None
        return restored.with_outputs()

    def _is_final(self, part: MaskedSentence) -> bool:
        return part.is_plain and not ("numbers" in self._repairs.enabled and has_judged_numbers(part.text))

    # Numbers

    def _numbers_of(self, part: MaskedSentence, restored: Restored) -> NumberCheck | None:
        source = part.unit.masked(" ", part.start, part.end)
        if not (has_judged_numbers(source) or has_judged_numbers(restored.text)):
            return None
        return compare(source, restored.text, self._request.source, self._request.target)

    def _judge(self, sentences: Iterable[Sentence]) -> None:
        """Name the numbers that translations lack or have invented, and the translations that lack something."""
        for sentence in sentences:
            checkpoint()
            if not sentence.jobs:
                continue
            written = "".join([part.text for part in sentence.restored()])
            source = sentence.unit.masked(" ", sentence.start, sentence.end)
            if sentence.has_numbers or has_judged_numbers(written):
                sentence.numbers = compare(source, written, self._request.source, self._request.target)
            hypotheses = sentence.hypotheses()
            if any(self._repairs.may_be_incomplete(source, each) for each in hypotheses):
                sentence.is_incomplete = self._repairs.is_incomplete(source, written, hypotheses)
            if sentence.repair is None and any(job.part.is_shouted for job in sentence.jobs):
                sentence.repair = "capitals"

    async def _require_numbers(self, sentences: Sequence[Sentence], submission: Submission) -> None:
        """Decode sentences that lack a number again, in searches that must write it; keep what has more of them."""
        attempts = []
        languages = (self._request.source, self._request.target)
        for sentence in sentences:
            if len(sentence.jobs) != 1 or len(sentence.parts) != 1 or not sentence.has_numbers:
                continue
            numbers = self._numbers_of_best(sentence.jobs[0])
            missing = numbers.missing if numbers is not None else ()
            if required := self._encoder.writable(forms(number, *languages) for number in missing):
                attempts.append((sentence, self._with_means(sentence, required)))
        await self._try(attempts, submission, self._has_more_numbers, "numbers")

    def _has_more_numbers(self, sentence: Sentence, first: Sequence[Job]) -> bool:
        if len(sentence.jobs) != 1:
            return False
        (old,), (new,) = first, sentence.jobs
        before = self._numbers_of_best(old)
        if _num_differences(self._numbers_of_best(new)) >= _num_differences(before):
            return False
        missing = before.missing if before is not None else ()
        loss = old.answers[0][1].score - new.answers[0][1].score
        return not loss > _MAX_LOSS and not any(self._is_moved(each, sentence, new) for each in missing)

    def _is_moved(self, number: str, sentence: Sentence, job: Job) -> bool:
        """Return whether a number of a sentence is at a very different place of its translation."""
        translation = job.answers[0][0].text
        written = forms(number, self._request.source, self._request.target)
        places = [place for each in written if (place := translation.find(each)) >= 0]
        origin = sentence.written.find(number) / len(sentence.written)
        return bool(places) and min(abs(place / len(translation) - origin) for place in places) > _MAX_SHIFT

    def _numbers_of_best(self, job: Job) -> NumberCheck | None:
        return self._numbers_of(job.part, job.answers[0][0])

    async def _try(
        self,
        attempts: Sequence[tuple[Sentence, Sequence[Part | Restored]]],
        submission: Submission,
        is_better: Callable[[Sentence, Sequence[Job]], bool],
        repair: Repair | None = None,
        choice: FormalityChoice | None = None,
    ) -> None:
        """Decode sentences again; each keeps its first answer if the other loses a span, or is not better than that."""
        if not attempts:
            return
        first = [(sentence, sentence.parts, sentence.jobs) for sentence, _ in attempts]
        submission.next_round()
        requests = await self._texts.run(self._encode, attempts)
        completions = await submission.submit(requests)

        def keep_better() -> None:
            for sentence, parts, jobs in first:
                if self._restore(sentence, completions, choice) and is_better(sentence, jobs):
                    sentence.repair = repair or sentence.repair
                else:
                    sentence.parts, sentence.jobs = parts, jobs

        await self._texts.run(keep_better)

    # Parts

    async def _complete_parts(self) -> None:
        """Translate the parts of sentences by themselves whose translations may lack one; keep what has more."""
        if "parts" not in self._repairs.enabled:
            return
        attempts = []
        for sentence in self._in_time(self._texts.sentences):
            if len(sentence.jobs) != 1 or len(sentence.parts) != 1 or sentence.repair is not None:
                continue
            [job] = sentence.jobs
            if not self._lacks_part(sentence, job) or self._another_hypothesis(sentence, job):
                continue
            if parts := self._by_parts(sentence):
                attempts.append((sentence, parts))
        await self._try(attempts, self._submission, self._has_more_parts, "parts")

    def _has_more_parts(self, sentence: Sentence, first: Sequence[Job]) -> bool:
        [(restored, hypothesis)] = [job.answers[0] for job in first]
        answers = [job.answers[0] for job in sentence.jobs]
        alone = [each.with_outputs() for each, _ in answers]
        after = (sentence.translation, [each for _, each in answers], alone)
        return self._repairs.is_better(sentence.written, (restored.with_outputs(), [hypothesis]), after)

    def _lacks_part(self, sentence: Sentence, job: Job) -> bool:
        checkpoint()
        restored, best = job.answers[0]
        return self._repairs.may_be_incomplete(sentence.written, best) and self._repairs.lacks_part(
            sentence.written, restored.with_outputs(), [best]
        )

    def _another_hypothesis(self, sentence: Sentence, job: Job) -> bool:
        """Take the best other hypothesis of the same search that lacks nothing, if there is one."""
        for hypothesis in job.completion.hypotheses[1:] if job.completion is not None else ():
            restored = self._restored_answer(job, hypothesis)
            if isinstance(restored, Restored) and not self._repairs.lacks_part(
                sentence.written, restored.with_outputs(), [hypothesis]
            ):
                job.answers, sentence.repair = [(restored, hypothesis)], "parts"
                return True
        return False

    def _by_parts(self, sentence: Sentence) -> Sequence[Part | Restored]:
        """Return the parts of a sentence and all between them; nothing of one part, or if one cannot be read alone."""
        unit = sentence.unit
        text = unit.segmentable()[sentence.start : sentence.end]
        position = sentence.start
        found: list[Part | Restored] = []
        if len(spans := parts_of(text, self._request.source)) < 2:
            return ()
        for first, last in spans:
            start, end = sentence.start + first, sentence.start + last
            means = [self._first_means(span) for span in unit.protected_in(start, end)]
            built = self._read(sentence, start, end, means, is_fragment=True)
            if built is None or unit.is_inside_protected(start) or unit.is_inside_protected(end):
                return ()
            # Models write more of a short text that ends as a sentence does.
            built.text += "." * built.text[-1:].isalnum()
            found += [unchanged(unit, (position, start)), Part(sentence.text, built, has_few_beams=True)]
            position = end
        return (*found, unchanged(unit, (position, sentence.end)))

    # Forms of address

    async def _correct_formality(self, choice: FormalityChoice) -> None:
        """Decode sentences again whose hypotheses all have the wrong form of address, without the words of that form.

        A sentence keeps its first answer if that loses something, or does not help.
        """
        suppressed = choice.suppressed(self._tokenizer)
        attempts = [
            (sentence, self._with_means(sentence, suppressed=suppressed))
            for sentence in self._texts.sentences
            if len(sentence.jobs) == 1 and choice.is_wrong(sentence)
        ]
        await self._try(attempts, self._submission, choice.improves, choice=choice.of_addresses())

    def _in_time(self, sentences: Iterable[Sentence]) -> Iterable[Sentence]:
        return self._texts.deadline.in_time(sentences)


def _num_in_front(unit: Unit, spans: Sequence[ProtectedSpan], start: int) -> int:
    """Return how many spans are in front of a sentence that begins behind them, such as mentions."""
    position = start
    for index, span in enumerate(spans):
        if unit.text[position : span.start].strip() or span.kind is SpanKind.UNKNOWN:
            return index if _BEGINNING.match(unit.text, position) is not None else 0
        position = span.end
    return len(spans) if _BEGINNING.match(unit.text, position) is not None else 0


def copying_of(config: BundleConfig, tokenizer: Tokenizer) -> SpanCopying:
    """Return what the model of a bundle copies, with the masks that it can read and write."""

    def is_written(mask: str) -> bool:
        tokens = tokenizer.encode_target(mask)
        return tokenizer.unknown_token not in (*tokens, *tokenizer.encode(mask)) and tokenizer.decode(tokens) == mask

    copying = config.copying or _UNMEASURED
    return copying.model_copy(update={"masks": tuple(filter(is_written, copying.masks))})


def _num_differences(numbers: NumberCheck | None) -> int:
    return 0 if numbers is None else len(numbers.missing) + len(numbers.invented)


class _Arriving:
    """The completions of one block: as they arrive from the engine, or with those of all blocks."""

    def __init__(self, requests: Sequence[Request]) -> None:
        self._requests = requests
        self._by_id: dict[int, Completion] = {}
        self._are_all = asyncio.Event()
        for request in requests:
            request.on_completed = self._add
        self._notice()

    def add_all(self, completions: Mapping[int, Completion]) -> None:
        """Add those of the block among the completions of all blocks: an engine client need not report them before."""
        for request in self._requests:
            self._by_id.setdefault(request.id, completions[request.id])
        self._notice()

    async def all(self) -> dict[int, Completion]:
        """Wait for all completions, and return them in the order of the requests."""
        await self._are_all.wait()
        return {request.id: self._by_id[request.id] for request in self._requests}

    def _add(self, completion: Completion) -> None:
        self._by_id[completion.request.id] = completion
        self._notice()

    def _notice(self) -> None:
        if len(self._by_id) == len(self._requests):
            self._are_all.set()
