"""Words for tags: those that a comparison of all words finds, in far less time."""

import math
import random
import time
from collections.abc import Sequence

import numpy as np

from server.text.protection.free_words import CERTAIN, FreeWords, PlacementScores, Run, TargetWords
from server.text.protection.tag_placement import Block, render
from server.text.protection.word_alignment import words_of
from server.text.readers.units import Tag, Unit


def _plain_best_run(scores: Sequence[float], low: int, high: int) -> Run:
    best, best_first, best_last = -math.inf, low, low
    total, first = 0.0, low
    for index in range(low, high):
        if total <= 0:
            total, first = 0.0, index
        total += scores[index]
        if total > best:
            best, best_first, best_last = total, first, index + 1
    return best, best_first, best_last


def test_the_best_run_is_that_of_a_search_over_all_words() -> None:
    drawn = random.Random(3)
    for _ in range(500):
        num_words = drawn.randint(1, 12)
        is_protected = [drawn.random() < 0.3 for _ in range(num_words)]
        words = TargetWords(is_protected)
        low = drawn.randint(0, num_words - 1)
        high = drawn.randint(low, num_words)
        free, gaps = FreeWords(words, low, high), [(low, high)]
        for _ in range(6):
            first = drawn.randint(0, num_words)
            own = [drawn.choice((-0.5, -0.25, 0, 0.25, 0.5)) for _ in range(drawn.randint(0, num_words - first))]
            own = [score * (CERTAIN if is_protected[first + index] else 1) for index, score in enumerate(own)]
            scores = PlacementScores(first, own)
            all_scores = [-0.5 * (CERTAIN if protected else 1) for protected in is_protected]
            all_scores[first : first + len(own)] = own
            assert words.values(scores, low, high) == all_scores[low:high]
            assert words.best_run(scores, low, high) == _plain_best_run(all_scores, low, high)
            runs = [(_plain_best_run(all_scores, *gap), gap) for gap in gaps if gap[0] < gap[1]]
            expected, gap = max(runs, key=lambda run: run[0][0], default=(None, (0, 0)))
            found = free.best_run(scores)
            if found is None or found[0] < -CERTAIN / 4:
                assert expected is None or expected[0] < -CERTAIN / 4
                continue
            assert found == expected
            free.take(*found[1:])
            gaps.remove(gap)
            gaps += [(gap[0], found[1]), (found[2], gap[1])]


def test_thousands_of_tags_are_placed_in_time() -> None:
    num_tags = 3000  # comparing each tag with each word takes minutes
    text = "a dog. " * num_tags
    tags = tuple(Tag(7 * number + 2, 7 * number + 5, "<b>", "</b>") for number in range(num_tags))
    words = words_of(text)
    links = np.eye(3, dtype=np.float32)
    blocks = [Block(words[at : at + 3], words[at : at + 3], links) for at in range(0, len(words), 3)]
    begun = time.perf_counter()
    assert render(Unit(text, text, tags, (), str), text, blocks, []) == "a <b>dog</b>. " * num_tags
    assert time.perf_counter() - begun < 30
