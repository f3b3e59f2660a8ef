from pathlib import Path

import pytest
import torch
from transformers import MarianMTModel

from model.checkpoints.weights import build_model
from model.families.marian.hugging_face import write_marian
from model.families.registry import read_checkpoint
from model.transformer import Transformer
from tests.model.random_models import small_model

MARIAN = {
    "sinusoid_layout": "halves",
    "output_bias": True,
    "decoder_start_token_id": 0,
    "bos_token_id": 1,
    "suppressed_token_ids": (0,),
    "forced_eos": True,
    "max_source_tokens": 16,
    "max_target_tokens": 16,
    "decoder_num_heads": 3,
    "decoder_feed_forward_width": 20,
}


@pytest.fixture
def model() -> Transformer:
    return small_model(MARIAN)


@pytest.mark.parametrize(
    "changed",
    [
        {},
        {"tie_embeddings": False, "target_vocab_size": 29, "activation": "gelu_tanh"},
        {"norm_placement": "pre", "final_norm": True, "embedding_norm": True},
    ],
)
def test_what_was_written_is_read_again(changed: dict[str, object], tmp_path: Path) -> None:
    model = small_model(MARIAN | changed)
    write_marian(model, tmp_path, "en", "de")
    read = read_checkpoint(tmp_path)
    assert read.config == model.config
    assert (read.languages.source, read.languages.target) == (("en",), ("de",))
    for ours, theirs in zip(model.parameters(), build_model(read).parameters(), strict=True):
        assert torch.equal(ours, theirs)


def test_the_reference_implementation_reads_it_and_computes_the_same(model: Transformer, tmp_path: Path) -> None:
    write_marian(model, tmp_path, "en", "de")
    reference = MarianMTModel.from_pretrained(tmp_path).eval()
    source, target = torch.randint(1, 31, (3, 7)), torch.randint(1, 31, (3, 5))
    mask = torch.arange(7) < torch.tensor([[7], [4], [1]])
    with torch.no_grad():
        expected = reference(input_ids=source, attention_mask=mask.long(), decoder_input_ids=target).logits
        torch.testing.assert_close(model(source, mask, target), expected, atol=1e-5, rtol=1e-5)
    assert reference.generation_config.bad_words_ids == [[0]]
    assert reference.generation_config.decoder_start_token_id == 0


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"norm": "rms"}, "`norm` must be 'layer'. Given: 'rms'"),
        ({"gated": True, "tie_output": False}, "`gated` must be False.*; `tie_output` must be True"),
    ],
)
def test_a_model_that_the_format_cannot_represent_is_rejected(
    changed: dict[str, object], message: str, tmp_path: Path
) -> None:
    with pytest.raises(ValueError, match=message):
        write_marian(small_model(MARIAN | changed), tmp_path, "en", "de")
    assert not any(tmp_path.iterdir())
