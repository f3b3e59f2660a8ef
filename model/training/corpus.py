"""A training corpus as token ids, and its batches: pairs of similar length within a token budget, as tensors."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from itertools import islice
from pathlib import Path
from typing import TypedDict

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from model.training.augmentation import Augmentation
from model.training.parallel_text import Languages, Pair, read_pairs
from model.training.settings import DataFile
from model.training.vocabulary import JointVocabulary, TokenIds

_TEXTS_AT_ONCE = 10_000
Indices = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class TokenSequences:
    """Token sequences in two arrays: sequence i is `tokens[offsets[i] : offsets[i + 1]]`.

    A list for each of a million sentences would take ten times the memory.
    """

    tokens: TokenIds
    offsets: NDArray[np.int64]

    @classmethod
    def of(cls, sequences: Iterable[TokenIds]) -> "TokenSequences":
        """Return copies of the sequences."""
        arrays = list(sequences)
        offsets = np.zeros(len(arrays) + 1, dtype=np.int64)
        np.cumsum([len(array) for array in arrays], out=offsets[1:])
        tokens = np.concatenate(arrays) if arrays else np.zeros(0, dtype=np.int32)
        return cls(tokens.astype(np.int32), offsets)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, index: int) -> TokenIds:
        return self.tokens[self.offsets[index] : self.offsets[index + 1]]

    @property
    def lengths(self) -> NDArray[np.int64]:
        """Lengths of the sequences [sequences]."""
        return np.diff(self.offsets)

    def padded(self, indices: NDArray[np.int64], padding: int) -> NDArray[np.int64]:
        """Return the sequences at `indices` as one array [rows, longest], padded with `padding`."""
        return padded_rows([self[int(index)] for index in indices], padding)


def padded_rows(sequences: Sequence[TokenIds], padding: int) -> NDArray[np.int64]:
    """Return sequences as one array [rows, longest], padded with `padding`."""
    rows = np.full((len(sequences), max(map(len, sequences))), padding, dtype=np.int64)
    for row, sequence in zip(rows, sequences, strict=True):
        row[: len(sequence)] = sequence
    return rows


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
            sources, targets = zip(*block, strict=True)
            encoded = self._vocabulary.encode(sources), self._vocabulary.encode_targets(targets)
            for source, target in zip(*encoded, strict=True):
                if max(len(source), len(target)) > self._max_tokens:
                    self.num_left_out += 1
                    continue
                self.sources.append(source)
                self.targets.append(target)
        return len(self.sources) - size_before


def epoch_indices(sizes: Sequence[int], shares: Sequence[float], seed: int, epoch: int) -> Indices:
    """Return the pairs of one epoch in random order. Files of `sizes` pairs are numbered consecutively.

    A share of 1 takes each pair of the file once, 2 twice, and 0.2 a fifth, a different one in each epoch.
    """
    random = np.random.default_rng((seed, epoch, 0))
    chosen: list[Indices] = []
    first = 0
    for size, share in zip(sizes, shares, strict=True):
        everything = np.arange(first, first + size)
        whole, part = whole_and_part(size, share)
        chosen += [everything] * whole
        if part:
            chosen.append(random.permutation(everything)[:part])
        first += size
    return random.permutation(np.concatenate(chosen))


def whole_and_part(size: int, share: float) -> tuple[int, int]:
    """Return how often an epoch takes all of `size` pairs, and the number of pairs it takes in addition."""
    return int(share), round((share - int(share)) * size)


def token_batches(
    indices: Indices, source_lengths: Indices, target_lengths: Indices, max_tokens: int, seed: int, epoch: int
) -> list[Indices]:
    """Return `indices` in batches, in random order, each of at most `max_tokens` including the padding of both sides.

    A longer pair is a batch of its own. Lengths are indexed by the values of `indices`.
    """
    # Stable: pairs of equal lengths stay in the random order of `indices`, so that batches differ between epochs.
    order = indices[np.lexsort((source_lengths[indices], target_lengths[indices]))]
    batches: list[Indices] = []
    start = longest_source = longest_target = 0
    for end, index in enumerate(order):
        longest_source = max(longest_source, int(source_lengths[index]))
        longest_target = max(longest_target, int(target_lengths[index]))
        if end > start and (end - start + 1) * (longest_source + longest_target) > max_tokens:
            batches.append(order[start:end])
            start = end
            longest_source, longest_target = int(source_lengths[index]), int(target_lengths[index])
    if start < len(order):
        batches.append(order[start:])
    shuffled = np.random.default_rng((seed, epoch, 1)).permutation(len(batches))
    return [batches[int(index)] for index in shuffled]
