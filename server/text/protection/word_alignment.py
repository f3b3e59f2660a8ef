"""Alignment of the words of a sentence with those of its translation, from cross-attention.

Where attention is spread over the sentence, the position decides; words that are equal on both sides are certain.
"""

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import regex
from numpy.typing import NDArray

Range = tuple[int, int]  # of characters
Links = NDArray[np.float32]  # [target words, source words], each row sums to 1

# A number with separators is one word, so that no tag stands inside a number that none divides in the source.
_SEPARATED = r"(?<!\w)\d++(?:[.,'’٬٫·\u00a0\u202f\u2009]\d++)++(?!\w)"
_WORD = regex.compile(rf"{_SEPARATED}|[\w\p{{M}}]+(?:['’][\w\p{{M}}]+)*|[^\w\s]")
_NUMBER = regex.compile(_SEPARATED)

# The penalty for the distance of a whole sentence, in units of log attention. Clear attention differs by 2 and more
# between words and outweighs it; without a preference in attention the position decides.
_DISTANCE_WEIGHT = 3.0
_LEAST_ATTENTION = np.float32(1e-6)


def words_of(text: str, cuts: Sequence[int] = ()) -> list[Range]:
    """Return words and single punctuation marks; a word with a cut inside is two."""
    words = [match.span() for match in _WORD.finditer(text)]
    if not cuts:
        return words
    wanted = sorted(set(cuts))
    found: list[Range] = []
    for start, end in words:
        inside = wanted[bisect_right(wanted, start) : bisect_left(wanted, end)]
        found += pairwise((start, *inside, end))
    return found


def digits_of(word: str) -> str:
    """Return the digits of a number with separators, which languages write differently; any other word as it is."""
    return "".join(filter(str.isdigit, word)) if _NUMBER.fullmatch(word) else word


def cut_again(text: str, word: Range, pieces: Sequence[str]) -> list[Range]:
    """Return the range of each piece of a word, whose separators may be others than those of the pieces, or missing."""
    place, last = word
    found: list[Range] = []
    for piece in pieces:
        begin = place
        for character in piece:
            while character.isalnum() and place < last and not text[place].isalnum():
                place += 1
            place += place < last and (character.isalnum() or not text[place].isalnum())
        found.append((begin, place))
    return found


def links(
    source: Sequence[str], target: Sequence[str], attention: NDArray[np.float32] | None, anchors: Sequence[Range] = ()
) -> Links:
    """Return how likely each target word is aligned with each source word, from `attention` of the same shape, if any.

    `anchors` are pairs of a target and a source word whose alignment is certain.
    """
    num_target, num_source = len(target), len(source)
    if not (num_target and num_source):
        return np.zeros((num_target, num_source), np.float32)
    distances = np.linspace(0, 1, num_target)[:, None] - np.linspace(0, 1, num_source)[None]
    scores = -_DISTANCE_WEIGHT * np.abs(distances)
    if attention is not None:
        scores += np.log(attention.astype(np.float64) + _LEAST_ATTENTION)
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    for at_target, at_source in (*_unchanged(source, target), *anchors):
        weights[:, at_source] *= 0.1  # a word with a certain counterpart hardly has another
        weights[at_target] = 0
        weights[at_target, at_source] = 1
    result: Links = (weights / weights.sum(axis=1, keepdims=True)).astype(np.float32)
    return result


def identity_links(num_words: int) -> Links:
    """Return the alignment of words with themselves: a read-only view of one diagonal, as sentences may be long."""
    diagonal = np.zeros(max(2 * num_words - 1, 0), np.float32)
    diagonal[num_words - 1 : num_words] = 1
    # Not `sliding_window_view`, which takes 25 us more: a text may have a thousand pieces that are not decoded.
    step, start = diagonal.itemsize, max(num_words - 1, 0)
    view: Links = np.ndarray((num_words, num_words), np.float32, diagonal, start * step, (-step, step))
    view.flags.writeable = False
    return view


def by_words(
    attention: NDArray[np.float32],
    target_tokens: Sequence[Range],
    target_words: Sequence[Range],
    source_tokens: Sequence[Range],
    source_words: Sequence[Range],
) -> NDArray[np.float32]:
    """Return attention between words from that between tokens [target, source]; rows are means, columns sums."""
    of_target = _overlaps(target_words, target_tokens)
    of_source = _overlaps(source_words, source_tokens)
    means = of_target / np.maximum(of_target.sum(axis=1, keepdims=True), _LEAST_ATTENTION)
    shares = of_source / np.maximum(of_source.sum(axis=0, keepdims=True), _LEAST_ATTENTION)
    words: NDArray[np.float32] = means @ attention @ shares.T
    return words


def _overlaps(words: Sequence[Range], tokens: Sequence[Range]) -> NDArray[np.float32]:
    """Return the number of characters that each word shares with each token: [words, tokens]."""
    first, second = np.array(words, np.float32).reshape(-1, 2), np.array(tokens, np.float32).reshape(-1, 2)
    starts = np.maximum(first[:, None, 0], second[None, :, 0])
    ends = np.minimum(first[:, None, 1], second[None, :, 1])
    overlaps: NDArray[np.float32] = np.maximum(ends - starts, 0)
    return overlaps


def _unchanged(source: Sequence[str], target: Sequence[str]) -> list[Range]:
    """Return pairs of equal target and source words that are as frequent in both; separators of numbers may differ."""
    source, target = list(map(digits_of, source)), list(map(digits_of, target))
    in_source, in_target = Counter(source), Counter(target)
    same = {word for word in in_target if in_target[word] == in_source[word]}
    pairs: list[Range] = []
    for word in same:
        at_target = [index for index, each in enumerate(target) if each == word]
        at_source = [index for index, each in enumerate(source) if each == word]
        pairs += zip(at_target, at_source, strict=True)
    return pairs
