"""Token sequences in two arrays: a list for each of a million sentences would take ten times the memory."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

TokenIds = NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class TokenSequences:
    """Token sequences: sequence i is `tokens[offsets[i] : offsets[i + 1]]`."""

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
