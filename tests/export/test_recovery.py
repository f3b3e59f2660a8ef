"""Bundles with a recurrent decoder, back to a checkpoint in Marian's own format."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest
import torch
from onnx import numpy_helper

from bundle.loading import Bundle, load_bundle, record_file, save_manifest
from bundle.shortlist import Shortlist
from export.exporter import export_bundle
from export.recovery import export_checkpoint
from model.families.registry import read_checkpoint
from tests.export.tiny_checkpoint import write_checkpoint
from tests.model.families.marian.random_files import MarianShape, write_random_model

# The state is wider than the model: 48 instead of 40.
_SHAPE = MarianShape(d_model=40, num_heads=2, num_encoder_layers=1, num_decoder_layers=1)


def _constants(bundle: Path, graph: str) -> dict[str, np.ndarray]:
    model = onnx.load(bundle / f"{graph}.onnx")
    return {tensor.name: numpy_helper.to_array(tensor) for tensor in model.graph.initializer}


def _assert_equal_constants(first: Bundle, second: Bundle) -> None:
    for graph in ("encoder", "decoder"):
        before, after = (_constants(bundle.path, graph) for bundle in (first, second))
        assert before.keys() == after.keys()
        assert sum(array.dtype == np.int8 for array in before.values()) > 5
        for name, array in before.items():
            if array.dtype == np.float32:
                np.testing.assert_allclose(array, after[name], rtol=3e-7, err_msg=name)
            else:
                np.testing.assert_array_equal(array, after[name], err_msg=name)


def test_a_float32_bundle_has_exactly_the_weights_of_its_checkpoint(
    checkpoint: Path, float32_bundle: Bundle, tmp_path: Path
) -> None:
    export_checkpoint(float32_bundle.path, tmp_path / "back")
    before, after = read_checkpoint(checkpoint), read_checkpoint(tmp_path / "back")
    assert replace(after.config, bos_token_id=None) == before.config
    assert after.languages == before.languages
    assert {name for name, weight in before.weights.items() if not torch.equal(weight, after.weights[name])} == set()
    for name, path in before.tokenizer.files.items():
        assert after.tokenizer.files[name].read_bytes() == path.read_bytes()


def test_an_int8_bundle_is_the_same_after_a_checkpoint_and_another_export(int8_bundle: Bundle, tmp_path: Path) -> None:
    lines: list[str] = []
    export_checkpoint(int8_bundle.path, tmp_path / "back", lines.append)
    assert any("roundings remain" in line for line in lines)
    again = export_bundle(tmp_path / "back", tmp_path / "again", "int8")
    _assert_equal_constants(int8_bundle, again)


def test_two_vocabularies_relu_and_other_decoder_sizes_are_found_in_the_graphs(tmp_path: Path) -> None:
    options = {
        "activation_function": "relu",
        "decoder_attention_heads": 6,
        "decoder_ffn_dim": 30,
        "scale_embedding": False,
        "share_encoder_decoder_embeddings": False,
    }
    folder = write_checkpoint(tmp_path / "in", {"d_model": 24, "encoder_layers": 1} | options)
    config = folder / "config.json"
    written = json.loads(config.read_text("utf-8"))
    config.write_text(json.dumps(written | {"norm_placement": "pre"}), "utf-8")
    shutil.copy(folder / "vocab.json", folder / "target_vocab.json")
    export_bundle(folder, tmp_path / "bundle", "int8")
    export_checkpoint(tmp_path / "bundle", tmp_path / "back")
    before, after = read_checkpoint(folder), read_checkpoint(tmp_path / "back")
    assert replace(after.config, bos_token_id=None) == before.config
    for name, weight in before.weights.items():
        if "decoder" not in name or "attention" not in name:  # those are rescaled, for caches in int8
            assert float((weight - after.weights[name]).abs().max()) <= 0.02 * float(weight.abs().max()), name


def test_a_graph_that_computes_something_else_is_rejected(float32_bundle: Bundle, tmp_path: Path) -> None:
    """Its weights have the right names and sizes, so only a comparison of outputs finds it."""
    folder = Path(shutil.copytree(float32_bundle.path, tmp_path / "other"))
    model = onnx.load(folder / "encoder.onnx")
    for node in model.graph.node:
        if node.op_type == "GroupQueryAttention":
            for attribute in node.attribute:
                if attribute.name == "scale":
                    attribute.f *= 2
    onnx.save(model, folder / "encoder.onnx")
    loaded = load_bundle(float32_bundle.path).config
    files = loaded.files | {"encoder.onnx": record_file(folder / "encoder.onnx")}
    save_manifest(folder, loaded.model_copy(update={"files": files}))
    with pytest.raises(ValueError, match="differ from PyTorch"):
        export_checkpoint(folder, tmp_path / "back")
    assert not (tmp_path / "back").exists()


def _write(folder: Path, shape: MarianShape) -> Path:
    write_random_model(folder, shape)
    (folder / "metadata.json").write_text('{"sourceLanguage": "en", "targetLanguage": "de"}')
    (folder / "lex.ende.s2t.bin").write_bytes(Shortlist.of_lists(5, [[2, 3, 7]] * 20).to_bytes())
    return folder


def test_a_recurrent_float32_bundle_has_the_weights_of_its_checkpoint(tmp_path: Path) -> None:
    folder = _write(tmp_path / "model", replace(_SHAPE, tied="output", has_two_vocabularies=True))
    bundle = export_bundle(folder, tmp_path / "bundle", "float32")
    assert bundle.config.has_shortlist
    export_checkpoint(bundle.path, tmp_path / "back")
    before, after = read_checkpoint(folder), read_checkpoint(tmp_path / "back")
    assert before.config.has_recurrent_decoder
    assert after.config == before.config
    assert after.languages == before.languages
    assert before.shortlist is not None
    assert after.shortlist is not None
    assert after.shortlist.read_bytes() == before.shortlist.read_bytes()
    for name, weight in before.weights.items():
        # A table of its own is multiplied by the square root of its width in the graph, and divided again.
        is_rescaled = name == "encoder.embedding.weight"
        torch.testing.assert_close(after.weights[name], weight, rtol=3e-7 if is_rescaled else 0, atol=0)


def test_the_weights_of_a_recurrent_int8_bundle_are_those_of_its_checkpoint_but_for_rounding(tmp_path: Path) -> None:
    folder = _write(tmp_path / "model", _SHAPE)
    export_bundle(folder, tmp_path / "bundle", "int8")
    export_checkpoint(tmp_path / "bundle", tmp_path / "back")
    before, after = read_checkpoint(folder), read_checkpoint(tmp_path / "back")
    assert after.config == before.config
    for name, weight in before.weights.items():
        if "decoder" not in name or "attention" not in name:  # those are rescaled, for caches in int8
            assert float((weight - after.weights[name]).abs().max()) <= 0.02 * float(weight.abs().max()), name
