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


def test_a_cache_that_was_passed_in_is_left_as_it_was() -> None:
    model = small_model({})
    source, source_mask, target_inputs = random_batch(model)
    _, first = model.decode(target_inputs[:, :2], model.encode(source, source_mask), source_mask)
    before = first.self_attention[0][0].clone()

    once, _ = model.decode(target_inputs[:, 2:3], first.cross_attention, source_mask, first)
    again, _ = model.decode(target_inputs[:, 2:3], first.cross_attention, source_mask, first)

    assert torch.equal(first.self_attention[0][0], before)
    assert torch.equal(once, again)


@pytest.mark.parametrize("options", SHAPES, ids=shape_name)
def test_a_sentence_gets_the_same_logits_alone_and_padded_in_company(options: Options) -> None:
    model = small_model(options)
    source, source_mask, target_inputs = random_batch(model)
    together = model(source, source_mask, target_inputs)
    for row, length in enumerate([6, 3, 1]):
        alone = model(source[row : row + 1, :length], torch.ones(1, length, dtype=torch.bool), target_inputs[[row]])
        torch.testing.assert_close(together[[row]], alone, atol=1e-5, rtol=0)


def test_what_stands_in_the_padding_changes_nothing() -> None:
    model = small_model({})
    source, source_mask, target_inputs = random_batch(model)
    other = torch.where(source_mask, source, 17)
    assert torch.equal(model(source, source_mask, target_inputs), model(other, source_mask, target_inputs))


def test_no_token_sees_the_ones_after_it() -> None:
    model = small_model({})
    source, source_mask, target_inputs = random_batch(model)
    changed = target_inputs.clone()
    changed[:, 5:] = 3
    before, after = model(source, source_mask, target_inputs), model(source, source_mask, changed)
    assert torch.equal(before[:, :5], after[:, :5])
    assert not torch.allclose(before[:, 5:], after[:, 5:])


def test_post_norm_and_pre_norm_place_the_norm_as_their_papers_say() -> None:
    hidden, mask = torch.randn(1, 4, 12), torch.ones(1, 1, 1, 4, dtype=torch.bool)
    for placement in ("post", "pre"):
        (layer, _) = small_model({"norm_placement": placement}).encoder.layers
        attention, norm, feed_forward, last_norm = (
            layer.self_attention,
            layer.self_attention_norm,
            layer.feed_forward,
            layer.feed_forward_norm,
        )

        if placement == "post":
            middle = norm(hidden + attention(hidden, *attention.project_keys_values(hidden), mask))
            expected = last_norm(middle + feed_forward(middle))
        else:
            normalised = norm(hidden)
            middle = hidden + attention(normalised, *attention.project_keys_values(normalised), mask)
            expected = middle + feed_forward(last_norm(middle))

        assert torch.equal(layer(hidden, mask), expected), placement


def test_layer_norm_divides_by_the_root_of_variance_plus_epsilon() -> None:
    norm = small_model({"layer_norm_epsilon": 0.3, "final_norm": True}).encoder.final_norm
    assert isinstance(norm, torch.nn.LayerNorm)
    hidden = torch.randn(2, 12)
    centred = hidden - hidden.mean(dim=-1, keepdim=True)
    variance = centred.square().mean(dim=-1, keepdim=True)
    torch.testing.assert_close(norm(hidden), centred / (variance + 0.3).sqrt() * norm.weight + norm.bias)


def test_a_final_norm_with_post_norm_is_one_more_norm_at_the_end_of_each_stack() -> None:
    with_norm, without = small_model({"final_norm": True}), small_model({})
    without.load_state_dict(with_norm.state_dict(), strict=False)
    source, source_mask, _ = random_batch(with_norm)
    assert with_norm.encoder.final_norm is not None
    assert with_norm.decoder.final_norm is not None
    expected = with_norm.encoder.final_norm(without.encode(source, source_mask))
    assert torch.equal(with_norm.encode(source, source_mask), expected)


def test_embeddings_are_scaled_and_positions_added() -> None:
    model = small_model({"position_offset": 1})
    tokens = torch.tensor([[4, 9]])
    expected = model.encoder.embedding.weight[[4, 9]] * 12**0.5 + model.encoder.positions(0, 2)
    assert torch.equal(model.encoder.embed(tokens)[0], expected)


@pytest.mark.parametrize("tie_embeddings", [True, False])
@pytest.mark.parametrize("tie_output", [True, False])
def test_tied_weights_are_one_parameter_and_untied_ones_are_not(tie_embeddings: bool, tie_output: bool) -> None:
    model = small_model({"tie_embeddings": tie_embeddings, "tie_output": tie_output})
    assert (model.encoder.embedding.weight is model.decoder.embedding.weight) == tie_embeddings
    assert (model.output_projection.weight is model.decoder.embedding.weight) == tie_output


def test_sinusoidal_positions_go_on_beyond_the_longest_source() -> None:
    model = small_model({"max_source_tokens": 4})
    source = torch.randint(1, 31, (1, 700))
    assert model.encode(source, torch.ones_like(source, dtype=torch.bool)).isfinite().all()


def test_learned_positions_reject_more_tokens_than_their_table_has() -> None:
    model = small_model({"positions": "learned", "max_source_tokens": 4})
    source = torch.ones(1, 5, dtype=torch.long)
    with pytest.raises(ValueError, match=r"learned positions for 4 tokens\. Given: 5"):
        model.encode(source, source == 1)


def test_a_new_model_begins_with_logits_of_ordinary_size() -> None:
    config = small_model({"vocab_size": 400, "d_model": 64, "num_heads": 4}).config
    model = Transformer(config).eval()
    source, source_mask, target_inputs = random_batch(model)
    logits = model(source, source_mask, target_inputs)
    assert 0.3 < logits.std() < 3
    assert model.encoder.embedding.weight[config.pad_token_id].abs().sum() == 0
