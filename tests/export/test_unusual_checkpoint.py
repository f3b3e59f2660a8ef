"""A checkpoint with an unusual tokenizer, exported into an empty folder."""

import shutil
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import numpy_helper
from sentencepiece.sentencepiece_model_pb2 import ModelProto  # type: ignore[attr-defined]

from bundle import tensors as names
from bundle.loading import Bundle
from bundle.manifest import TARGET_SENTENCEPIECE_FILE
from export.exporter import export_bundle
from tests.export.tiny_checkpoint import remove_pieces


@dataclass(frozen=True, slots=True)
class Unusual:
    """A bundle exported into an empty folder, with other languages, from a checkpoint with an unusual tokenizer."""

    checkpoint: Path
    removed_pieces: list[str]
    bundle: Bundle
    reports: list[str]


@pytest.fixture(scope="module")
def unusual(checkpoint: Path, tmp_path_factory: pytest.TempPathFactory) -> Unusual:
    """Two SentencePiece models that differ, and two pieces of both that the vocabulary lacks."""
    changed = Path(shutil.copytree(checkpoint, tmp_path_factory.mktemp("unusual") / "tiny-en-de"))
    other = ModelProto.FromString((changed / "source.spm").read_bytes())
    other.pieces[-1].score -= 1
    (changed / "target.spm").write_bytes(other.SerializeToString())
    removed = remove_pieces(changed, 2)
    folder = tmp_path_factory.mktemp("filled") / "empty"
    folder.mkdir()
    reports: list[str] = []
    bundle = export_bundle(changed, folder, "float32", report=reports.append, source_languages=["eng", "pt_br", "en"])
    return Unusual(changed, removed, bundle, reports)


def test_a_bundle_has_two_sentencepiece_models_if_they_differ(unusual: Unusual) -> None:
    source, target = ((unusual.checkpoint / f"{side}.spm").read_bytes() for side in ("source", "target"))
    assert unusual.bundle.file(TARGET_SENTENCEPIECE_FILE).read_bytes() == target != source


def test_a_few_pieces_outside_the_vocabulary_are_reported(unusual: Unusual) -> None:
    lines = [report for report in unusual.reports if "vocab.json lacks 2 of the" in report]
    assert len(lines) == 2
    assert all(report.endswith(f"become <unk>: {' '.join(unusual.removed_pieces)}") for report in lines)


def test_an_empty_folder_is_filled_by_a_model_of_the_languages_that_are_named(
    unusual: Unusual, float32_bundle: Bundle
) -> None:
    bundle = unusual.bundle
    assert bundle.config.source_languages == ("en", "pt-BR")
    assert [path.name for path in bundle.path.parent.iterdir()] == ["empty"]
    ours, theirs = (
        [numpy_helper.to_array(tensor) for tensor in onnx.load(b.file(names.DECODER_FILE)).graph.initializer]
        for b in (bundle, float32_bundle)
    )
    assert all(np.array_equal(mine, other) for mine, other in zip(ours, theirs, strict=True))
