"""Marian checkpoints that never end a sentence, so that every engine generates the same number of tokens.

    python -m benchmarks.engines.endless_checkpoints opus-size FOLDER
    python -m benchmarks.engines.endless_checkpoints copy CHECKPOINT FOLDER

The first has random weights and the size of an OPUS-MT model. Its vocabulary has about 200 real tokens and is filled up
with `piece200` and so on; it receives token ids and has a tokenizer only because exporters require one. The second
copies a checkpoint's weights. In both the end-of-sequence logit is lowered by 10,000 and no last token is forced.
"""

import io
import json
import shutil
from pathlib import Path

import sentencepiece
import torch
import typer
from transformers import MarianConfig, MarianMTModel

from benchmarks.paths import SENTENCES
from benchmarks.workloads import OPUS_VOCAB_SIZE as VOCAB_SIZE

END_BIAS = -1e4

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@app.command("opus-size")
def opus_size(folder: Path, seed: int = 1) -> None:
    """Save a random model: 6 + 6 layers, d_model 512, feed-forward 2048, 8 heads, a vocabulary of 58,101."""
    torch.manual_seed(seed)
    config = MarianConfig(
        vocab_size=VOCAB_SIZE,
        decoder_vocab_size=VOCAB_SIZE,
        d_model=512,
        encoder_layers=6,
        decoder_layers=6,
        encoder_attention_heads=8,
        decoder_attention_heads=8,
        encoder_ffn_dim=2048,
        decoder_ffn_dim=2048,
        activation_function="swish",
        scale_embedding=True,
        max_position_embeddings=512,
        share_encoder_decoder_embeddings=True,
        tie_word_embeddings=True,
        pad_token_id=VOCAB_SIZE - 1,
        eos_token_id=0,
        bos_token_id=0,
        decoder_start_token_id=VOCAB_SIZE - 1,
        forced_eos_token_id=None,
    )
    model = MarianMTModel(config)
    model.generation_config.bad_words_ids = [[VOCAB_SIZE - 1]]
    model.generation_config.max_length = config.max_position_embeddings
    _save_endless(model, folder)
    _write_tokenizer(folder)


@app.command()
def copy(checkpoint: Path, folder: Path) -> None:
    """Copy a local checkpoint, its tokenizer included."""
    model = MarianMTModel.from_pretrained(checkpoint)
    model.generation_config.forced_eos_token_id = model.config.forced_eos_token_id = None
    _save_endless(model, folder)
    for name in ("source.spm", "target.spm", "vocab.json", "target_vocab.json", "tokenizer_config.json"):
        if (checkpoint / name).is_file():
            shutil.copyfile(checkpoint / name, folder / name)


def _save_endless(model: MarianMTModel, folder: Path) -> None:
    with torch.no_grad():
        model.final_logits_bias[:, model.config.eos_token_id] = END_BIAS
    model.save_pretrained(folder)


def _write_tokenizer(folder: Path) -> None:
    trained = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(SENTENCES.read_text("utf-8").splitlines()),
        model_writer=trained,
        vocab_size=200,
        hard_vocab_limit=False,
        minloglevel=2,
    )
    for name in ("source.spm", "target.spm"):
        (folder / name).write_bytes(trained.getvalue())
    processor = sentencepiece.SentencePieceProcessor(model_proto=trained.getvalue())
    known = [processor.id_to_piece(piece) for piece in range(processor.get_piece_size())]
    pieces = ["</s>", "<unk>", *(piece for piece in known if piece not in ("<unk>", "<s>", "</s>"))]
    pieces += [*(f"piece{index}" for index in range(len(pieces), VOCAB_SIZE - 1)), "<pad>"]
    (folder / "vocab.json").write_text(json.dumps({piece: index for index, piece in enumerate(pieces)}), "utf-8")
    settings = {"source_lang": "eng", "target_lang": "deu", "tokenizer_class": "MarianTokenizer"}
    tokens = {"eos_token": "</s>", "unk_token": "<unk>", "pad_token": "<pad>"}
    (folder / "tokenizer_config.json").write_text(json.dumps(settings | tokens), "utf-8")


if __name__ == "__main__":
    app()
