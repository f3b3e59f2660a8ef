import pytest

from tests.model.random_models import Options, small_config


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"d_model": 100, "num_heads": 3},
            "`d_model` 100 must be divisible by `num_heads` 3; set head_dim, or one of these",
        ),
        ({"d_model": 12, "num_heads": 5}, "numbers of heads: 1, 2, 3, 4, 6, 12"),
        ({"decoder_num_heads": 7}, "`d_model` 12 must be divisible by `decoder_num_heads` 7"),
        ({"d_model": 15}, "`d_model` must be even with sinusoidal positions. Given: 15; use 14, 16 or"),
        ({"d_model": -4}, "`d_model` must be at least 1. Given: -4"),
        ({"num_decoder_layers": 10**9}, "`num_decoder_layers` must be at most 1000. Given: 1000000000"),
        ({"d_model": 10**12, "num_heads": 7}, "`d_model` must be at most 16777216. Given: 1000000000000"),
        ({"vocab_size": 10**400}, "`vocab_size` must be at most 16777216. Given: 1000"),
        ({"num_heads": 0}, "`num_heads` must be at least 1. Given: 0"),
        ({"head_dim": 0}, "`head_dim` must be at least 1. Given: 0"),
        ({"num_encoder_layers": 0}, "`num_encoder_layers` must be at least 1. Given: 0"),
        ({"decoder_feed_forward_width": -1}, "`decoder_feed_forward_width` must be at least 1. Given: -1"),
        (
            {"positions": "learned", "max_source_tokens": 0},
            "`max_source_tokens` must be at least 1: learned positions have a table of that size. Given: 0",
        ),
        ({"norm": "batch"}, "`norm` must be one of layer, rms. Given: 'batch'"),
        ({"relative_buckets": 6}, "`relative_buckets` must be 0 or a multiple of 4. Given: 6"),
        (
            {"relative_buckets": 32, "relative_max_distance": 16},
            "`relative_max_distance` must be at least 17 with 32 buckets. Given: 16",
        ),
        ({"attention_scale": 0.0}, "`attention_scale` must be a positive number. Given: 0.0"),
        ({"forced_first_token_id": 31}, "`forced_first_token_id` must be from 0 to 30. Given: 31"),
        (
            {"sinusoid_layout": "halves_inclusive", "d_model": 2, "num_heads": 1},
            "`d_model` must be at least 4 with this sinusoid layout. Given: 2",
        ),
        ({"position_offset": -2}, "`position_offset` must be at least 0. Given: -2"),
        ({"dropout": 1.0}, "`dropout` must be at least 0 and less than 1. Given: 1.0"),
        ({"layer_norm_epsilon": 0.0}, "`layer_norm_epsilon` must be more than 0 and less than 1. Given: 0.0"),
        ({"activation": "tanh"}, "`activation` must be one of relu, gelu, gelu_tanh, silu. Given: 'tanh'"),
        ({"norm_placement": "both"}, "`norm_placement` must be one of post, pre. Given: 'both'"),
        ({"positions": "rotary"}, "`positions` must be one of sinusoidal, learned, none. Given: 'rotary'"),
        (
            {"sinusoid_layout": "split"},
            "`sinusoid_layout` must be one of interleaved, halves, halves_inclusive. Given: 'split'",
        ),
        (
            {"target_vocab_size": 40},
            "one vocabulary size. Given: 31 (source) and 40 (target); set `tie_embeddings` to False",
        ),
        ({"eos_token_id": 31}, "`eos_token_id` must be from 0 to 30. Given: 31"),
        ({"pad_token_id": -1}, "`pad_token_id` must be from 0 to 30. Given: -1"),
        (
            {"target_vocab_size": 20, "tie_embeddings": False, "decoder_start_token_id": 25},
            "`decoder_start_token_id` must be from 0 to 19. Given: 25",
        ),
        ({"suppressed_token_ids": (3, 99)}, "`suppressed_token_ids` must be from 0 to 30. Given: 99"),
        ({"suppressed_token_ids": (1,)}, "`suppressed_token_ids` must not contain `eos_token_id` 1"),
    ],
)
def test_an_impossible_combination_is_rejected_with_valid_values(options: Options, message: str) -> None:
    with pytest.raises(ValueError, match="invalid Transformer") as caught:
        small_config(options)
    assert message in str(caught.value)


def test_every_problem_is_named_at_once() -> None:
    with pytest.raises(ValueError, match="`num_heads` 5") as caught:
        small_config({"num_heads": 5, "dropout": 2.0, "eos_token_id": 77})
    assert "`dropout` must be at least 0 and less than 1. Given: 2.0" in str(caught.value)
    assert "`eos_token_id` must be from 0 to 30. Given: 77" in str(caught.value)
