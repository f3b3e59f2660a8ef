"""A complete Marian checkpoint of a few thousand random weights, tokenizer included."""

import json
import random
from pathlib import Path

import sentencepiece
import torch

from tests.model.random_models import Options, save_marian

WORDS = (
    "the",
    "a",
    "my",
    "dog",
    "cat",
    "house",
    "river",
    "reads",
    "sees",
    "builds",
    "old",
    "new",
    "green",
    "with",
    "under",
)
NUM_PIECES = 60
SPECIAL_PIECES = ("</s>", "<unk>")


def write_checkpoint(folder: Path, options: Options | None = None) -> Path:
    """Weights, settings, SentencePiece models and vocabulary; the last token of the vocabulary is `<pad>`."""
    pieces = train_sentencepiece(folder)
    vocabulary = {piece: token for token, piece in enumerate([*SPECIAL_PIECES, *pieces, "<pad>"])}
    padding = len(vocabulary) - 1
    defaults: dict[str, object] = {
        "vocab_size": len(vocabulary),
        "decoder_vocab_size": len(vocabulary),
        "d_model": 48,
        "encoder_attention_heads": 4,
        "decoder_attention_heads": 4,
        "encoder_ffn_dim": 90,
        "decoder_ffn_dim": 90,
        "pad_token_id": padding,
        "decoder_start_token_id": padding,
    }
    torch.manual_seed(20170612)
    save_marian(folder, defaults | dict(options or {}))
    (folder / "vocab.json").write_text(json.dumps(vocabulary), encoding="utf-8")
    languages = {"source_lang": "eng", "target_lang": "deu"}
    (folder / "tokenizer_config.json").write_text(json.dumps(languages), encoding="utf-8")
    return folder


def train_sentencepiece(folder: Path) -> list[str]:
    """Write source.spm and target.spm into a folder, made if need be; returns their pieces without the control ones."""
    folder.mkdir(parents=True, exist_ok=True)
    choose = random.Random(0)
    sentences = [" ".join(choose.choices(WORDS, k=7)) + "." for _ in range(200)]
    for side in ("source", "target"):
        with (folder / f"{side}.spm").open("wb") as model:
            sentencepiece.SentencePieceTrainer.train(
                sentence_iterator=iter(sentences),
                model_writer=model,
                vocab_size=NUM_PIECES,
                hard_vocab_limit=False,
                num_threads=1,
                minloglevel=2,
            )
    processor = sentencepiece.SentencePieceProcessor(model_proto=(folder / "source.spm").read_bytes())
    pieces = [processor.id_to_piece(piece) for piece in range(processor.get_piece_size())]
    return [piece for piece in pieces if piece not in ("<unk>", "<s>", "</s>")]


def remove_pieces(checkpoint: Path, num_removed: int) -> list[str]:
    """Take so many pieces out of the vocabulary; returns them."""
    path = checkpoint / "vocab.json"
    vocabulary = json.loads(path.read_text(encoding="utf-8"))
    removed = [piece for piece in vocabulary if piece not in ("</s>", "<unk>", "<pad>")][:num_removed]
    path.write_text(json.dumps({piece: vocabulary[piece] for piece in vocabulary.keys() - removed}), encoding="utf-8")
    return removed
