"""Decoding of live sentences with one model: from a text and its committed tokens to a continuation and back."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
import regex
from numpy.typing import NDArray

from server.interface.decoding_options import DecodingOptions
from server.interface.request import Completion, Request, SentenceParams, Timings, Tokens
from server.live.policies import Continuation
from server.live.reading import UNSPACED, Mask, Reading, source_words
from server.text.protection.word_alignment import Range
from server.text.tokenizers.tokenizer import Tokenizer
from server.translation.engine_requests import first_token
from server.translation.pipeline import Pipeline
from server.translation.types import TranslationRequest

_INSIDE_WORD = regex.compile(rf"(?!{UNSPACED})[\w\p{{M}}]")
_MAX_TARGET_FACTOR, _SHORT_TARGET_TOKENS = 3, 20  # a longer continuation is a loop


@dataclass(frozen=True, slots=True)
class LiveSentence:
    """A sentence of the text that is not settled. `start` and `end` are in that text; the end has the white space.

    The translation goes on after the `prefix`. A `closed` sentence gets no further words.
    """

    text: str
    start: int
    end: int
    reading: Reading
    prefix: Tokens
    closed: bool


@dataclass(frozen=True, slots=True)
class Decoded:
    """A continuation as text. Its tokens begin at the characters `starts` [num_tokens], and `signs` are its masks.

    Another one can begin with `max_prefix` of its tokens.
    """

    continuation: Continuation
    text: str
    starts: Sequence[int]
    signs: Sequence[tuple[Range, Mask]]
    tokenizer: Tokenizer
    max_prefix: int

    def beginning(self, num_tokens: int) -> str:
        """Return the text of the first tokens."""
        end = self.starts[num_tokens] if num_tokens < len(self.starts) else len(self.text)
        return self.text[:end].rstrip()

    def border(self, num_tokens: int, at_least: int) -> int:
        """Return the largest number of tokens up to `num_tokens` that end no word or mask halfway; else `at_least`."""
        for count in range(min(num_tokens, len(self.starts), self.max_prefix), at_least, -1):
            position = self.starts[count] if count < len(self.starts) else len(self.text)
            around = self.text[max(position - 1, 0) : position + 1]
            if len(around) == 2 and all(map(_INSIDE_WORD.match, around)):
                continue
            if any(start < position < end for (start, end), _ in self.signs):
                continue
            # A character of several tokens must be whole.
            if self.tokenizer.decode_beginning(self.continuation.tokens[:count]) == self.beginning(count):
                return count
        return at_least


class LiveModel:
    """Requests for the sentences of one session, and what their completions mean."""

    def __init__(self, pipeline: Pipeline, source: str, target: str, beam_size: int | None) -> None:
        """Raises `InvalidRequest` for a beam size that the server does not allow."""
        config = pipeline.bundle.config
        self.pipeline, self.source, self.target = pipeline, source, target
        self.tokenizer: Tokenizer = pipeline.tokenizer
        self._shapes = config.shapes
        self._max_prefix = config.shapes.max_target_tokens - 1
        asked = TranslationRequest((), source, target, DecodingOptions(beam_size=beam_size))
        self._params = replace(
            pipeline.limits.sentence_params(asked, config.shapes),
            first_token=first_token(config, target),
            return_attention=True,
            # Its attention is clearer than that of the last one.
            alignment_layer=max(config.shapes.num_decoder_layers - 2, 0),
        )

    def fits(self, text: str) -> bool:
        """Return whether the model takes a text."""
        return self.tokenizer.count_tokens(text) <= self._shapes.max_source_tokens

    def read(self, text: str, held: Sequence[Mask] = ()) -> Reading:
        """Return a sentence as the model reads it; `held` are masks that its translation begins with."""
        reading = Reading.of(text, self.pipeline.masked_spans(text), self.pipeline.masks, held)
        return reading if self.fits(reading.text) else Reading.of(text, (), (), held)

    def request(self, sentence: LiveSentence) -> Request:
        """Return the request for a sentence."""
        prefix = sentence.prefix
        source = self.tokenizer.encode(sentence.reading.text, self.target, self.source)
        left = max(_MAX_TARGET_FACTOR * len(source), _SHORT_TARGET_TOKENS) - len(prefix)
        limit = max(min(left, self._shapes.max_target_tokens - len(prefix)), 1)
        params = _continued(self._params, prefix, limit)
        return Request(source, params, Timings(arrived=0.0), accepted_earlier=True, cacheable=False)

    def decoded(self, reading: Reading, completion: Completion) -> Decoded:
        """Return the continuation of a sentence."""
        text = reading.text
        hypothesis = completion.hypotheses[0]
        tokens = tuple(hypothesis.token_ids)
        target = self.tokenizer.decode(tokens)
        spans = self.tokenizer.target_spans(tokens, target)
        details = hypothesis.details
        assert details is not None
        assert details.attention is not None, "it was requested"
        attended = _attended(details.attention[: len(tokens)], self.tokenizer.source_spans(text), text)
        starts = [start for start, _ in spans]
        words = [start for start, _ in source_words(target)]
        counts = np.searchsorted(words, [max(end, start + 1) for start, end in spans], side="left").tolist()
        continuation, signs = Continuation(tokens, attended, counts), list(reading.signs_in(target))
        return Decoded(continuation, target, starts, signs, self.tokenizer, self._max_prefix)


@lru_cache(maxsize=4096)
def _continued(params: SentenceParams, prefix: Tokens, max_new_tokens: int) -> SentenceParams:
    return replace(
        params,
        target_prefix=prefix,
        first_token=None if prefix else params.first_token,  # the prefix has it
        max_new_tokens=max_new_tokens,
    )


def _attended(attention: NDArray[np.float32], spans: Sequence[Range], text: str) -> list[int]:
    """Return the source word that each target token attends to most, from [num_tokens, source_len]."""
    words = source_words(text)
    if not words:
        return [0] * len(attention)
    ends = [end for _, end in words]
    of_word = np.zeros((len(spans), len(words)), np.float32)
    for index, (start, end) in enumerate(spans):
        if start < end:  # not the end of the sequence, where attention goes that has nowhere to go
            word = int(np.searchsorted(ends, end, side="left"))
            of_word[index, min(word, len(words) - 1)] = 1
    best: list[int] = (attention @ of_word).argmax(axis=1).tolist()
    return best
