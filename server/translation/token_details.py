"""Token details of a sentence: pieces of text, log-probabilities, alternatives, alignment, attention."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from server.interface.decoding_options import DetailOptions
from server.interface.interruption import checkpoint
from server.interface.request import FinishReason, Hypothesis, TokenIds
from server.text.tokenizers.tokenizer import Tokenizer
from server.translation.types import SentenceDetails, TokenScore


def sentence_details(
    source: TokenIds, hypothesis: Hypothesis, options: DetailOptions, tokenizer: Tokenizer
) -> SentenceDetails:
    """Return token scores, alternatives and alignments of one translated sentence."""
    checkpoint()
    details = hypothesis.details
    assert details is not None, "a request for details has a decoder that records them"
    tokens = list(hypothesis.token_ids)
    if hypothesis.finish_reason is FinishReason.STOP:
        tokens.append(tokenizer.end_token)
    attention = details.attention
    return SentenceDetails(
        source_tokens=tokenizer.source_pieces(source.tolist()),
        target_tokens=tokenizer.target_pieces(tokens),
        token_scores=details.log_probabilities if options.return_token_scores else None,
        token_alternatives=_in_pieces(details.alternatives, tokenizer) if options.num_token_alternatives else None,
        alignment=_alignment(attention) if options.return_alignments and attention is not None else None,
        attention=attention if options.return_attention else None,
    )


def _in_pieces(alternatives: Sequence[Sequence[tuple[int, float]]], tokenizer: Tokenizer) -> list[list[TokenScore]]:
    return [[TokenScore(tokenizer.target_pieces([token])[0], score) for token, score in best] for best in alternatives]


def _alignment(attention: NDArray[np.float32]) -> list[int]:
    """Return the source token that each target token attends to most, except the end, where attention rests."""
    but_the_end = max(attention.shape[1] - 1, 1)  # an empty source has nothing else
    return [int(place) for place in attention[:, :but_the_end].argmax(axis=1)]
