"""Rounds of decoding: each sentence with one protection after the other, until nothing of it is lost."""

import asyncio
from collections.abc import Mapping, Sequence

from server.interface.request import Completion, Request
from server.text.tokenizers.tokenizer import Tokenizer
from server.translation.all_or_none import all_or_none
from server.translation.formality_choice import FormalityChoice
from server.translation.reading import SegmentedTexts
from server.translation.restoration import Restorer
from server.translation.sentence_encoder import SentenceEncoder
from server.translation.sentences import Sentence
from server.translation.submission import Submission
from server.translation.text_output import TextOutput
from server.translation.types import TranslationRequest

# Sentences that a stream decodes before the next ones; docs/decisions/text.md has the numbers.
BLOCK_SENTENCES = 32


class Rounds:
    """Decodes the sentences of one call.

    A long stream has its first round in blocks of consecutive sentences, which the engine takes in their order. The
    further rounds of a block begin as soon as it is complete, whether or not the later ones are.
    """

    def __init__(
        self,
        request: TranslationRequest,
        texts: SegmentedTexts,
        encoder: SentenceEncoder,
        submission: Submission,
        output: TextOutput,
        tokenizer: Tokenizer,
    ) -> None:
        self._texts = texts
        self._encoder = encoder
        self._submission = submission
        self._output = output
        self._tokenizer = tokenizer
        self._num_hypotheses = request.options.num_hypotheses
        self._choice = FormalityChoice.of(request)
        self._restorer = Restorer(tokenizer, encoder, self._num_hypotheses, self._choice)

    async def decode(self) -> None:
        """Give all sentences their answers. Raises as `Submission.submit` and `SentenceEncoder.encode` do."""
        sentences = self._texts.sentences
        size = BLOCK_SENTENCES if self._output.has_followed_texts else max(len(sentences), 1)
        blocks = [sentences[start : start + size] for start in range(0, len(sentences), size)]
        encoded = await self._texts.run(self._encode, blocks)
        self._output.encoded()
        if len(blocks) > 1:
            await self._decode_blocks(blocks, encoded)
        else:
            completions = await self._submission.submit(*encoded)
            await self._settle(sentences, completions, self._submission)
        if self._choice is not None:
            await self._correct_formality(self._choice)

    def _encode(self, blocks: Sequence[Sequence[Sentence]]) -> list[list[Request]]:
        first, in_time = self._texts.protections[0], self._texts.deadline.in_time
        return [self._encoder.encode(in_time(block), first) for block in blocks]

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
        """Restore sentences from their first round, and decode those that lost something in further rounds."""
        run, in_time = self._texts.run, self._texts.deadline.in_time
        unsettled = await self._restored(sentences, completions)
        for protection in self._texts.protections[1:]:
            if not unsettled:
                break
            submission.next_round()
            requests = await run(self._encoder.encode, in_time(unsettled), protection)
            unsettled = await self._restored(unsettled, await submission.submit(requests))

    async def _restored(
        self, sentences: Sequence[Sentence], completions: Mapping[int, Completion]
    ) -> Sequence[Sentence]:
        """Give sentences their answers, and return those that lost something."""
        await self._output.decoded(completions)
        in_time = self._texts.deadline.in_time(sentences)
        unsettled = await self._texts.run(self._restorer.restore, in_time, completions)
        self._output.restored(sentences, unsettled)
        return unsettled

    async def _correct_formality(self, choice: FormalityChoice) -> None:
        """Decode sentences again whose hypotheses all have the wrong form of address, without the words of that form.

        A sentence keeps its first answer if that loses something, or does not help.
        """
        texts = self._texts
        wrong = [(sentence, sentence.parts, sentence.jobs) for sentence in texts.sentences if choice.is_wrong(sentence)]
        if not wrong:
            return
        self._submission.next_round()
        sentences = [sentence for sentence, _, _ in wrong]
        suppressed = choice.suppressed(self._tokenizer)
        in_time = texts.deadline.in_time
        requests = await texts.run(self._encoder.encode, in_time(sentences), texts.protections[0], suppressed)
        completions = await self._submission.submit(requests)
        restorer = Restorer(self._tokenizer, self._encoder, self._num_hypotheses, choice.of_addresses())
        lost = await texts.run(restorer.restore, in_time(sentences), completions)
        lost_ids = {id(sentence) for sentence in lost}
        for sentence, parts, jobs in wrong:
            if id(sentence) in lost_ids or not choice.improves(sentence, jobs):
                sentence.parts, sentence.jobs = parts, jobs


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
