"""A training corpus as token ids, and its batches as tensors."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from itertools import islice
from pathlib import Path
from typing import TypedDict

import numpy as np
import torch
from torch import Tensor

from model.training.augmentation import Augmentation
from model.training.batches import Indices, whole_and_part
from model.training.parallel_text import read_pairs
from model.training.settings import DataFile
from model.training.tokens import TokenIds, TokenSequences, padded_rows
from model.training.translation_memory import Languages, Pair
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
    """Token ids of all pairs, each with the end-of-sequence token.

    `sizes` are the numbers of pairs of the files, and of additional pairs if there are any; `shares` are those of them
    that an epoch takes.
    """

    sources: TokenSequences
    targets: TokenSequences
    sizes: tuple[int, ...]
    padding: int
    start: int
    num_left_out: int
    """Number of pairs with a side that is too long."""
    shares: tuple[float, ...] = (1.0,)

    def record(self) -> CorpusRecord:
        """Return the identity of the corpus, which must be the same when the run is resumed."""
        digest = sha256()
        for sequences in (self.sources, self.targets):
            digest.update(sequences.offsets.data)
            digest.update(sequences.tokens.data)
        return {"sizes": list(self.sizes), "sha256": digest.hexdigest()}

    def batch(
        self, indices: Indices, device: torch.device, changed: Callable[[TokenIds], TokenIds] | None = None
    ) -> Batch:
        """Return the pairs of these indices, with sources that `changed` returns."""
        sources = [self.sources[int(index)] for index in indices]
        source = padded_rows(sources if changed is None else list(map(changed, sources)), self.padding)
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
    files: Sequence[DataFile],
    vocabulary: JointVocabulary,
    start: int,
    max_tokens: int,
    languages: Languages | None = None,
    *,
    swap_columns: bool,
    augmentation: Augmentation | None = None,
) -> Corpus:
    """Read all pairs of the files with at most `max_tokens` on each side, and the additional pairs of `augmentation`.

    Raises ValueError if no pair of a file or of its share remains, and for lines that are not a pair.
    """
    reader = _CorpusReader(vocabulary, max_tokens)
    sizes: list[int] = []
    extra: list[Pair] = []
    for file in files:
        pairs = read_pairs(Path(file.path), languages, swap_columns=swap_columns)
        if augmentation is not None:
            pairs = augmentation.observed(pairs, file.share, extra)
        sizes.append(reader.read(pairs))
        if sizes[-1] == 0:
            raise ValueError(f"{file.path} has no pair of at most {max_tokens} tokens a side")
        if not any(whole_and_part(sizes[-1], file.share)):
            raise ValueError(f"{file.path}@{file.share}: this share of {sizes[-1]} pairs is empty; choose a larger one")
    shares = [file.share for file in files]
    num_left_out = reader.num_left_out
    if extra:
        sizes.append(reader.read(iter(extra)))
        shares.append(1.0)
    return Corpus(
        TokenSequences.of(reader.sources),
        TokenSequences.of(reader.targets),
        tuple(sizes),
        vocabulary.padding,
        start,
        num_left_out,
        tuple(shares),
    )


class _CorpusReader:
    """Token ids of the pairs read so far."""

    def __init__(self, vocabulary: JointVocabulary, max_tokens: int) -> None:
        self.sources: list[TokenIds] = []
        self.targets: list[TokenIds] = []
        self.num_left_out = 0
        self._vocabulary, self._max_tokens = vocabulary, max_tokens

    def read(self, pairs: Iterator[Pair]) -> int:
        """Encode pairs, and return the number of those that are short enough."""
        size_before = len(self.sources)
        while block := list(islice(pairs, _TEXTS_AT_ONCE)):
            sources, targets = (self._vocabulary.encode(texts) for texts in zip(*block, strict=True))
            for source, target in zip(sources, targets, strict=True):
                if max(len(source), len(target)) > self._max_tokens:
                    self.num_left_out += 1
                    continue
                self.sources.append(source)
                self.targets.append(target)
        return len(self.sources) - size_before
