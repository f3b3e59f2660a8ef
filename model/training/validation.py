"""Validation: loss, BLEU and chrF on text outside the training data."""

from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256
from itertools import islice
from pathlib import Path

import numpy as np
import torch
from sacrebleu.metrics import BLEU, CHRF
from torch import Tensor
from torch.nn import functional

from model.training.corpus import Corpus, Indices, TokenSequences
from model.training.parallel_text import Languages, read_pairs
from model.training.vocabulary import JointVocabulary
from model.transformer import DecoderCache, Transformer

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
    sources, targets = zip(*pairs, strict=True)
    encoded = vocabulary.encode(sources), vocabulary.encode_targets(targets)
    sides = tuple(map(TokenSequences.of, encoded))
    corpus = Corpus(sides[0], sides[1], (len(pairs),), vocabulary.padding, start, 0)
    return Validation(corpus, [target for _, target in pairs], vocabulary)


@torch.inference_mode()
def decode_greedily(model: Transformer, source: Tensor, source_mask: Tensor, max_new_tokens: int) -> Tensor:
    """Return the most probable tokens [rows, at most max_new_tokens]; padding follows the end-of-sequence token."""
    config = model.config
    memory = model.decoder.project_memory(model.encode(source, source_mask))
    rows = source.shape[0]
    tokens = torch.full((rows, 1), config.decoder_start_token_id, dtype=torch.int64, device=source.device)
    has_ended = torch.zeros(rows, dtype=torch.bool, device=source.device)
    suppressed = [*config.suppressed_token_ids, config.pad_token_id]
    answer: list[Tensor] = []
    past: DecoderCache | None = None
    for _ in range(max_new_tokens):
        logits, past = model.decode(tokens, memory, source_mask, past)
        logits[..., suppressed] = -torch.inf
        tokens = logits.argmax(dim=-1).masked_fill(has_ended[:, None], config.pad_token_id)
        answer.append(tokens)
        has_ended |= tokens[:, 0] == config.eos_token_id
        if bool(has_ended.all()):
            break
    return torch.cat(answer, dim=1)


def label_loss(logits: Tensor, labels: Tensor, padding: int, smoothing: float) -> Tensor:
    """Return the cross-entropy of `labels` [rows, target_len] under `logits` [rows, target_len, vocab].

    It is the sum over all labels except `padding`, in float32. With label smoothing (Szegedy et al. 2016,
    arXiv:1512.00567), the label has the probability 1 - smoothing, and all tokens, the label included, share the rest.
    """
    return functional.cross_entropy(
        logits.flatten(0, 1).float(),
        labels.flatten(),
        ignore_index=padding,
        label_smoothing=smoothing,
        reduction="sum",
    )


def label_losses(logits: Tensor, labels: Tensor, padding: int) -> Tensor:
    """Return the cross-entropy of each label [rows, target_len] without smoothing, 0 at `padding`, in float32."""
    flat = functional.cross_entropy(
        logits.flatten(0, 1).float(), labels.flatten(), ignore_index=padding, reduction="none"
    )
    return flat.view_as(labels)
