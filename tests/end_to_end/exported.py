"""A random model exported for the tests of the whole engine over ONNX Runtime."""

import json
from dataclasses import dataclass
from pathlib import Path

import torch
from safetensors.torch import save_model

from bundle.loading import Bundle
from model.transformer import Transformer
from server.engine.runners.onnx import OnnxRunner, OnnxSessions
from tests.export.tiny_checkpoint import SPECIAL_PIECES, train_sentencepiece
from tests.fakes.engine import DrivenEngine
from tests.model.random_models import Options, save_marian, small_model

MAX_SOURCE_TOKENS = 48
MAX_ROWS = 32
# Small, and yet all that a graph can have more than one of.
OPTIONS = {
    "vocab_size": 61,
    "decoder_vocab_size": 61,
    "d_model": 32,
    "encoder_layers": 2,
    "decoder_layers": 2,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,
    "encoder_ffn_dim": 48,
    "decoder_ffn_dim": 48,
    "max_position_embeddings": MAX_SOURCE_TOKENS,
    "pad_token_id": 60,
    "decoder_start_token_id": 60,
}
# The same sizes in our own terms.
RECURRENT: dict[str, object] = {
    "vocab_size": 61,
    "d_model": 32,
    "num_heads": 4,
    "feed_forward_width": 48,
    "num_encoder_layers": 2,
    "num_decoder_layers": 2,
    "max_source_tokens": MAX_SOURCE_TOKENS,
    "max_target_tokens": MAX_SOURCE_TOKENS,
    "pad_token_id": 60,
    "eos_token_id": 0,
    "decoder_start_token_id": 60,
    "suppressed_token_ids": [60],
    "output_bias": True,
    "decoder": "ssru",
    "sinusoid_layout": "halves_inclusive",
    "layer_norm_epsilon": 1e-6,
}


@dataclass(frozen=True, slots=True)
class Exported:
    """A bundle, and the model it was made of."""

    bundle: Bundle
    model: Transformer

    def engine(self) -> DrivenEngine:
        """A new engine, nothing decoded yet."""
        return driven_engine(self.bundle)


def driven_engine(bundle: Bundle) -> DrivenEngine:
    """An engine over ONNX Runtime."""
    special = bundle.config.special_tokens
    runner = OnnxRunner(OnnxSessions.open(bundle, threads=1), MAX_ROWS, max_encoder_tokens=400)
    return DrivenEngine(runner, special.end_of_sequence, special.forced_end)


def write_random_checkpoint(folder: Path) -> Path:
    """A random Marian model that ends its sentences now and then; these tests give it tokens, not text."""
    torch.manual_seed(7)
    saved = save_marian(folder, OPTIONS)
    with torch.no_grad():
        saved.reference.final_logits_bias[0, 0] += 2.0
    saved.reference.save_pretrained(folder)
    pieces = train_sentencepiece(folder)
    vocabulary = {piece: token for token, piece in enumerate([*SPECIAL_PIECES, *pieces])} | {"<pad>": 60}
    (folder / "vocab.json").write_text(json.dumps(vocabulary), encoding="utf-8")
    languages = {"source_lang": "eng", "target_lang": "deu"}
    (folder / "tokenizer_config.json").write_text(json.dumps(languages), encoding="utf-8")
    return folder


def write_own_model(folder: Path, options: Options | None = None) -> Path:
    """A random model in our own format; by default it is like the one above, with a recurrent decoder."""
    fields = RECURRENT | dict(options or {})
    folder.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(7)
    model = small_model(fields)
    with torch.no_grad():
        assert model.output_bias is not None
        model.output_bias[0] += 2.0
    save_model(model, str(folder / "model.safetensors"))
    pieces = train_sentencepiece(folder)
    vocabulary = {piece: token for token, piece in enumerate([*SPECIAL_PIECES, *pieces])} | {"<pad>": 60}
    (folder / "vocab.json").write_text(json.dumps(vocabulary), encoding="utf-8")
    described = fields | {
        "source_languages": ["en"],
        "target_languages": ["de"],
        "tokenizer": {"kind": "marian", "files": {name: name for name in ("source.spm", "target.spm", "vocab.json")}},
    }
    (folder / "model.json").write_text(json.dumps(described), encoding="utf-8")
    return folder
