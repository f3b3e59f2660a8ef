"""The stream of one call, fed by the pipeline."""

from collections.abc import Mapping, Sequence

from server.interface.request import Completion
from server.text.tokenizers.tokenizer import Tokenizer
from server.translation.reading import SegmentedTexts
from server.translation.text_stream import TextStream
from server.translation.types import Translation


class TextOutput:
    """Feeds the stream of a call that has one: plain texts by token, all others as a whole."""

    def __init__(self, stream: TextStream | None, texts: SegmentedTexts, tokenizer: Tokenizer) -> None:
        self._stream = stream
        self._tokens = stream if texts.is_plain else None
        self._texts = texts
        self._tokenizer = tokenizer

    def encoded(self) -> None:
        """Follow the requests of the encoded texts."""
        if self._tokens is not None:
            self._tokens.follow([text.streamed() for text in self._texts.texts], self._tokenizer)

    def decoded(self, completions: Mapping[int, Completion]) -> None:
        """Add what the engine has not reported while it decoded."""
        if self._tokens is not None:
            self._tokens.complete(completions)

    def assembled(self, translations: Sequence[Translation]) -> None:
        """Add the texts that were not streamed by token."""
        if self._stream is not None and self._tokens is None:
            for index, translation in enumerate(translations):
                self._stream.add_text(index, translation.text)
