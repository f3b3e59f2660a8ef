"""Streams of translations, from the tokens that the engine reports to the text that a reader takes."""

import asyncio
import sys
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial

from server.interface.errors import EngineFailed
from server.interface.interruption import yielding_chunks
from server.interface.request import Completion, Request
from server.text.protection.masked_sentence import MaskedSentence, Restored
from server.text.segmentation.sentences import Segment
from server.text.tokenizers.tokenizer import Tokenizer
from server.translation.reading import Job, SegmentedText, SegmentedTexts, Sentence
from server.translation.types import Translation

SENTENCES_AT_ONCE = 100  # that readers on the event loop take
_COMPLETIONS_PER_TURN = 100
_RESTORED_PER_TURN = 10  # some take a millisecond


@dataclass(frozen=True, slots=True)
class TextDelta:
    """Text that continues the last delta of the same text. `index` is that of the text."""

    index: int
    text: str


@dataclass(frozen=True, slots=True)
class Followed:
    """A segment of a text and the request that decodes it; without either it is final as it is.

    With `restore` the sentence becomes final as a whole: by that function of a complete answer, which returns None if
    more must be done for it, or by `TextStream.settle` with its `key`.
    """

    segment: Segment
    request: Request | None = None
    restore: Callable[[str], str | None] | None = None
    key: int | None = None


@dataclass(slots=True)
class _Sentence:
    """The tokens so far of one segment, or its text if it is not decoded."""

    token_ids: list[int] = field(default_factory=list)
    is_complete: bool = False
    text: str | None = None

    def beginning(self, tokenizer: Tokenizer | None) -> str:
        """Return the final text so far, and all of it once it is complete."""
        if self.text is not None or tokenizer is None:
            return self.text or ""
        return tokenizer.decode(self.token_ids) if self.is_complete else tokenizer.decode_beginning(self.token_ids)


@dataclass(slots=True)
class _Text:
    """The sentences of one text, and how much a reader has taken: `taken` of the sentence at `position`."""

    segments: list[Segment]
    sentences: list[_Sentence]
    tokenizer: Tokenizer | None  # None if nothing of it is decoded
    position: int = 0
    taken: str = ""

    def take(self, max_sentences: int) -> tuple[str, int]:
        """Return the final text that was not taken before, and the number of sentences that it was looked for in.

        A sentence comes after all sentences before it.
        """
        parts = []
        num_read = 0
        while self.position < len(self.segments) and num_read < max_sentences:
            num_read += 1
            segment, sentence = self.segments[self.position], self.sentences[self.position]
            beginning = sentence.beginning(self.tokenizer)
            if not beginning.startswith(self.taken):
                # A SentencePiece model might change text that it decoded before. No known model does.
                raise EngineFailed("translations of this model cannot be streamed: later tokens change earlier text")
            if not self.taken and (beginning or sentence.is_complete):
                parts.append(segment.before)
            parts.append(beginning[len(self.taken) :])
            self.taken = beginning
            if not sentence.is_complete:
                break
            parts.append(segment.after)
            self.position += 1
            self.taken = ""
        return "".join(parts), num_read


class TextStream:
    """The texts of one translation as they become final.

    Text that becomes final while the reader is busy makes one delta, so that a slow reader never has more to read than
    the answer. Nothing can be taken before the engine has reported a token. Use it on the event loop's thread only.
    """

    def __init__(self) -> None:
        self._texts: dict[int, _Text] = {}
        self._indices: Sequence[int] | None = None  # of a view: the indices of its texts in the whole stream
        self._unsettled: dict[int, tuple[int, _Sentence]] = {}  # sentences that become final as a whole, by their keys
        self._unrestored: deque[Callable[[], None]] = deque()  # restore complete answers
        self._changed = asyncio.Event()
        self._grown: set[int] = set()  # texts that may have something to take

    def view(self, indices: Sequence[int]) -> "TextStream":
        """Return a view of the stream restricted to the texts at `indices`."""
        view = TextStream()
        view._texts, view._changed, view._grown = self._texts, self._changed, self._grown
        view._unsettled, view._unrestored = self._unsettled, self._unrestored
        view._indices = indices
        return view

    def add_text(self, index: int, translation: str) -> None:
        """Add a complete text."""
        index = self._index(index)
        self._texts[index] = _Text([Segment(translation, "", "")], [_Sentence(is_complete=True, text="")], None)
        self._grown.add(index)
        self._changed.set()

    def _index(self, index: int) -> int:
        """Return the index in the whole stream of a text of this view."""
        return index if self._indices is None else self._indices[index]

    def follow(self, index: int, segments: Iterable[Followed], tokenizer: Tokenizer) -> None:
        """Follow the requests of one text, segment by segment."""
        index = self._index(index)
        followed = _Text([], [], tokenizer)
        for each in segments:
            sentence = _Sentence()
            if each.key is not None:
                sentence.text = ""
                self._unsettled[each.key] = (index, sentence)
            elif each.request is None:
                sentence.is_complete, sentence.text = True, each.segment.text
            if each.request is not None:
                each.request.on_progress = self._listener(index, sentence, each.restore, tokenizer)
            followed.segments.append(each.segment)
            followed.sentences.append(sentence)
        self._texts[index] = followed
        self._grown.add(index)

    def settle(self, key: int, text: str) -> None:
        """Add the final text of a sentence with this key."""
        index, sentence = self._unsettled.pop(key, (0, None))
        if sentence is not None and not sentence.is_complete:
            sentence.text, sentence.is_complete = text, True
            self._grown.add(index)
            self._changed.set()

    async def complete(self, completions: Mapping[int, Completion]) -> None:
        """Add completions, by request id: an engine client need not report tokens before."""
        async for part in yielding_chunks(list(completions.values()), _COMPLETIONS_PER_TURN):
            for completion in part:
                if completion.request.on_progress is not None:
                    completion.request.on_progress(completion.hypotheses[0].token_ids, True)
        self._changed.set()

    def wake(self) -> None:
        """Wake a waiting reader."""
        self._changed.set()

    @property
    def has_news(self) -> bool:
        """Whether `take` may return more."""
        return self._changed.is_set()

    async def wait(self, timeout_seconds: float) -> bool:
        """Return whether there is news since the last `take`, after waiting for it up to this time.

        Other tasks run meanwhile.
        """
        await asyncio.sleep(0)
        with suppress(TimeoutError):
            if not self._changed.is_set():
                async with asyncio.timeout(timeout_seconds):
                    await self._changed.wait()
        return self._changed.is_set()

    def take(self, max_sentences: int = sys.maxsize) -> list[TextDelta]:
        """Return the final text that was not taken before, at most one delta for each text.

        After `max_sentences`, which bound the time that this takes, the rest is left to the next call.
        """
        self._changed.clear()
        for _ in range(min(len(self._unrestored), _RESTORED_PER_TURN)):
            self._unrestored.popleft()()
        if self._unrestored:
            self._changed.set()
        deltas = []
        for index in sorted(self._grown):
            text, num_read = self._texts[index].take(max_sentences)
            if text:
                deltas.append(TextDelta(index, text))
            max_sentences -= num_read
            if max_sentences <= 0:
                self._changed.set()  # perhaps there is more
                break
            self._grown.discard(index)
        return deltas

    def _listener(
        self, index: int, sentence: _Sentence, restore: Callable[[str], str | None] | None, tokenizer: Tokenizer
    ) -> Callable[[list[int], bool], None]:
        def listen(token_ids: list[int], is_complete: bool) -> None:
            sentence.token_ids, sentence.is_complete = token_ids, is_complete
            self._grown.add(index)
            self._changed.set()

        def restore_answer(token_ids: list[int]) -> None:
            if sentence.is_complete or restore is None:
                return
            if (text := restore(tokenizer.decode(token_ids))) is not None:
                sentence.text, sentence.is_complete = text, True
                self._grown.add(index)

        def listen_to_the_end(token_ids: list[int], is_complete: bool) -> None:
            if is_complete and not sentence.is_complete:
                self._unrestored.append(partial(restore_answer, token_ids))
                self._changed.set()

        return listen if restore is None else listen_to_the_end


class TextOutput:
    """Feeds the stream of a call that has one.

    Sentences whose answers are final as the model writes them are streamed by token, others as a whole. Texts with tags
    and documents are streamed when all is known. `restore` returns the final text of an answer, or None if another
    attempt may follow; `is_final` whether an answer is the text in any case.
    """

    def __init__(self, stream: TextStream | None, texts: SegmentedTexts, tokenizer: Tokenizer) -> None:
        self._stream = stream
        self._tokenizer = tokenizer
        self._followed = [
            (index, text) for index, text in enumerate(texts.texts) if texts.is_text and text.is_streamable
        ]
        self._indices = {index for index, _ in self._followed}
        self.restore: Callable[[MaskedSentence, str], str | None] = lambda _, answer: answer
        self.is_final: Callable[[MaskedSentence], bool] = lambda part: part.is_plain

    @property
    def is_streamed(self) -> bool:
        """Whether there is a stream."""
        return self._stream is not None

    @property
    def has_followed_texts(self) -> bool:
        """Whether a reader receives sentences before all are known."""
        return self._stream is not None and bool(self._followed)

    def encoded(self) -> None:
        """Follow the requests of the encoded texts; those of further attempts are not followed."""
        if self._stream is not None:
            for index, text in self._followed:
                self._stream.follow(index, self._segments(text), self._tokenizer)

    async def decoded(self, completions: Mapping[int, Completion]) -> None:
        """Add what the engine has not reported while it decoded."""
        if self._stream is not None and self._followed:
            await self._stream.complete(completions)

    def settled(self, sentences: Iterable[Sentence]) -> None:
        """Add sentences that have become final."""
        if self._stream is None:
            return
        for sentence in sentences:
            if sentence.text in self._indices:
                self._stream.settle(id(sentence), sentence.translation)

    def assembled(self, translations: Sequence[Translation]) -> None:
        """Add the texts that were not streamed sentence by sentence."""
        if self._stream is None:
            return
        for index, translation in enumerate(translations):
            if index not in self._indices:
                self._stream.add_text(index, translation.text)

    def _segments(self, text: SegmentedText) -> list[Followed]:
        found = []
        for segment, sentence in text.streamed():
            if sentence is None:
                found.append(Followed(segment))
                continue
            [part, *others] = sentence.parts or (None,)
            if isinstance(part, Restored) and not others and not part.outputs:
                found.append(Followed(replace(segment, text=part.text)))
            elif isinstance(part, Job) and not others and self.is_final(part.part):
                found.append(Followed(segment, part.request))
            elif isinstance(part, Job) and not others and not part.part.needs_attention:
                found.append(Followed(segment, part.request, partial(self.restore, part.part), id(sentence)))
            else:
                found.append(Followed(segment, key=id(sentence)))
        return found
