from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from model.training.corpus import epoch_indices, token_batches

LENGTHS = st.lists(st.tuples(st.integers(1, 40), st.integers(1, 40)), min_size=1, max_size=200)


@given(LENGTHS, st.integers(2, 300), st.integers(0, 5))
def test_an_epoch_has_every_pair_once_and_no_batch_over_the_budget(
    pairs: list[tuple[int, int]], max_tokens: int, epoch: int
) -> None:
    sources, targets = np.array(pairs).T
    indices = epoch_indices([len(pairs)], [1.0], seed=1, epoch=epoch)
    batches = token_batches(indices, sources, targets, max_tokens, seed=1, epoch=epoch)
    assert sorted(np.concatenate(batches)) == list(range(len(pairs)))
    for batch in batches:
        padded = len(batch) * (sources[batch].max() + targets[batch].max())
        assert padded <= max_tokens or len(batch) == 1


def test_pairs_of_like_length_are_together() -> None:
    random = np.random.default_rng(0)
    lengths = random.integers(1, 60, 3000)
    batches = token_batches(np.arange(3000), lengths, lengths, 1000, seed=1, epoch=0)
    padded = sum(len(batch) * 2 * lengths[batch].max() for batch in batches)
    assert padded < 1.05 * 2 * lengths.sum()


def test_no_two_epochs_are_alike_and_the_same_epoch_is() -> None:
    lengths = np.full(100, 7)
    epochs = []
    for epoch in (0, 1, 2, 0):
        indices = epoch_indices([100], [1.0], seed=3, epoch=epoch)
        epochs.append([tuple(batch) for batch in token_batches(indices, lengths, lengths, 100, 3, epoch)])
    assert epochs[0] == epochs[3]
    assert all(first != second for first, second in combinations(epochs[:3], 2))


def test_a_share_takes_another_part_of_its_file_each_epoch() -> None:
    epochs = [epoch_indices([100, 1000], [1.0, 0.25], seed=1, epoch=epoch) for epoch in (0, 1)]
    for indices in epochs:
        assert sorted(indices[indices < 100]) == list(range(100))
        assert len(set(indices[indices >= 100])) == 250
    first, second = (set(indices[indices >= 100]) for indices in epochs)
    assert 30 < len(first & second) < 95


def test_a_share_over_one_takes_pairs_more_than_once() -> None:
    counts = np.bincount(epoch_indices([40], [2.5], seed=1, epoch=0), minlength=40)
    assert sorted(set(counts)) == [2, 3]
    assert counts.sum() == pytest.approx(100)
