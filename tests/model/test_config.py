import pytest

from tests.model.random_models import Options, small_config

# Values outside of the range of a field, whatever the others are.
WRONG_VALUES: dict[str, tuple[object, ...]] = {
    "d_model": (-4, 15, 10**12),
    "num_heads": (0,),
    "head_dim": (0,),
    "num_encoder_layers": (0,),
    "num_decoder_layers": (10**9,),
    "decoder_feed_forward_width": (-1,),
    "vocab_size": (10**400,),
    "norm": ("batch",),
    "norm_placement": ("both",),
    "positions": ("rotary",),
    "sinusoid_layout": ("split",),
    "activation": ("tanh",),
    "relative_buckets": (6,),
    "attention_scale": (0.0,),
    "position_offset": (-2,),
    "dropout": (1.0,),
    "layer_norm_epsilon": (0.0,),
    "forced_first_token_id": (31,),
    "eos_token_id": (31,),
    "pad_token_id": (-1,),
}


def _problems(options: Options) -> str:
    with pytest.raises(ValueError, match="invalid Transformer") as caught:
        small_config(options)
    return str(caught.value)


@pytest.mark.parametrize("field", WRONG_VALUES)
def test_a_value_that_no_model_can_have_is_rejected_with_its_field(field: str) -> None:
    for value in WRONG_VALUES[field]:
        problems = _problems({field: value})
        assert f"`{field}` must be " in problems
        assert f"Given: {value!r}"[:20] in problems


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"d_model": 12, "num_heads": 5}, "`num_heads` 5; set head_dim, or one of these numbers of heads: 1, 2, 3, 4"),
        ({"decoder_num_heads": 7}, "`d_model` 12 must be divisible by `decoder_num_heads` 7"),
        ({"positions": "learned", "max_source_tokens": 0}, "`max_source_tokens` must be at least 1: learned positions"),
        ({"relative_buckets": 32, "relative_max_distance": 16}, "must be at least 17 with 32 buckets. Given: 16"),
        ({"sinusoid_layout": "halves_inclusive", "d_model": 2, "num_heads": 1}, "`d_model` must be at least 4 with"),
        ({"target_vocab_size": 40}, "Given: 31 (source) and 40 (target); set `tie_embeddings` to False"),
        ({"target_vocab_size": 20, "tie_embeddings": False, "decoder_start_token_id": 25}, "from 0 to 19. Given: 25"),
        ({"suppressed_token_ids": (3, 99)}, "`suppressed_token_ids` must be from 0 to 30. Given: 99"),
        ({"suppressed_token_ids": (1,)}, "`suppressed_token_ids` must not contain `eos_token_id` 1"),
        ({"num_heads": 5, "dropout": 2.0}, "`dropout` must be at least 0 and less than 1. Given: 2.0"),
    ],
)
def test_an_impossible_combination_is_rejected_with_valid_values(options: Options, message: str) -> None:
    assert message in _problems(options)
