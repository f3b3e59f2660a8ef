"""Lexical shortlists: the target tokens that a source token may become, in the binary format of Marian.

The layout is that of marian-dev and bergamot-translator (src/data/shortlist.h, BinaryShortlistGenerator): magic number,
checksum, number of first tokens, most tokens of a list, number of offsets, number of tokens (all uint64), offsets
(uint64), tokens (uint32), little-endian. The tokens of source token `i` begin at offset `i` and end at offset `i + 1`.
"""

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

import numpy as np
from numpy.typing import NDArray

from bundle.manifest import BundleError, Shapes

_MAGIC: Final = 0xF11A48D5013417F5
_HEADER: Final = struct.Struct("<6Q")
_CHECKED_FROM: Final = 16  # the checksum covers whole words of eight bytes from here on


@dataclass(frozen=True, slots=True)
class Shortlist:
    """Target tokens of each source token: those of token `i` are `tokens[offsets[i] : offsets[i + 1]]`.

    The first `num_first` tokens of the target's vocabulary belong to every source. `max_listed` is the number of tokens
    that each list was limited to.
    """

    num_first: int
    max_listed: int
    offsets: NDArray[np.uint64]
    tokens: NDArray[np.uint32]

    @classmethod
    def of_lists(cls, num_first: int, lists: Sequence[Sequence[int]]) -> Self:
        """Return the shortlist with one list for each source token."""
        lengths = [len(each) for each in lists]
        offsets = np.concatenate([[0], np.cumsum(lengths, dtype=np.uint64)]).astype("<u8")
        tokens = np.array([token for each in lists for token in each], "<u4")
        return cls(num_first, max(lengths, default=0), offsets, tokens)

    def to_bytes(self) -> bytes:
        """Return the content of a file."""
        sizes = struct.pack("<4Q", self.num_first, self.max_listed, len(self.offsets), len(self.tokens))
        checked = sizes + self.offsets.astype("<u8").tobytes() + self.tokens.astype("<u4").tobytes()
        return struct.pack("<2Q", _MAGIC, _checksum(checked)) + checked


def read_shortlist(path: Path, shapes: Shapes, *, verify_checksum: bool = True) -> Shortlist:
    """Read a shortlist for a model of these shapes. Raises `BundleError` with the finding if it does not fit.

    The checksum takes a second for ten megabytes; without `verify_checksum` all sizes and tokens are checked still.
    """
    content = path.read_bytes()
    if len(content) < _HEADER.size:
        raise BundleError(f"{path.name} must have at least {_HEADER.size} bytes. Given: {len(content)}")
    magic, checksum, num_first, max_listed, num_offsets, num_tokens = _HEADER.unpack_from(content)
    if magic != _MAGIC:
        raise BundleError(f"{path.name} is not a binary shortlist: it begins with {magic:#x}, not {_MAGIC:#x}")
    size = _HEADER.size + 8 * num_offsets + 4 * num_tokens
    if len(content) != size:
        raise BundleError(f"{path.name}: {len(content)} bytes on disk, {size} by its header (truncated or damaged)")
    if verify_checksum and (found := _checksum(content[_CHECKED_FROM:])) != checksum:
        raise BundleError(f"{path.name}: its checksum is {found:#x}, {checksum:#x} in its header (damaged)")
    offsets = np.frombuffer(content, "<u8", num_offsets, _HEADER.size)
    tokens = np.frombuffer(content, "<u4", num_tokens, _HEADER.size + 8 * num_offsets)
    if not 2 <= num_offsets <= shapes.vocab_size + 1:
        raise BundleError(
            f"{path.name} lists {max(num_offsets - 1, 0)} source tokens; the model has {shapes.vocab_size}"
        )
    if offsets[0] != 0 or offsets[-1] != num_tokens or (offsets[:-1] > offsets[1:]).any():
        raise BundleError(f"{path.name}: its offsets must ascend from 0 to {num_tokens}")
    if num_tokens and (largest := int(tokens.max())) >= shapes.target_vocab_size:
        raise BundleError(f"{path.name}: its tokens must be below {shapes.target_vocab_size}. Given: {largest}")
    return Shortlist(num_first, max_listed, offsets, tokens)


def _checksum(content: bytes) -> int:
    """Return the combined hash of all whole words of eight bytes, as boost's `hash_combine` computes it."""
    checksum = 0
    for (word,) in struct.iter_unpack("<Q", content[: len(content) // 8 * 8]):
        checksum ^= (word + 0x9E3779B9 + (checksum << 6) + (checksum >> 2)) & 0xFFFFFFFFFFFFFFFF
    return checksum
