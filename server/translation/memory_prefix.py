"""Beginnings of translations from a translation memory, for sentences that are similar to a stored one.

The model scores the stored translation twice: as that of its own source, and as that of the new sentence. Tokens that
depend on what differs become less likely, terms that the model would not choose do not. The new translation begins with
the words in front of the first such token.
"""

from collections.abc import Mapping, Sequence

from server.interface.decoding_options import DecodingOptions
from server.interface.request import Completion, Request, SentenceParams
from server.text.tokenizers.tokenizer import Tokenizer
from server.translation.engine_requests import SentenceEncoder
from server.translation.reading import Sentence

_PARAMS = SentenceParams(DecodingOptions(return_scores=True))
_MAX_LOSS = 0.5  # of a token's log-probability with the new sentence

Scored = tuple[Sentence, Request, Request]


def scoring_requests(sentences: Sequence[Sentence], encoder: SentenceEncoder, tokenizer: Tokenizer) -> list[Scored]:
    """Return the sentences that are similar to stored ones, with the requests that score the stored translations.

    There are none for sentences with spans that must survive, and for those that are too long for the model.
    """
    found = []
    for sentence in sentences:
        match = sentence.memory
        if match is None or match.is_exact or sentence.unit.protected_in(sentence.start, sentence.end):
            continue
        target = tokenizer.encode_target(match.target)
        requests = [encoder.forced(text, target, _PARAMS) for text in (match.source, sentence.written)]
        if requests[0] is not None and requests[1] is not None and tokenizer.unknown_token not in target:
            found.append((sentence, requests[0], requests[1]))
    return found


def set_prefixes(scored: Sequence[Scored], completions: Mapping[int, Completion], tokenizer: Tokenizer) -> None:
    """Give sentences the tokens with which their translations begin."""
    for sentence, *requests in scored:
        details = [completions[request.id].hypotheses[0].details for request in requests]
        if sentence.memory is None or details[0] is None or details[1] is None:
            continue
        tokens = tokenizer.encode_target(sentence.memory.target)
        scores = [each.log_probabilities[-len(tokens) - 1 : -1] for each in details if each is not None]
        losses = [before - now for before, now in zip(*scores, strict=True)]
        same = next((index for index, loss in enumerate(losses) if loss > _MAX_LOSS), len(losses))
        spans = tokenizer.target_spans(tokens, sentence.memory.target)
        if not 0 < same < len(spans):
            continue
        # A word of several tokens is the same as a whole or not at all.
        words = sentence.memory.target[: spans[same][0] + 1].split(" ")[:-1]
        if beginning := " ".join(words).rstrip():
            sentence.prefix = tuple(tokenizer.encode_target(beginning))
