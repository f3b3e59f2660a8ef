"""The stream of one call, fed by the pipeline."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import partial

from server.interface.request import Completion
from server.text.protection.protected import Protected, Restored, with_outputs
from server.text.tokenizers.tokenizer import Tokenizer
from server.translation.reading import SegmentedTexts
from server.translation.sentences import Job, SegmentedText, Sentence
from server.translation.text_stream import Followed, TextStream
from server.translation.types import Translation


class TextOutput:
    """Feeds the stream of a call that has one.

    Sentences without items are streamed by token, those with items as a whole. Texts with tags and documents are
    streamed when all is known.
    """

    def __init__(self, stream: TextStream | None, texts: SegmentedTexts, tokenizer: Tokenizer) -> None:
        self._stream = stream
        self._texts = texts
        self._tokenizer = tokenizer
        self._followed = [
            (index, text) for index, text in enumerate(texts.texts) if texts.is_text and text.is_streamable
        ]
        self._is_followed = False

    @property
    def has_followed_texts(self) -> bool:
        """Whether a reader receives sentences before all are known."""
        return self._stream is not None and bool(self._followed)

    def encoded(self) -> None:
        """Follow the requests of the encoded texts; those of further rounds are not followed."""
        if self._stream is None or self._is_followed:
            return
        self._is_followed = True
        for index, text in self._followed:
            self._stream.follow(index, _followed(text), self._tokenizer)

    async def decoded(self, completions: Mapping[int, Completion]) -> None:
        """Add what the engine has not reported while it decoded."""
        if self._stream is not None and self._followed:
            await self._stream.complete(completions)

    def restored(self, sentences: Iterable[Sentence], unsettled: Collection[Sentence]) -> None:
        """Add the sentences that have become final, all but those that are `unsettled`."""
        if self._stream is None or self._texts.is_plain:
            return
        waiting = set(map(id, unsettled))
        followed = {index for index, _ in self._followed}
        for sentence in sentences:
            if sentence.text in followed and id(sentence) not in waiting:
                self._stream.settle(id(sentence), written(sentence))

    def assembled(self, translations: Sequence[Translation]) -> None:
        """Add the texts that were not streamed sentence by sentence."""
        if self._stream is None:
            return
        followed = {index for index, _ in self._followed}
        for index, translation in enumerate(translations):
            if index not in followed:
                self._stream.add_text(index, translation.text)


def _followed(text: SegmentedText) -> list[Followed]:
    found = []
    for segment, sentence in text.streamed():
        if sentence is None:
            found.append(Followed(segment))
            continue
        [part, *others] = sentence.parts or (None,)
        if isinstance(part, Restored) and not others and not part.outputs:
            found.append(Followed(segment))
        elif isinstance(part, Job) and not others and not part.protected.may_change_answers:
            found.append(Followed(segment, part.request))
        elif isinstance(part, Job) and not others and not part.protected.places_signs:
            found.append(Followed(segment, part.request, partial(_restored, part.protected), id(sentence)))
        else:
            found.append(Followed(segment, key=id(sentence)))
    return found


def _restored(protected: Protected, answer: str) -> str | None:
    """Return the final text of the best hypothesis; None if it lost something."""
    restored = protected.restore(answer, None)
    return with_outputs(restored) if isinstance(restored, Restored) else None


def written(sentence: Sentence) -> str:
    """Return the translation of a sentence, without tags."""
    return "".join(with_outputs(part if isinstance(part, Restored) else part.answers[0][0]) for part in sentence.parts)
