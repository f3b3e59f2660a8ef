"""The modules that graphs are exported from, in eager mode, against the model."""

import pytest
import torch
from torch import nn

from export.graphs.layers import Heads, attend_in_step, padded_head_dim
from model.attention import MultiHeadAttention
from tests.export.graph_runs import EagerGraphs, assert_equal_to_the_model
from tests.model.random_models import Options, small_model

VARIANTS: dict[str, Options] = {
    "the small default": {},
    "one suppressed token": {"suppressed_token_ids": (0,)},
    "several suppressed tokens": {"suppressed_token_ids": (0, 5, 7)},
    "pre-norm with a final norm": {"norm_placement": "pre", "final_norm": True},
    "post-norm with a final norm": {"norm_placement": "post", "final_norm": True},
    "learned positions with an offset": {"positions": "learned", "position_offset": 2},
    "positions in halves": {"sinusoid_layout": "halves", "position_offset": 2},
    "other decoder heads": {"num_heads": 3, "decoder_num_heads": 2},
    "heads wider than the model": {"head_dim": 7},
    "heads of eight, which need no zeros": {"d_model": 24, "num_heads": 3},
    "an untied output with a bias": {"tie_output": False, "output_bias": True, "suppressed_token_ids": (3,)},
    "two vocabularies": {"tie_embeddings": False, "target_vocab_size": 23},
    "unscaled embeddings": {"scale_embedding": False},
    "gelu": {"activation": "gelu"},
    "silu": {"activation": "silu"},
    "relative positions only": {"positions": "none", "relative_buckets": 8, "relative_max_distance": 6},
    "relative positions and sinusoids": {"relative_buckets": 4, "relative_max_distance": 3, "decoder_num_heads": 2},
    "RMS norms before each sub-layer": {"norm": "rms", "norm_placement": "pre", "final_norm": True},
    "RMS norms after each sub-layer": {"norm": "rms"},
    "a gated feed-forward without biases": {"gated": True, "biases": False, "activation": "gelu_tanh"},
    "a gated feed-forward with ReLU": {"gated": True},
    "unscaled attention": {"attention_scale": 1.0, "output_scale": 0.4},
    "a norm of embeddings": {"embedding_norm": True, "sinusoid_layout": "halves_inclusive"},
    "one layer and three": {"num_encoder_layers": 1, "num_decoder_layers": 3},
}


@pytest.mark.parametrize("variant", VARIANTS)
def test_the_graphs_in_eager_mode_equal_the_model(variant: str) -> None:
    transformer = small_model(VARIANTS[variant])
    assert_equal_to_the_model(EagerGraphs(transformer), transformer)


def test_the_graphs_leave_the_model_as_it_was() -> None:
    transformer = small_model({"suppressed_token_ids": (0,), "output_bias": True})
    before = {name: tensor.clone() for name, tensor in transformer.state_dict().items()}
    EagerGraphs(transformer)
    assert all(torch.equal(tensor, before[name]) for name, tensor in transformer.state_dict().items())


@pytest.mark.parametrize(("head_dim", "padded"), [(1, 8), (7, 8), (8, 8), (9, 16), (63, 64), (64, 64), (100, 104)])
def test_a_head_is_padded_to_the_next_size_the_operator_takes(head_dim: int, padded: int) -> None:
    assert padded_head_dim(head_dim) == padded


def test_zeros_in_a_head_change_no_product() -> None:
    attention = MultiHeadAttention(d_model=10, num_heads=3, head_dim=5)
    heads = Heads.of(attention)
    hidden = torch.randn(4, 10)
    plain = attention.value_proj(hidden)
    padded: torch.Tensor = heads.pad_outputs(attention.value_proj)(hidden)
    torch.testing.assert_close(padded.reshape(4, 3, 8)[..., :5], plain.reshape(4, 3, 5))
    assert not padded.reshape(4, 3, 8)[..., 5:].any()
    expected: torch.Tensor = attention.out_proj(plain)
    found: torch.Tensor = heads.pad_inputs(attention.out_proj)(padded)
    torch.testing.assert_close(found, expected)
    assert heads.scale == pytest.approx(5**-0.5)


def test_a_step_writes_its_own_position_and_no_other() -> None:
    heads = Heads(count=2, head_dim=8, padded_dim=8, scale=1.0)
    keys, values = torch.randn(3, 2, 6, 8), torch.randn(3, 2, 6, 8)
    fused = torch.randn(3, 1, 3 * heads.width)
    positions = torch.tensor([0, 5, 2], dtype=torch.int32)
    _, present_keys, present_values = attend_in_step((fused, None, None), keys, values, positions, heads)
    written = nn.functional.one_hot(positions.long(), 6).bool()[:, None, :, None].expand_as(keys)
    _, new_keys, new_values = fused.chunk(3, dim=-1)
    for present, past, new in ((present_keys, keys, new_keys), (present_values, values, new_values)):
        assert torch.equal(present[~written], past[~written])
        assert torch.equal(present[written].reshape(3, 2, 8), new.reshape(3, 2, 8))
