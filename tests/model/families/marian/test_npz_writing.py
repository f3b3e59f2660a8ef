import json
from dataclasses import replace
from pathlib import Path

import ctranslate2
import pytest
import torch
from ctranslate2.converters import MarianConverter

from model.checkpoints.checkpoint import Checkpoint, CheckpointError
from model.checkpoints.weights import build_model
from model.families.marian.npz_writing import write_marian_npz
from model.families.registry import read_checkpoint
from tests.export.tiny_checkpoint import write_checkpoint
from tests.model.families.ctranslate2.conversions import greedy

NUM_STEPS = 16


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Checkpoint:
    """A checkpoint with the positions and the epsilon of Marian."""
    folder = write_checkpoint(tmp_path_factory.mktemp("checkpoint"), {"encoder_ffn_dim": 70})
    read = read_checkpoint(folder)
    read.weights["encoder.embedding.weight"][-1] = 0
    return replace(read, config=replace(read.config, sinusoid_layout="halves_inclusive"))


def test_another_reader_of_the_format_decodes_the_same_tokens(checkpoint: Checkpoint, tmp_path: Path) -> None:
    torch.set_num_threads(1)
    folder = tmp_path / "marian"
    lines: list[str] = []
    write_marian_npz(checkpoint, folder, lines.append)
    assert lines == []
    assert {path.name for path in folder.iterdir()} == {
        "model.npz",
        "decoder.yml",
        "metadata.json",
        "vocab.yml",
        "source.spm",
        "target.spm",
    }
    MarianConverter(str(folder / "model.npz"), [str(folder / "vocab.yml")] * 2).convert(str(tmp_path / "converted"))
    vocabulary: list[str] = json.loads((tmp_path / "converted" / "shared_vocabulary.json").read_text("utf-8"))
    generator = torch.Generator().manual_seed(4)
    texts = [
        torch.randint(2, len(vocabulary), (int(length),), generator=generator).tolist()
        for length in torch.randint(1, 12, (300,), generator=generator)
    ]
    reference = ctranslate2.Translator(str(tmp_path / "converted"), compute_type="float32", intra_threads=1)
    answers = reference.translate_batch(
        [[vocabulary[token] for token in text] for text in texts],
        beam_size=1,
        max_decoding_length=NUM_STEPS,
        min_decoding_length=0,
    )
    # CTranslate2 computes the positions of transformers; pymarian itself gives these tokens with the fixture's.
    with_its_positions = replace(checkpoint, config=replace(checkpoint.config, sinusoid_layout="halves"))
    ours = greedy(build_model(with_its_positions), [[*text, 0] for text in texts], None, NUM_STEPS)
    found = [[vocabulary[token] for token in tokens] for tokens in ours]
    assert len({tuple(tokens) for tokens in found}) > 5
    assert found == [answer.hypotheses[0] for answer in answers]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"norm_placement": "pre", "gated": True}, "`norm_placement` must be 'post'.*; `gated` must be False"),
        ({"activation": "gelu"}, "`activation` must be 'relu' or 'silu'. Given: 'gelu'"),
        ({"pad_token_id": 3}, "`decoder_start_token_id` and `pad_token_id` must be the last token"),
    ],
)
def test_a_model_of_another_architecture_is_an_error(
    checkpoint: Checkpoint, tmp_path: Path, change: dict[str, object], message: str
) -> None:
    other = replace(checkpoint, config=replace(checkpoint.config, **change))  # type: ignore[arg-type]
    with pytest.raises(CheckpointError, match=message):
        write_marian_npz(other, tmp_path / "marian")
    assert not (tmp_path / "marian").exists()
