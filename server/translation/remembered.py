"""Translations from a translation memory as the model reads them.

Where a sentence is similar to a stored one, the model scores the stored translation twice: as that of its own source,
and as that of the new sentence. Tokens that depend on what differs become less likely, terms that the model would not
choose do not. The new translation begins with the words in front of the first such token. Where it is equal and has
tags, the attention of the stored translation tells where they are in it.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from server.interface.decoding_options import DecodingOptions
from server.interface.request import Completion, Request, SentenceParams, TokenDetails, Tokens
from server.text.protection.masked_sentence import MaskedSentence, TokenAttention
from server.text.protection.word_alignment import Range
from server.text.tokenizers.tokenizer import Tokenizer
from server.translation.engine_requests import SentenceEncoder
from server.translation.reading import Sentence

_PARAMS = SentenceParams(DecodingOptions(return_scores=True))
_MAX_LOSS = 0.5  # of a token's log-probability with the new sentence

Reading = tuple[Sentence, Sequence[Request]]


def reading_requests(sentences: Sequence[Sentence], encoder: SentenceEncoder, tokenizer: Tokenizer) -> list[Reading]:
    """Return the sentences whose stored translations the model reads, with the requests for that.

    There are none for sentences with spans that must survive, and for those that are too long for the model.
    """
    found: list[Reading] = []
    for sentence in sentences:
        if (match := sentence.memory) is None:
            continue
        unit, span = sentence.unit, (sentence.start, sentence.end)
        target = tokenizer.encode_target(match.target)
        if match.is_exact:
            has_tags = MaskedSentence(unit, *span, sentence.written).needs_attention
            # Its tokens must be those of the text, character by character.
            if not has_tags or len(tokenizer.decode(target)) != len(match.target):
                continue
            requests = [encoder.forced(sentence.written, target, encoder.attending(_PARAMS))]
        elif unit.protected_in(*span) or tokenizer.unknown_token in target:
            continue
        else:
            requests = [encoder.forced(text, target, _PARAMS) for text in (match.source, sentence.written)]
        accepted = [each for each in requests if each is not None]
        if len(accepted) == len(requests):
            found.append((sentence, accepted))
    return found


def note_readings(
    read: Sequence[Reading], completions: Mapping[int, Completion], encoder: SentenceEncoder, tokenizer: Tokenizer
) -> None:
    """Give sentences the tokens with which their translations begin, or the attention of those that are complete."""
    for sentence, requests in read:
        if sentence.memory is None:
            continue
        target = sentence.memory.target
        tokens = tokenizer.encode_target(target)
        spans = tokenizer.target_spans(tokens, target)
        details = [each for request in requests if (each := completions[request.id].hypotheses[0].details) is not None]
        if sentence.memory.is_exact:
            sentence.attention = _attention(details, len(tokens), encoder.source_spans(sentence.written), spans)
        elif len(details) == 2:
            sentence.prefix = _prefix(details, tokens, spans, target, tokenizer)


def _attention(
    details: Sequence[TokenDetails], num_tokens: int, source_spans: Sequence[Range], target_spans: Sequence[Range]
) -> TokenAttention | None:
    if not details or details[0].attention is None:
        return None
    weights = details[0].attention[-num_tokens:]
    if weights.shape != (len(target_spans), len(source_spans)):
        return None
    return TokenAttention(np.ascontiguousarray(weights), source_spans, target_spans)


def _prefix(
    details: Sequence[TokenDetails], tokens: Sequence[int], spans: Sequence[Range], target: str, tokenizer: Tokenizer
) -> Tokens:
    scores = [each.log_probabilities[-len(tokens) - 1 : -1] for each in details]
    losses = [before - now for before, now in zip(*scores, strict=True)]
    same = next((index for index, loss in enumerate(losses) if loss > _MAX_LOSS), len(losses))
    if not 0 < same < len(spans):
        return ()
    # A word of several tokens is the same as a whole or not at all.
    words = target[: spans[same][0] + 1].split(" ")[:-1]
    return tuple(tokenizer.encode_target(" ".join(words).rstrip())) if words else ()
