import random

import numpy as np

from library.lexical_model import likely_targets

WORDS = range(1, 13)


def _translated(word: int) -> int:
    return 20 + 5 * word % 13


def test_the_translation_of_a_word_is_its_most_probable_target() -> None:
    choose = random.Random(0)
    pairs = []
    for _ in range(300):
        source = choose.choices(WORDS, k=choose.randint(2, 6))
        target = [_translated(word) for word in source]
        choose.shuffle(target)
        # A word without a source: in most translations.
        pairs.append((np.array([*source, 0], np.int32), target + [40] * choose.choice((0, 1, 2))))
    lists = likely_targets(pairs, 15, num_best=3)
    assert len(lists) == 15
    assert [lists[word][0] for word in WORDS] == [_translated(word) for word in WORDS]
    assert all(len(set(each)) == len(each) == 3 for each in lists[1:13])
    assert lists[13] == []
