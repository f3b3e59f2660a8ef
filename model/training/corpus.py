"""A training corpus as token ids, and its batches as tensors."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from hashlib import sha256
from itertools import islice
from pathlib import Path
from typing import TypedDict

import numpy as np
import torch
from torch import Tensor

from model.training.batches import Indices, whole_and_part
from model.training.parallel_text import read_pairs
from model.training.settings import DataFile
from model.training.tokens import TokenIds, TokenSequences
from model.training.vocabulary import JointVocabulary

_TEXTS_AT_ONCE = 10_000


@dataclass(frozen=True, slots=True)
class Batch:
    """A batch as int64 tensors: `source` [rows, source_len], `target_inputs` and `labels` [rows, target_len].

    `target_inputs` are the labels shifted by one, after the decoder's start token. Padding is the padding token, and
    False in `source_mask`.
    """

    source: Tensor
    source_mask: Tensor
    target_inputs: Tensor
    labels: Tensor
    num_labels: int
    """Number of labels without padding."""


class CorpusRecord(TypedDict):
    """Identity of a corpus: the number of pairs of each file, and a digest of all tokens."""

    sizes: list[int]
    sha256: str


@dataclass(frozen=True, slots=True)
class Corpus:
    """Token ids of all pairs, each with the end-of-sequence token; `sizes` are the numbers of pairs of the files."""

    sources: TokenSequences
    targets: TokenSequences
    sizes: tuple[int, ...]
    padding: int
    start: int
    num_left_out: int
    """Number of pairs with a side that is too long."""

    def record(self) -> CorpusRecord:
        """Return the identity of the corpus, which must be the same when the run is resumed."""
        digest = sha256()
        for sequences in (self.sources, self.targets):
            digest.update(sequences.offsets.data)
            digest.update(sequences.tokens.data)
        return {"sizes": list(self.sizes), "sha256": digest.hexdigest()}

    def batch(self, indices: Indices, device: torch.device) -> Batch:
        """Return the pairs of these indices."""
        source = self.sources.padded(indices, self.padding)
        labels = self.targets.padded(indices, self.padding)
        target_inputs = np.concatenate([np.full((len(indices), 1), self.start), labels[:, :-1]], axis=1)
        tensors = [torch.from_numpy(array).to(device) for array in (source, target_inputs, labels)]
        return Batch(
            source=tensors[0],
            source_mask=tensors[0] != self.padding,
            target_inputs=tensors[1],
            labels=tensors[2],
            num_labels=int((labels != self.padding).sum()),
        )


def read_corpus(
    files: Iterable[DataFile], vocabulary: JointVocabulary, start: int, max_tokens: int, *, swap_columns: bool
) -> Corpus:
    """Read all pairs of the files with at most `max_tokens` on each side.

    Raises ValueError if no pair of a file or of its share remains, and for lines that are not a pair.
    """
    sources: list[TokenIds] = []
    targets: list[TokenIds] = []
    sizes: list[int] = []
    num_left_out = 0
    for file in files:
        size_before = len(sources)
        for source, target in _encoded(Path(file.path), vocabulary, swap_columns):
            if max(len(source), len(target)) > max_tokens:
                num_left_out += 1
                continue
            sources.append(source)
            targets.append(target)
        sizes.append(len(sources) - size_before)
        if sizes[-1] == 0:
            raise ValueError(f"{file.path} has no pair of at most {max_tokens} tokens a side")
        if not any(whole_and_part(sizes[-1], file.share)):
            raise ValueError(f"{file.path}@{file.share}: this share of {sizes[-1]} pairs is empty; choose a larger one")
    return Corpus(
        TokenSequences.of(sources), TokenSequences.of(targets), tuple(sizes), vocabulary.padding, start, num_left_out
    )


def _encoded(path: Path, vocabulary: JointVocabulary, swap_columns: bool) -> Iterator[tuple[TokenIds, TokenIds]]:
    pairs = read_pairs(path, swap_columns=swap_columns)
    while block := list(islice(pairs, _TEXTS_AT_ONCE)):
        sources, targets = zip(*block, strict=True)
        yield from zip(vocabulary.encode(sources), vocabulary.encode(targets), strict=True)
