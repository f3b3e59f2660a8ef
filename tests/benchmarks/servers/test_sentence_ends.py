"""The rule that replaces LibreTranslate's detectors, called as LibreTranslate calls them."""

import json
from pathlib import Path

import numpy as np
import onnxruntime as ort

from benchmarks.servers.sentence_ends import write_model


def ends(model: Path, text: str) -> list[int]:
    """Return the positions at which the model ends a sentence."""
    session = ort.InferenceSession(str(model), providers=["CPUExecutionProvider"])
    units = json.loads(session.get_modelmeta().custom_metadata_map["vocab"])["_unit2id"]
    numbers = np.array([[units.get(character, units["<UNK>"]) for character in text] + [units["<PAD>"]]], np.int64)
    capitals = np.array([[[character.isupper()] for character in text] + [[False]]], np.float32)
    [classes] = session.run(None, {"units": numbers, "features": capitals})
    assert classes.shape == (1, len(text) + 1, 5)
    return [int(place) for place in np.flatnonzero(classes.argmax(axis=2)[0] == 2)]


def test_a_sentence_ends_at_a_mark_before_a_space_and_a_capital(tmp_path: Path) -> None:
    write_model(tmp_path / "en.onnx", "en")
    text = "It costs 3.50 dollars! Who pays? not me. You"
    assert ends(tmp_path / "en.onnx", text) == [text.index("!"), text.index(". You")]
    assert ends(tmp_path / "en.onnx", "Yes.") == []
