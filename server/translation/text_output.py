"""The stream of one call, fed by the pipeline."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial

from server.interface.request import Completion
from server.text.protection.masked_sentence import MaskedSentence, Restored
from server.text.tokenizers.tokenizer import Tokenizer
from server.translation.reading import SegmentedTexts
from server.translation.sentences import Job, SegmentedText, Sentence
from server.translation.text_stream import Followed, TextStream
from server.translation.types import Translation


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
