"""Texts on their way from an engine to a reader, as they become final."""

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from server.interface.errors import EngineFailed
from server.interface.request import Completion, Request
from server.text.segmentation.sentences import Segment
from server.text.tokenizers.marian import Tokenizer


@dataclass(frozen=True, slots=True)
class TextDelta:
    """Text that goes on where the last piece of the same text ended. `index` is that of the text."""

    index: int
    text: str


@dataclass(slots=True)
class _Sentence:
    """What is known of the translation of one segment; of one that passes through, everything."""

    token_ids: list[int] = field(default_factory=list)
    is_complete: bool = False
    text: str | None = None  # of one that passes through

    def beginning(self, tokenizer: Tokenizer | None) -> str:
        """The text it begins with, in the end all of it."""
        if self.text is not None or tokenizer is None:
            return self.text or ""
        return tokenizer.decode(self.token_ids) if self.is_complete else tokenizer.decode_beginning(self.token_ids)


@dataclass(slots=True)
class _Text:
    """The sentences of one text, and how far it has been read: `taken` of the sentence at `place`."""

    segments: list[Segment]
    sentences: list[_Sentence]
    tokenizer: Tokenizer | None  # None: all of it passes through
    place: int = 0
    taken: str = ""

    def take(self) -> str:
        """What is final and was not taken before; a sentence only after all of those before it."""
        parts = []
        while self.place < len(self.segments):
            segment, sentence = self.segments[self.place], self.sentences[self.place]
            beginning = sentence.beginning(self.tokenizer)
            if not beginning.startswith(self.taken):
                # A SentencePiece model may rewrite text as a whole. None that we know does.
                raise EngineFailed("this model's translations cannot be streamed: their text changes as they grow")
            if not self.taken and (beginning or sentence.is_complete):
                parts.append(segment.before)
            parts.append(beginning[len(self.taken) :])
            self.taken = beginning
            if not sentence.is_complete:
                break
            parts.append(segment.after)
            self.place += 1
            self.taken = ""
        return "".join(parts)


class TextStream:
    """One translation as it becomes final, from the tokens that its requests are told to the pieces a reader takes.

    What becomes final while the reader is busy makes one piece: for a slow reader waits never more than the answer.
    Nothing becomes readable before the engine has taken the requests and one of them has got on. Belongs to the event
    loop's thread.
    """

    def __init__(self) -> None:
        self._texts: dict[int, _Text] = {}
        self._places: Sequence[int] | None = None  # of the texts of a part, in the whole
        self._changed = asyncio.Event()
        self._grown: set[int] = set()  # texts that may have something to take

    def part(self, places: Sequence[int]) -> "TextStream":
        """The same feed for whoever translates the texts at these places and no others."""
        part = TextStream()
        part._texts, part._changed, part._grown = self._texts, self._changed, self._grown
        part._places = places
        return part

    def whole(self, number: int, translation: str) -> None:
        """All of the text of this number is there at once."""
        place = self._place(number)
        self._texts[place] = _Text([Segment(translation, "", "")], [_Sentence(is_complete=True, text="")], None)
        self._grown.add(place)
        self._changed.set()

    def _place(self, number: int) -> int:
        return number if self._places is None else self._places[number]

    def open(self, texts: Sequence[Iterable[tuple[Segment, Request | None]]], tokenizer: Tokenizer) -> None:
        """Follow the requests of texts, segment by segment; a segment without a request is final as it is."""
        for number, segments in enumerate(texts):
            index = self._place(number)
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
        """Take these answers, by request id, as told: a generator need not have told anything."""
        for completion in completions.values():
            if completion.request.on_progress is not None:
                completion.request.on_progress(completion.hypotheses[0].token_ids, True)
        self._changed.set()

    def wake(self) -> None:
        """Let a waiting reader look."""
        self._changed.set()

    async def wait(self, timeout_seconds: float) -> bool:
        """Whether something has happened since the last `take`, or does within this time."""
        with suppress(TimeoutError):
            if not self._changed.is_set():
                async with asyncio.timeout(timeout_seconds):
                    await self._changed.wait()
        return self._changed.is_set()

    def take(self) -> list[TextDelta]:
        """What is final and was not taken before, at most one piece a text."""
        self._changed.clear()
        grown = sorted(self._grown)
        self._grown.clear()  # not a new set: parts share it
        taken = [(index, self._texts[index].take()) for index in grown]
        return [TextDelta(index, text) for index, text in taken if text]

    def _listener(self, index: int, sentence: _Sentence) -> Callable[[list[int], bool], None]:
        def listen(token_ids: list[int], is_complete: bool) -> None:
            sentence.token_ids, sentence.is_complete = token_ids, is_complete
            self._grown.add(index)
            self._changed.set()

        return listen
