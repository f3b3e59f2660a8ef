from itertools import combinations

import numpy as np
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
