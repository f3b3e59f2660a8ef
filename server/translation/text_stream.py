"""Streams of translations, from the tokens that the engine reports to the text that a reader takes."""

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from server.interface.errors import EngineFailed
from server.interface.request import Completion, Request
from server.text.segmentation.sentences import Segment
from server.text.tokenizers.tokenizer import Tokenizer


@dataclass(frozen=True, slots=True)
class TextDelta:
    """Text that continues the last delta of the same text. `index` is that of the text."""

    index: int
    text: str


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

    def take(self) -> str:
        """Return the final text that was not taken before; a sentence comes after all sentences before it."""
        parts = []
        while self.position < len(self.segments):
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
        return "".join(parts)


class TextStream:
    """The texts of one translation as they become final.

    Text that becomes final while the reader is busy makes one delta, so that a slow reader never has more to read than
    the answer. Nothing can be taken before the engine has reported a token. Use it on the event loop's thread only.
    """

    def __init__(self) -> None:
        self._texts: dict[int, _Text] = {}
        self._indices: Sequence[int] | None = None  # of a view: the indices of its texts in the whole stream
        self._changed = asyncio.Event()
        self._grown: set[int] = set()  # texts that may have something to take

    def view(self, indices: Sequence[int]) -> "TextStream":
        """Return a view of the stream restricted to the texts at `indices`."""
        view = TextStream()
        view._texts, view._changed, view._grown = self._texts, self._changed, self._grown
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

    def follow(self, texts: Sequence[Iterable[tuple[Segment, Request | None]]], tokenizer: Tokenizer) -> None:
        """Follow the requests of texts, segment by segment; a segment without a request is final as it is."""
        for number, segments in enumerate(texts):
            index = self._index(number)
            followed = _Text([], [], tokenizer)
            for segment, request in segments:
                sentence = _Sentence() if request is not None else _Sentence(is_complete=True, text=segment.text)
                if request is not None:
                    request.on_progress = self._listener(index, sentence)
                followed.segments.append(segment)
                followed.sentences.append(sentence)
            self._texts[index] = followed
            self._grown.add(index)

    def complete(self, completions: Mapping[int, Completion]) -> None:
        """Add completions, by request id: an engine client need not report tokens before."""
        for completion in completions.values():
            if completion.request.on_progress is not None:
                completion.request.on_progress(completion.hypotheses[0].token_ids, True)
        self._changed.set()

    def wake(self) -> None:
        """Wake a waiting reader."""
        self._changed.set()

    async def wait(self, timeout_seconds: float) -> bool:
        """Return whether there is news since the last `take`, after waiting for it up to this time."""
        with suppress(TimeoutError):
            if not self._changed.is_set():
                async with asyncio.timeout(timeout_seconds):
                    await self._changed.wait()
        return self._changed.is_set()

    def take(self) -> list[TextDelta]:
        """Return the final text that was not taken before, at most one delta for each text."""
        self._changed.clear()
        grown = sorted(self._grown)
        self._grown.clear()  # not a new set: views share it
        taken = [(index, self._texts[index].take()) for index in grown]
        return [TextDelta(index, text) for index, text in taken if text]

    def _listener(self, index: int, sentence: _Sentence) -> Callable[[list[int], bool], None]:
        def listen(token_ids: list[int], is_complete: bool) -> None:
            sentence.token_ids, sentence.is_complete = token_ids, is_complete
            self._grown.add(index)
            self._changed.set()

        return listen
