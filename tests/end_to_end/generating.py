"""Checkpoints of models that generate and embed, their bundles, and a server of them."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import torch
from safetensors.torch import save_file
from starlette.testclient import TestClient
from torch import Tensor, nn

from bundle.tensors import Precision
from export.exporter import export_bundle
from server.http.app import create_app
from server.operations.defaults import DEFAULT_MODEL
from server.operations.settings import Settings
from tests.model.families.family_checkpoints import FamilyCheckpoint, write_family

# No trained model writes padding, which transformers would count among the n-grams.
SETTINGS: dict[str, object] = {
    "bad_words_ids": [[0]],
    "num_beams": 3,
    "length_penalty": 2.0,
    "no_repeat_ngram_size": 2,
    "min_length": 4,
    "max_length": 11,
}
TASK = {"prefix": "summarize: ", "num_beams": 2, "max_length": 8, "early_stopping": True}
FAMILIES = ("bart", "pegasus", "t5")
_VOCAB, _D_MODEL, _HEADS, _LAYERS, _WIDTH, _POSITIONS = 262, 20, 4, 2, 36, 48
_NAMES = {
    "words.": "encoder.embedding.",
    "positions.weight": "encoder.positions.weight",
    "types.": "encoder.token_types.",
    "norm.": "encoder.embedding_norm.",
    "layers.": "encoder.",
}
_CONFIG: dict[str, object] = {
    "vocab_size": _VOCAB,
    "d_model": _D_MODEL,
    "num_heads": _HEADS,
    "feed_forward_width": _WIDTH,
    "num_encoder_layers": _LAYERS,
    "num_decoder_layers": 0,
    "activation": "gelu",
    "positions": "learned",
    "token_types": 2,
    "embedding_norm": True,
    "scale_embedding": False,
    "max_source_tokens": _POSITIONS,
    "pad_token_id": 0,
    "eos_token_id": 1,
    "names": _NAMES,
    "tokenizer": {"kind": "bytes", "before": [260], "after": [1]},
}


class OwnEncoder(nn.Module):
    """An encoder as PyTorch's users build them, with the embeddings of BERT; its tokens are bytes plus 3."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(_VOCAB, _D_MODEL)
        self.positions = nn.Embedding(_POSITIONS, _D_MODEL)
        self.types = nn.Embedding(2, _D_MODEL)
        self.norm = nn.LayerNorm(_D_MODEL)
        layer = nn.TransformerEncoderLayer(_D_MODEL, _HEADS, _WIDTH, 0.0, "gelu", batch_first=True)
        self.layers = nn.TransformerEncoder(layer, _LAYERS, enable_nested_tensor=False)

    def forward(self, text: str) -> Tensor:
        """Return the hidden states [length, d_model] of a text between its control tokens."""
        tokens = torch.tensor([[260, *(byte + 3 for byte in text.encode()), 1]])
        vectors = self.words(tokens) + self.positions.weight[: tokens.shape[1]] + self.types.weight[0]
        hidden: Tensor = self.layers(self.norm(vectors))[0]
        return hidden


@dataclass(frozen=True, slots=True)
class Generating:
    """The checkpoints by family, the encoder, the folder of all bundles, and a client of a server of them."""

    checkpoints: dict[str, FamilyCheckpoint]
    encoder: OwnEncoder
    bundles: Path
    client: TestClient


def serve_generating(folder: Path, bundles: Path) -> Iterator[Generating]:
    """Write the checkpoints to `folder`, and serve their bundles with the model that comes along."""
    torch.set_num_threads(1)
    checkpoints, encoder = _write_checkpoints(folder)
    settings = Settings(
        model=[bundles, DEFAULT_MODEL], engine_processes=False, replicas=1, threads=1, cache_sentences=0
    )
    with TestClient(create_app(settings)) as client:
        yield Generating(checkpoints, encoder, bundles, client)


def export_generating(bundles: Path) -> None:
    """Write the bundles of the checkpoints, which are equal each time they are written."""
    torch.set_num_threads(1)
    with TemporaryDirectory() as temporary:
        folder = Path(temporary)
        checkpoints, _ = _write_checkpoints(folder)
        for family in FAMILIES:
            export_bundle(checkpoints[family].folder, bundles / family, "float32")
        export_bundle(checkpoints["t5"].folder, bundles / "t5-float16", "float16")
        precisions: tuple[Precision, ...] = ("float32", "int8")
        for name in precisions:
            export_bundle(folder / "own.safetensors", bundles / f"own-{name}", name, config_file=folder / "own.json")


def _write_checkpoints(folder: Path) -> tuple[dict[str, FamilyCheckpoint], OwnEncoder]:
    checkpoints = {}
    for family in FAMILIES:
        checkpoints[family] = write_family(family, folder / "checkpoints" / family, translates=False)
        _add_settings(checkpoints[family])
    return checkpoints, _write_encoder(folder)


def _add_settings(saved: FamilyCheckpoint) -> None:
    """Write the settings as older checkpoints have them, in both files."""
    for name, content in (("generation_config.json", SETTINGS), ("config.json", {})):
        path = saved.folder / name
        values = json.loads(path.read_text("utf-8")) if path.is_file() else {}
        if name == "config.json" and values["model_type"] == "t5":
            content = {"task_specific_params": {"summarization": TASK}, "prefix": "the "}
        path.write_text(json.dumps(values | content), "utf-8")


def _write_encoder(folder: Path) -> OwnEncoder:
    torch.manual_seed(5)
    encoder = OwnEncoder().eval()
    with torch.no_grad():
        for parameter in encoder.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.2)
    save_file({name: tensor.contiguous() for name, tensor in encoder.state_dict().items()}, folder / "own.safetensors")
    (folder / "own.json").write_text(json.dumps(_CONFIG), "utf-8")
    return encoder
