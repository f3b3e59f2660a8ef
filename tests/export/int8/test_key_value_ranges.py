import pytest
import torch

from export.int8.key_value_ranges import with_unit_keys_values
from model.transformer import Transformer
from tests.model.random_models import small_model

MODELS = {
    "marian's kind": {},
    "another head size and other heads in the decoder": {"d_model": 20, "num_heads": 2, "decoder_num_heads": 5},
    "pre-norm": {"norm_placement": "pre", "final_norm": True},
}


@pytest.fixture(params=list(MODELS.values()), ids=list(MODELS))
def transformer(request: pytest.FixtureRequest) -> Transformer:
    return small_model(request.param)


def _sentences(transformer: Transformer) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(3)
    source = torch.randint(transformer.config.vocab_size, (20, 9), generator=generator)
    mask = torch.arange(9) < torch.randint(1, 10, (20, 1), generator=generator)
    return source, mask, torch.randint(transformer.config.decoder_shape.vocab_size, (20, 7), generator=generator)


@torch.no_grad()
def test_the_model_computes_what_it_did(transformer: Transformer) -> None:
    expected = transformer(*_sentences(transformer))
    torch.testing.assert_close(with_unit_keys_values(transformer)(*_sentences(transformer)), expected)


@torch.no_grad()
def test_the_model_that_was_given_is_left_as_it_was(transformer: Transformer) -> None:
    before = {name: value.clone() for name, value in transformer.state_dict().items()}
    with_unit_keys_values(transformer)
    assert all(torch.equal(value, before[name]) for name, value in transformer.state_dict().items())


@torch.no_grad()
def test_keys_and_values_fill_their_range_and_hardly_ever_leave_it(transformer: Transformer) -> None:
    rescaled = with_unit_keys_values(transformer)
    source, mask, target = _sentences(transformer)
    cross = rescaled.decoder.project_memory(rescaled.encode(source, mask))
    _, cache = rescaled.decode(target, cross, mask)
    for keys_values in (*cache.self_attention, *cross):
        for each in keys_values:
            assert 0.3 < each.abs().max() < 1.2
            assert (each.abs() > 1).float().mean() < 0.01
