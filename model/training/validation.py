"""Validation: loss, BLEU and chrF on text outside the training data."""

from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256
from itertools import islice
from pathlib import Path

import numpy as np
import torch
from sacrebleu.metrics import BLEU, CHRF

from model.training.batches import Indices
from model.training.corpus import Corpus
from model.training.decoding import decode_greedily
from model.training.loss import label_loss
from model.training.parallel_text import read_pairs
from model.training.tokens import TokenSequences
from model.training.translation_memory import Languages
from model.training.vocabulary import JointVocabulary
from model.transformer import Transformer

_ROWS = 64


@dataclass(frozen=True, slots=True)
class Scores:
    """Scores: mean negative log-likelihood of a label without smoothing; BLEU and chrF with sacrebleu's defaults."""

    loss: float
    bleu: float
    chrf: float


class Validation:
    """Pairs that a model decodes greedily, and their references."""

    def __init__(self, corpus: Corpus, references: list[str], vocabulary: JointVocabulary) -> None:
        digest = sha256("\n".join(references).encode())
        digest.update(corpus.record()["sha256"].encode())
        self.sha256 = digest.hexdigest()
        """Digest of tokens and references; scores with different digests are not comparable."""
        self._corpus = corpus
        self._references = references
        self._vocabulary = vocabulary

    def __call__(self, model: Transformer, device: torch.device) -> Scores:
        """Return the scores of a model in evaluation mode."""
        loss, num_labels = 0.0, 0
        answers = [""] * len(self._references)
        for indices in self._batches():
            batch = self._corpus.batch(indices, device)
            with torch.inference_mode():
                logits = model(batch.source, batch.source_mask, batch.target_inputs)
                loss += float(label_loss(logits, batch.labels, self._corpus.padding, 0.0))
            num_labels += batch.num_labels
            longest = min(2 * batch.source.shape[1] + 10, model.config.max_target_tokens)
            tokens = decode_greedily(model, batch.source, batch.source_mask, longest)
            for index, row in zip(indices, tokens.tolist(), strict=True):
                answers[int(index)] = self._vocabulary.decode(row)
        return Scores(
            loss / num_labels,
            BLEU().corpus_score(answers, [self._references]).score,
            CHRF().corpus_score(answers, [self._references]).score,
        )

    def _batches(self) -> Iterator[Indices]:
        by_length = np.argsort(self._corpus.sources.lengths, kind="stable")
        for first in range(0, len(by_length), _ROWS):
            yield by_length[first : first + _ROWS]


def read_validation(
    path: Path,
    vocabulary: JointVocabulary,
    start: int,
    max_pairs: int,
    languages: Languages | None = None,
    *,
    swap_columns: bool,
) -> Validation:
    """Read the first `max_pairs` pairs of a file, of any length. Raises ValueError for an empty file."""
    pairs = list(islice(read_pairs(path, languages, swap_columns=swap_columns), max_pairs))
    if not pairs:
        raise ValueError(f"{path} has no pairs")
    sources, targets = (TokenSequences.of(vocabulary.encode(texts)) for texts in zip(*pairs, strict=True))
    corpus = Corpus(sources, targets, (len(pairs),), vocabulary.padding, start, 0)
    return Validation(corpus, [target for _, target in pairs], vocabulary)
