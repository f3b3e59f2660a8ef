"""A random model exported for the tests of the whole engine over ONNX Runtime."""

import json
from dataclasses import dataclass
from pathlib import Path

import torch

from bundle.loading import Bundle
from model.transformer import Transformer
from server.engine.runners.onnx import OnnxRunner, OnnxSessions
from tests.export.tiny_checkpoint import SPECIAL_PIECES, train_sentencepiece
from tests.fakes.engine import DrivenEngine
from tests.model.random_models import save_marian

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
