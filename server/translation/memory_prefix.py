"""Beginnings of translations from a translation memory, for sentences that begin like a stored one.

The model reads the stored sentence and its translation. If the words that it aligns with the common beginning are the
beginning of the translation, the new translation begins with them.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from server.interface.decoding_options import DecodingOptions
from server.interface.request import Completion, Request, SentenceParams
from server.text.protection.word_alignment import by_words, links, words_of
from server.text.tokenizers.tokenizer import Tokenizer
from server.translation.sentence_encoder import SentenceEncoder
from server.translation.sentences import Sentence

_OPTIONS = DecodingOptions(return_scores=True)


def alignment_requests(
    sentences: Sequence[Sentence], encoder: SentenceEncoder, tokenizer: Tokenizer
) -> list[tuple[Sentence, Request]]:
    """Return the requests that align the stored translations of similar sentences; those too long have none."""
    found = []
    for sentence in sentences:
        match = sentence.memory
        if match is None or match.is_exact or sentence.unit.protected or not _num_shared(sentence):
            continue
        request = encoder.forced(match.source, tokenizer.encode_target(match.target), SentenceParams(_OPTIONS))
        if request is not None:
            found.append((sentence, request))
    return found


def set_prefixes(
    aligned: Sequence[tuple[Sentence, Request]],
    completions: Mapping[int, Completion],
    encoder: SentenceEncoder,
    tokenizer: Tokenizer,
) -> None:
    """Give sentences the tokens with which their translations begin."""
    for sentence, request in aligned:
        match, [hypothesis] = sentence.memory, completions[request.id].hypotheses
        if match is None or hypothesis.details is None or hypothesis.details.attention is None:
            continue
        source_spans = encoder.source_spans(match.source)
        target_spans = tokenizer.target_spans(hypothesis.token_ids, match.target)
        weights = np.ascontiguousarray(hypothesis.details.attention[: len(target_spans)])
        if weights.shape != (len(target_spans), len(source_spans)):
            continue
        source, target = words_of(match.source), words_of(match.target)
        aligned_with = links(
            [match.source[slice(*each)] for each in source],
            [match.target[slice(*each)] for each in target],
            by_words(weights, target_spans, target, source_spans, source),
        ).argmax(axis=1)
        is_shared = aligned_with < _num_shared(sentence)
        length = int(is_shared.sum())
        if length and is_shared[:length].all() and length < len(target):
            prefix = tokenizer.encode_target(match.target[: target[length - 1][1]])
            sentence.prefix = tuple(prefix) if tokenizer.unknown_token not in prefix else ()


def _num_shared(sentence: Sentence) -> int:
    """Return with how many words a sentence and its stored one begin."""
    assert sentence.memory is not None
    one, other = (
        [text[slice(*each)] for each in words_of(text)] for text in (sentence.written, sentence.memory.source)
    )
    return next((index for index, pair in enumerate(zip(one, other, strict=False)) if pair[0] != pair[1]), 0)
