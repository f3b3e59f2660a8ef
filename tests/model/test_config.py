import pytest

from tests.model.random_models import Options, small_config


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"d_model": 100, "num_heads": 3},
            "d_model 100 is not divisible by num_heads 3: give head_dim, or one of these",
        ),
        ({"d_model": 12, "num_heads": 5}, "numbers of heads: 1, 2, 3, 4, 6, 12"),
        ({"decoder_num_heads": 7}, "d_model 12 is not divisible by decoder_num_heads 7"),
        ({"d_model": 15}, "d_model 15 is odd, sinusoidal positions come in pairs of sine and cosine: take 14 or 16"),
        ({"d_model": -4}, "d_model is -4, it must be at least 1"),
        ({"num_heads": 0}, "num_heads is 0, it must be at least 1"),
        ({"head_dim": 0}, "head_dim is 0, it must be at least 1"),
        ({"num_encoder_layers": 0}, "num_encoder_layers is 0, it must be at least 1"),
        ({"decoder_feed_forward_width": -1}, "decoder_feed_forward_width is -1, it must be at least 1"),
        (
            {"positions": "learned", "max_source_tokens": 0},
            "max_source_tokens is 0, it must be at least 1: learned positions have a table of that size",
        ),
        ({"position_offset": -2}, "position_offset is -2, it must be at least 0"),
        ({"dropout": 1.0}, "dropout is 1.0, it must be at least 0 and less than 1"),
        ({"layer_norm_epsilon": 0.0}, "layer_norm_epsilon is 0.0, it must be more than 0"),
        ({"activation": "tanh"}, "activation is 'tanh', it must be one of relu, gelu, silu"),
        ({"norm_placement": "both"}, "norm_placement is 'both', it must be one of post, pre"),
        ({"positions": "rotary"}, "positions is 'rotary', it must be one of sinusoidal, learned"),
        ({"sinusoid_layout": "split"}, "sinusoid_layout is 'split', it must be one of interleaved, halves"),
        (
            {"target_vocab_size": 40},
            "tied embeddings need one vocabulary size, these are 31 (source) and 40 (target): set tie_embeddings to",
        ),
        ({"eos_token_id": 31}, "eos_token_id is 31, a vocabulary of 31 has the ids 0 to 30"),
        ({"pad_token_id": -1}, "pad_token_id is -1, a vocabulary of 31 has the ids 0 to 30"),
        (
            {"target_vocab_size": 20, "tie_embeddings": False, "decoder_start_token_id": 25},
            "decoder_start_token_id is 25, a vocabulary of 20 has the ids 0 to 19",
        ),
        ({"suppressed_token_ids": (3, 99)}, "suppressed_token_ids: one is 99, a vocabulary of 31"),
        ({"suppressed_token_ids": (1,)}, "suppressed_token_ids holds eos_token_id 1, no answer could end"),
    ],
)
def test_a_combination_no_model_can_have_is_refused_with_what_would_be_valid(options: Options, message: str) -> None:
    with pytest.raises(ValueError, match="no such Transformer") as caught:
        small_config(options)
    assert message in str(caught.value)


def test_every_problem_is_named_at_once() -> None:
    with pytest.raises(ValueError, match="num_heads 5") as caught:
        small_config({"num_heads": 5, "dropout": 2.0, "eos_token_id": 77})
    assert "dropout is 2.0" in str(caught.value)
    assert "eos_token_id is 77" in str(caught.value)


def test_what_is_left_out_is_taken_from_the_encoder_and_from_d_model() -> None:
    config = small_config({"num_heads": 6})
    assert config.encoder_shape == config.decoder_shape
    assert config.encoder_shape.head_dim == 2


def test_a_free_head_dim_needs_no_divisible_d_model() -> None:
    config = small_config({"d_model": 10, "num_heads": 3, "head_dim": 7})
    assert config.encoder_shape.head_dim == 7


def test_learned_positions_allow_an_odd_d_model() -> None:
    assert small_config({"d_model": 15, "positions": "learned"}).d_model == 15
