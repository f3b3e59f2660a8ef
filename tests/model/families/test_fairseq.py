import argparse
import json
from pathlib import Path

import pytest
import torch

from export.checks import require_tokenizer
from model.checkpoints.checkpoint import CheckpointError
from model.checkpoints.weights import build_model
from model.families.registry import read_checkpoint
from tests.model.families.family_checkpoints import write_family

# Hugging Face's ports of fairseq's models have its names and its numbers of tokens.
ARCHITECTURES = {
    "m2m100": {"encoder_normalize_before": True, "decoder_normalize_before": True},
    "bart": {"encoder_learned_pos": True, "decoder_learned_pos": True, "no_scale_embedding": True},
}


def _write(family: str, folder: Path, *, in_cfg: bool) -> tuple[Path, torch.nn.Module]:
    """Write a model of transformers as fairseq saves it."""
    saved = write_family(family, folder / "original")
    config, reference = saved.reference.config, saved.reference
    size = config.vocab_size
    stored = {
        name.removeprefix("model."): tensor
        for name, tensor in reference.state_dict().items()
        if name not in ("model.shared.weight", "final_logits_bias")
    }
    stored["decoder.output_projection.weight"] = stored.pop("lm_head.weight")
    stored["encoder.version"] = torch.tensor([3.0])
    if family == "m2m100":
        stored["encoder.embed_positions._float_tensor"] = torch.zeros(1)
    options = {
        "arch": "transformer",
        "source_lang": "en",
        "target_lang": "de",
        "encoder_layers": config.encoder_layers,
        "decoder_layers": config.decoder_layers,
        "encoder_attention_heads": config.encoder_attention_heads,
        "decoder_attention_heads": config.decoder_attention_heads,
        "encoder_ffn_embed_dim": config.encoder_ffn_dim,
        "decoder_ffn_embed_dim": config.decoder_ffn_dim,
        "activation_fn": config.activation_function,
        "max_source_positions": config.max_position_embeddings,
        "max_target_positions": config.max_position_embeddings,
        **ARCHITECTURES[family],
    }
    languages = {name: options.pop(name) for name in ("source_lang", "target_lang")} if in_cfg else {}
    content = {
        "args": None if in_cfg else argparse.Namespace(**options),
        "cfg": {"model": argparse.Namespace(**options), "task": languages} if in_cfg else None,
        "model": stored,
        "extra_state": {"epoch": 2},
    }
    target = folder / "fairseq"
    target.mkdir()
    torch.save(content, target / "checkpoint_best.pt")
    pieces = json.loads((folder / "original" / "vocab.json").read_text("utf-8")) if family == "m2m100" else {}
    tokens = sorted(pieces, key=pieces.__getitem__)[4:]
    tokens += [f"madeupword{index:04}" for index in range(size - 4 - len(tokens))]
    for language in ("en", "de"):
        lines = "".join(f"{token} {1000 - index}\n" for index, token in enumerate(tokens))
        (target / f"dict.{language}.txt").write_text(lines, "utf-8")
    source = folder / "original" / "sentencepiece.bpe.model"
    if source.is_file():
        (target / source.name).write_bytes(source.read_bytes())
    return target, reference


@pytest.mark.parametrize(("family", "in_cfg"), [("m2m100", False), ("m2m100", True), ("bart", False)])
def test_a_checkpoint_has_the_logits_of_the_reference(tmp_path: Path, family: str, in_cfg: bool) -> None:
    torch.set_num_threads(1)
    folder, reference = _write(family, tmp_path, in_cfg=in_cfg)
    if family == "bart":
        # Its dictionary has no SentencePiece model; the weights are compared all the same.
        (folder / "sentencepiece.bpe.model").write_bytes(b"unread")
    checkpoint = read_checkpoint(folder)
    assert (checkpoint.languages.source, checkpoint.languages.target) == (("en",), ("de",))
    assert checkpoint.tokenizer.template.after == (2,)
    if family == "m2m100":
        require_tokenizer(checkpoint, pytest.fail)
    generator = torch.Generator().manual_seed(5)
    source = torch.randint(4, 50, (6, 9), generator=generator)
    target = torch.randint(4, 50, (6, 7), generator=generator)
    mask = torch.ones_like(source, dtype=torch.bool)
    with torch.no_grad():
        expected = reference(input_ids=source, decoder_input_ids=target, use_cache=False).logits
        ours = build_model(checkpoint)(source, mask, target)
    torch.testing.assert_close(ours, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        ("dict.de.txt", "a 1\nb\n", "dict.de.txt, line 2 must be a token and a count"),
        ("dict.de.txt", "a 1\n", "embeddings for 5 tokens of a dictionary"),
        ("dict.de.txt", "<pad> 1 #fairseq:overwrite\n", "another place of <pad> is not supported"),
        ("dict.en.txt", None, "dict.en.txt is missing"),
        ("sentencepiece.bpe.model", None, "has no tokenizer; copy one of these"),
    ],
)
def test_a_wrong_file_is_an_error(tmp_path: Path, file: str, content: str | None, message: str) -> None:
    folder, _ = _write("m2m100", tmp_path, in_cfg=False)
    if content is None:
        (folder / file).unlink()
    else:
        (folder / file).write_text(content, "utf-8")
    with pytest.raises(CheckpointError, match=message):
        read_checkpoint(folder)
