from collections.abc import Iterator

import pytest
import torch
from torch import Tensor

from model.transformer import Transformer
from tests.model.random_models import Options, small_model

SHAPES: list[dict[str, object]] = [
    {},
    {"norm_placement": "post", "final_norm": True, "activation": "gelu"},
    {"norm_placement": "pre", "final_norm": True, "activation": "silu", "tie_output": False},
    {"norm_placement": "pre", "sinusoid_layout": "halves", "position_offset": 2, "output_bias": True},
    {"positions": "learned", "position_offset": 2, "scale_embedding": False, "d_model": 15},
    {"head_dim": 5, "decoder_num_heads": 2, "decoder_feed_forward_width": 9, "num_decoder_layers": 3},
    {"target_vocab_size": 23, "tie_embeddings": False},
    {"target_vocab_size": 43, "tie_embeddings": False, "tie_output": False, "output_bias": True},
    {"positions": "none", "relative_buckets": 8, "relative_max_distance": 6, "norm": "rms", "norm_placement": "pre"},
    {"relative_buckets": 4, "relative_max_distance": 5, "gated": True, "biases": False, "activation": "gelu_tanh"},
    {"decoder": "ssru", "sinusoid_layout": "halves_inclusive"},
    {"decoder": "ssru", "norm_placement": "pre", "final_norm": True, "biases": False},
    {"attention_scale": 1.0, "output_scale": 0.4, "embedding_norm": True, "sinusoid_layout": "halves_inclusive"},
]


def shape_name(options: Options) -> str:
    return "-".join(map(str, options.values())) or "base"


@pytest.fixture(autouse=True)
def _no_gradients() -> Iterator[None]:
    with torch.no_grad():
        yield


def random_batch(model: Transformer) -> tuple[Tensor, Tensor, Tensor]:
    """Sources of 6, 3 and 1 tokens, and 8 decoder inputs for each."""
    source_mask = torch.arange(6) < torch.tensor([6, 3, 1])[:, None]
    source = torch.randint(1, model.config.vocab_size, (3, 6)).masked_fill(~source_mask, model.config.pad_token_id)
    target_inputs = torch.randint(1, model.config.decoder_shape.vocab_size, (3, 8))
    return source, source_mask, target_inputs


@pytest.mark.parametrize("options", SHAPES, ids=shape_name)
def test_decoding_with_cached_keys_and_values_equals_teacher_forcing(options: Options) -> None:
    model = small_model(options)
    source, source_mask, target_inputs = random_batch(model)
    expected = model(source, source_mask, target_inputs)

    memory = model.encode(source, source_mask)
    logits, cache = model.decode(target_inputs[:, :3], memory, source_mask)
    steps = [logits]
    for place in range(3, 8):
        logits, cache = model.decode(target_inputs[:, place : place + 1], memory, source_mask, cache)
        steps.append(logits)

    assert cache.past_len == 8
    torch.testing.assert_close(torch.cat(steps, dim=1), expected, atol=1e-5, rtol=0)


def test_decoding_from_projected_memory_equals_decoding_from_memory() -> None:
    model = small_model({})
    source, source_mask, target_inputs = random_batch(model)
    memory = model.encode(source, source_mask)

    from_memory, _ = model.decode(target_inputs, memory, source_mask)
    from_projected, cache = model.decode(target_inputs, model.decoder.project_memory(memory), source_mask)

    assert torch.equal(from_memory, from_projected)
    assert cache.cross_attention[0][0].shape == (3, 3, 6, 4)
    assert cache.self_attention[1][1].shape == (3, 3, 8, 4)


@pytest.mark.parametrize("options", SHAPES, ids=shape_name)
def test_a_sentence_gets_the_same_logits_alone_and_padded_in_company(options: Options) -> None:
    model = small_model(options)
    source, source_mask, target_inputs = random_batch(model)
    together = model(source, source_mask, target_inputs)
    for row, length in enumerate([6, 3, 1]):
        alone = model(source[row : row + 1, :length], torch.ones(1, length, dtype=torch.bool), target_inputs[[row]])
        torch.testing.assert_close(together[[row]], alone, atol=1e-5, rtol=0)


def test_learned_positions_reject_more_tokens_than_their_table_has() -> None:
    model = small_model({"positions": "learned", "max_source_tokens": 4})
    source = torch.ones(1, 5, dtype=torch.long)
    with pytest.raises(ValueError, match=r"learned positions for 4 tokens\. Given: 5"):
        model.encode(source, source == 1)
