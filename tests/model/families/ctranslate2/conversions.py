"""Random checkpoints converted by CTranslate2's own converter, and greedy search with our model."""

import json
from collections.abc import Sequence
from pathlib import Path

import pytest
import torch
from ctranslate2.converters import TransformersConverter, transformers
from transformers.models.m2m_100.tokenization_m2m_100 import FAIRSEQ_LANGUAGE_CODES

from model.transformer import Transformer
from tests.export.tiny_checkpoint import write_checkpoint
from tests.model.families.family_checkpoints import write_family

COPIED = ("source.spm", "target.spm", "tokenizer.json", "sentencepiece.bpe.model", "merges.txt")


def write_checkpoint_of(family: str, folder: Path) -> Path:
    """Write a checkpoint in Hugging Face's format that the converter accepts."""
    if family == "marian":
        write_checkpoint(folder)
        added = {"tokenizer_class": "MarianTokenizer"}
        path = folder / "tokenizer_config.json"
    else:
        write_family(family, folder)
        # The converter expects this setting of older releases of transformers.
        added = {"normalize_before": False}  # type: ignore[dict-item]
        path = folder / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text("utf-8")) | added), "utf-8")
    return folder


def convert(checkpoint: Path, folder: Path, quantization: str | None, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Convert a checkpoint. The names of M2M100's language tokens are added, which transformers 5 does not list."""
    if "sentencepiece.bpe.model" in (names := [path.name for path in checkpoint.iterdir()]):
        listed = [f"__{code}__" for code in FAIRSEQ_LANGUAGE_CODES["m2m100"]]
        vocabulary = json.loads((checkpoint / "vocab.json").read_text("utf-8"))
        size = json.loads((checkpoint / "config.json").read_text("utf-8"))["vocab_size"]
        tokens = [*sorted(vocabulary, key=vocabulary.__getitem__), *listed]
        tokens += [f"madeupword{index}" for index in range(size - len(tokens))]
        monkeypatch.setattr(transformers.M2M100Loader, "get_vocabulary", lambda *_: tokens)
    copied = [name for name in COPIED if name in names]
    TransformersConverter(str(checkpoint), copy_files=copied).convert(str(folder), quantization=quantization)
    return folder


def greedy(model: Transformer, sources: Sequence[Sequence[int]], first: int | None, num_steps: int) -> list[list[int]]:
    """Return the best tokens of each source without the end, at most `num_steps`, after a forced first one."""
    config = model.config
    length = max(map(len, sources))
    rows = [[*source, *[config.pad_token_id] * (length - len(source))] for source in sources]
    tokens = torch.tensor(rows)
    mask = torch.arange(length) < torch.tensor([[len(source)] for source in sources])
    with torch.no_grad():
        cross = model.decoder.project_memory(model.encode(tokens, mask))
        inputs = torch.full((len(rows), 1), config.decoder_start_token_id)
        past, chosen = None, []
        for step in range(num_steps):
            logits, past = model.decode(inputs, cross, mask, past)
            logits[..., list(config.suppressed_token_ids)] = -torch.inf
            inputs = logits.argmax(-1)
            if step == 0 and first is not None:
                inputs = torch.full_like(inputs, first)
            chosen.append(inputs[:, 0].tolist())
    outputs = [list(row) for row in zip(*chosen, strict=True)]
    end = config.eos_token_id
    return [row[: row.index(end)] if end in row else row for row in outputs]


def log_probs(
    model: Transformer, sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]]
) -> list[list[float]]:
    """Return the log-probabilities of the tokens of each target and of the end after it."""
    config = model.config
    suppressed = list(config.suppressed_token_ids)
    found = []
    for source, target in zip(sources, targets, strict=True):
        inputs = torch.tensor([[config.decoder_start_token_id, *target]])
        with torch.no_grad():
            logits = model(torch.tensor([source]), torch.ones(1, len(source), dtype=torch.bool), inputs)[0]
        logits[:, suppressed] = -torch.inf
        labels = torch.tensor([*target, config.eos_token_id])
        found.append(logits.log_softmax(-1)[torch.arange(len(labels)), labels].tolist())
    return found
