"""Bundles with a recurrent decoder, back to a checkpoint in Marian's own format."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest
import torch
from onnx import numpy_helper

from benchmarks.random_marian_files import MarianShape, write_random_model
from bundle.shortlist import Shortlist
from export.exporter import export_bundle
from export.recovery import export_checkpoint
from model.families.registry import read_checkpoint

# The state is wider than the model: 48 instead of 40.
_SHAPE = MarianShape(d_model=40, num_heads=2, num_encoder_layers=2, num_decoder_layers=2)


def _write(folder: Path, shape: MarianShape) -> Path:
    write_random_model(folder, shape)
    (folder / "metadata.json").write_text('{"sourceLanguage": "en", "targetLanguage": "de"}')
    (folder / "lex.ende.s2t.bin").write_bytes(Shortlist.of_lists(5, [[2, 3, 7]] * 20).to_bytes())
    return folder


@pytest.mark.parametrize("tied", ["all", "output"])
def test_a_float32_bundle_has_the_weights_of_its_checkpoint(tmp_path: Path, tied: str) -> None:
    folder = _write(tmp_path / "model", replace(_SHAPE, tied=tied, has_two_vocabularies=tied != "all"))
    export_bundle(folder, tmp_path / "bundle", "float32")
    export_checkpoint(tmp_path / "bundle", tmp_path / "back")
    before, after = read_checkpoint(folder), read_checkpoint(tmp_path / "back")
    assert before.config.has_recurrent_decoder
    assert after.config == before.config
    assert after.languages == before.languages
    assert before.shortlist is not None
    assert after.shortlist is not None
    assert after.shortlist.read_bytes() == before.shortlist.read_bytes()
    for name, weight in before.weights.items():
        # A table of its own is multiplied by the square root of its width in the graph, and divided again.
        is_rescaled = tied != "all" and name == "encoder.embedding.weight"
        torch.testing.assert_close(after.weights[name], weight, rtol=3e-7 if is_rescaled else 0, atol=0)


def test_an_int8_bundle_is_the_same_after_a_checkpoint_and_another_export(tmp_path: Path) -> None:
    first = export_bundle(_write(tmp_path / "model", _SHAPE), tmp_path / "bundle", "int8")
    lines: list[str] = []
    export_checkpoint(first.path, tmp_path / "back", lines.append)
    assert any("roundings remain" in line for line in lines)
    again = export_bundle(tmp_path / "back", tmp_path / "again", "int8")
    for graph in ("encoder.onnx", "decoder.onnx"):
        before, after = (
            {each.name: numpy_helper.to_array(each) for each in onnx.load(bundle.file(graph)).graph.initializer}
            for bundle in (first, again)
        )
        assert before.keys() == after.keys()
        for name, array in before.items():
            if array.dtype == np.float32:
                np.testing.assert_allclose(array, after[name], rtol=3e-7, err_msg=name)
            else:
                np.testing.assert_array_equal(array, after[name], err_msg=name)
