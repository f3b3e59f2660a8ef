"""Subword regularisation: random tokens of the source are split into smaller ones.

It has the effect of BPE-dropout (Provilkov et al. 2020, arXiv:1910.13267) for every kind of SentencePiece model. Splits
need no text, and depend on the given generator only, so that a resumed run gets equal batches.
"""

from collections.abc import Callable, Sequence

import numpy as np

from model.training.tokens import TokenIds
from model.training.vocabulary import JointVocabulary


class SubwordSplitter:
    """Random splits of the tokens of sequences."""

    def __init__(self, vocabulary: JointVocabulary, probability: float) -> None:
        self._probability = probability
        self._parts = {token: np.array(parts, dtype=np.int32) for token, parts in vocabulary.splits().items()}
        self._can_split = np.zeros(len(vocabulary), dtype=bool)
        self._can_split[list(self._parts)] = True

    def for_batch(self, seed: Sequence[int], max_tokens: int) -> Callable[[TokenIds], TokenIds]:
        """Return a function that splits the sequences of one batch. Equal seeds split equally."""
        random = np.random.default_rng(seed)
        return lambda tokens: self.split(tokens, random, max_tokens)

    def split(self, tokens: TokenIds, random: np.random.Generator, max_tokens: int) -> TokenIds:
        """Return the tokens, each split with the probability; unchanged if they would be more than `max_tokens`."""
        chosen = np.flatnonzero((random.random(len(tokens)) < self._probability) & self._can_split[tokens])
        parts: list[TokenIds] = []
        start = 0
        for index in chosen:
            parts += [tokens[start:index], self._parts[int(tokens[index])]]
            start = int(index) + 1
        found = np.concatenate([*parts, tokens[start:]])
        return found if len(found) <= max_tokens else tokens
