import math

import pytest
import torch
from transformers.models.marian.modeling_marian import MarianSinusoidalPositionalEmbedding

from model.positions import LearnedPositions, SinusoidalPositions, sinusoidal_positions


@pytest.mark.parametrize("offset", [0, 2, 1000])
def test_interleaved_sinusoids_follow_the_formula_of_the_paper(offset: int) -> None:
    d_model = 10
    table = sinusoidal_positions(7, d_model, "interleaved", offset)
    for row in range(7):
        for pair in range(d_model // 2):
            angle = (offset + row) / 10000 ** (2 * pair / d_model)
            assert table[row, 2 * pair].item() == pytest.approx(math.sin(angle), abs=1e-6)
            assert table[row, 2 * pair + 1].item() == pytest.approx(math.cos(angle), abs=1e-6)


def test_halves_are_those_of_the_reference_implementation() -> None:
    reference = MarianSinusoidalPositionalEmbedding(600, 48).create_weight()
    torch.testing.assert_close(sinusoidal_positions(600, 48, "halves"), reference, atol=6e-8, rtol=0)


def test_positions_of_later_tokens_continue_those_of_earlier_ones() -> None:
    for positions in (SinusoidalPositions(8, "interleaved", 2), LearnedPositions(9, 8, 2)):
        whole = positions(0, 9)
        assert torch.equal(torch.cat([positions(0, 4), positions(4, 5)]), whole)


def test_learned_positions_begin_after_the_offset() -> None:
    positions = LearnedPositions(5, 3, 2)
    assert positions.weight.shape == (7, 3)
    assert torch.equal(positions(0, 1)[0], positions.weight[2])
