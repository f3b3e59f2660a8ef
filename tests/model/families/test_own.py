"""One's own model against PyTorch's `nn.Transformer`, built as in tutorials."""

import json
import math
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file
from torch import Tensor, nn

from model.checkpoints.checkpoint import CheckpointError
from model.checkpoints.weights import build_model
from model.families.own import read_own_model
from model.positions import sinusoidal_positions

# PyTorch warns about models that it cannot run on nested tensors.
pytestmark = pytest.mark.filterwarnings("ignore:enable_nested_tensor")

VOCAB, D_MODEL = 264, 24
NAMES = {
    "transformer.": "",
    "source_embedding.": "encoder.embedding.",
    "target_embedding.": "decoder.embedding.",
    "generator.weight": "output_projection.weight",
    "generator.bias": "output_bias",
}
CONFIG: dict[str, object] = {
    "vocab_size": VOCAB,
    "target_vocab_size": VOCAB,
    "d_model": D_MODEL,
    "num_heads": 3,
    "feed_forward_width": 30,
    "num_encoder_layers": 2,
    "num_decoder_layers": 1,
    "final_norm": True,
    "activation": "relu",
    "tie_embeddings": False,
    "tie_output": False,
    "output_bias": True,
    "pad_token_id": 0,
    "eos_token_id": 1,
    "decoder_start_token_id": 2,
    "max_source_tokens": 60,
    "max_target_tokens": 60,
    "source_languages": ["eng"],
    "target_languages": ["deu"],
    "names": NAMES,
}


class Tutorial(nn.Module):
    """A sequence-to-sequence model as tutorials build them."""

    def __init__(self, *, norm_first: bool, activation: str) -> None:
        super().__init__()
        self.source_embedding = nn.Embedding(VOCAB, D_MODEL)
        self.target_embedding = nn.Embedding(VOCAB, D_MODEL)
        self.transformer = nn.Transformer(
            D_MODEL, 3, 2, 1, 30, activation=activation, batch_first=True, norm_first=norm_first, dropout=0.0
        )
        self.generator = nn.Linear(D_MODEL, VOCAB)

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        positions = sinusoidal_positions(60, D_MODEL, "interleaved")
        mask = nn.Transformer.generate_square_subsequent_mask(target.shape[1])
        hidden = self.transformer(
            self.source_embedding(source) * math.sqrt(D_MODEL) + positions[: source.shape[1]],
            self.target_embedding(target) * math.sqrt(D_MODEL) + positions[: target.shape[1]],
            tgt_mask=mask,
        )
        logits: Tensor = self.generator(hidden)
        return logits


def write_tutorial(folder: Path, *, norm_first: bool = False, activation: str = "relu") -> Tutorial:
    """Write `model.json` and `model.safetensors` of a random model."""
    torch.manual_seed(3)
    model = Tutorial(norm_first=norm_first, activation=activation).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.1)
    choices = {"norm_placement": "pre" if norm_first else "post", "activation": activation}
    (folder / "model.json").write_text(json.dumps(CONFIG | choices), "utf-8")
    save_file({name: tensor.contiguous() for name, tensor in model.state_dict().items()}, folder / "model.safetensors")
    return model


@pytest.mark.parametrize("norm_first", [False, True])
@pytest.mark.parametrize("activation", ["relu", "gelu"])
def test_a_model_of_pytorch_is_read_with_its_names(norm_first: bool, activation: str, tmp_path: Path) -> None:
    reference = write_tutorial(tmp_path, norm_first=norm_first, activation=activation)
    checkpoint = read_own_model(tmp_path / "model.json", tmp_path / "model.safetensors")
    source, target = torch.randint(VOCAB, (2, 9)), torch.randint(VOCAB, (2, 7))
    with torch.no_grad():
        expected = reference(source, target)
        found = build_model(checkpoint)(source, torch.ones_like(source, dtype=torch.bool), target)
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=0)
    assert (checkpoint.languages.source, checkpoint.languages.target) == (("en",), ("de",))
    assert checkpoint.tokenizer.kind == "bytes"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"layers": 6}, "no field of the configuration: layers. Available: activation,"),
        ({"d_model": "24"}, '`d_model` must be a whole number. Given: "24"'),
        ({"gated": 1}, "`gated` must be true or false. Given: 1"),
        ({"num_heads": 5}, "`d_model` 24 must be divisible by `num_heads` 5"),
        ({"names": {"a": 1}}, "`names` must map prefixes"),
        ({"tokenizer": {"kind": "tokenizer_json", "files": {"tokenizer.json": "no.json"}}}, "no such tokenizer file"),
        ({"names": {}}, "missing: "),
    ],
)
def test_a_wrong_description_is_rejected_by_name(changes: dict[str, object], message: str, tmp_path: Path) -> None:
    write_tutorial(tmp_path)
    (tmp_path / "model.json").write_text(json.dumps(CONFIG | changes), "utf-8")
    with pytest.raises(CheckpointError) as raised:
        read_own_model(tmp_path / "model.json", tmp_path / "model.safetensors")
    assert message in str(raised.value)


def test_a_missing_file_and_a_folder_in_its_place_are_named(tmp_path: Path) -> None:
    (tmp_path / "model.json").write_text("{}")
    for config, weights, message in (
        ("absent.json", "model.json", r"absent\.json does not exist"),
        ("model.json", "absent.safetensors", r"absent\.safetensors does not exist"),
        ("model.json", "", "is a folder; with --config, a model is that file and a file of weights"),
    ):
        with pytest.raises(CheckpointError, match=message):
            read_own_model(tmp_path / config, tmp_path / weights)
