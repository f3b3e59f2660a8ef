"""What was noted while a request was decoded, so that its answers can say more than their tokens.

A row's numbers depend on its prefix and on nothing else. So they are noted under the prefix: whatever way a search went
through its beams, the prefixes of an answer lead to what was said of each of its tokens.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class TokenRecord:
    """What was known when the token after a prefix was chosen.

    `log_probs` are the model's, of the tokens that could be chosen; `attention` [source_len] if anybody wants it;
    `alternatives` are the most likely tokens, best first.
    """

    log_probs: dict[int, float]
    attention: NDArray[np.float32] | None
    alternatives: list[tuple[int, float]]


class TokenRecorder:
    """The notes of one request. Sequences [num_tokens] begin with its target prefix and lack the start token."""

    def __init__(self) -> None:
        self._notes: dict[bytes, TokenRecord] = {}

    def write(self, prefix: NDArray[np.int32], note: TokenRecord) -> None:
        """TokenRecord what may follow `prefix`. Samples with the same prefix may have drawn different tokens."""
        known = self._notes.setdefault(prefix.tobytes(), note)
        if known is not note:
            known.log_probs.update(note.log_probs)

    def log_probabilities(self, sequence: NDArray[np.int32], start: int = 0) -> list[float]:
        """The model's, of each token from `start` on."""
        notes = self._of(sequence)[start:]
        return [
            note.log_probs.get(token, -np.inf) for token, note in zip(sequence[start:].tolist(), notes, strict=True)
        ]

    def alternatives(self, sequence: NDArray[np.int32]) -> list[list[tuple[int, float]]]:
        """The most likely tokens at each place, and their log-probabilities."""
        return [note.alternatives for note in self._of(sequence)]

    def attention(self, sequence: NDArray[np.int32]) -> NDArray[np.float32]:
        """[num_tokens, source_len]: where the model looked for each token."""
        noted = [note.attention for note in self._of(sequence)]
        return np.array([weights for weights in noted if weights is not None], np.float32)

    def _of(self, sequence: NDArray[np.int32]) -> list[TokenRecord]:
        return [self._notes[sequence[:place].tobytes()] for place in range(sequence.size)]
