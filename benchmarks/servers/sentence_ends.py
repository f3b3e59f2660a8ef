"""A rule-based detector of sentence ends in the model format of LibreTranslate.

LibreTranslate downloads small neural detectors at its first request. Without a network it loads a model from the
language's package. This one detects a final punctuation mark, a space and a capital letter. It is cheaper than the
neural ones and sufficient for plain prose.
"""

import json
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

_UNITS = ("<PAD>", "<UNK>", ".", "!", "?", " ")
_MARKS = (2, 4)  # first and last index of marks that end a sentence
_SPACE = 5
_SENTENCE_END = 2  # of five classes: inside, end of a word, end of a sentence, and two for words of several
_NUM_CLASSES = 5


def write_model(path: Path, language: str) -> None:
    """Write the model: units [texts, length] and features [texts, length, 1] to classes [texts, length, 5]."""
    nodes = [
        # Shift by one and by two characters: the next unit, and the feature after it.
        helper.make_node("Pad", ["units", "two_after", "padding"], ["padded_units"]),
        helper.make_node("Slice", ["padded_units", "one", "minus_one", "axis"], ["next_unit"]),
        helper.make_node("Pad", ["features", "two_after_features", "no_feature"], ["padded_features"]),
        helper.make_node("Slice", ["padded_features", "two", "end", "axis"], ["later_feature"]),
        helper.make_node("Squeeze", ["later_feature", "last_axis"], ["later_capital"]),
        helper.make_node("Cast", ["later_capital"], ["is_capital"], to=TensorProto.BOOL),
        helper.make_node("GreaterOrEqual", ["units", "first_mark"], ["from_first"]),
        helper.make_node("LessOrEqual", ["units", "last_mark"], ["to_last"]),
        helper.make_node("And", ["from_first", "to_last"], ["is_mark"]),
        helper.make_node("Equal", ["next_unit", "space"], ["before_space"]),
        helper.make_node("And", ["is_mark", "before_space"], ["may_end"]),
        helper.make_node("And", ["may_end", "is_capital"], ["ends"]),
        helper.make_node("Cast", ["ends"], ["ends_number"], to=TensorProto.INT64),
        helper.make_node("Mul", ["ends_number", "sentence_end"], ["class"]),
        helper.make_node("OneHot", ["class", "num_classes", "off_on"], ["classes"], axis=-1),
    ]
    constants: dict[str, object] = {
        "two_after": np.array([0, 0, 0, 2], np.int64),
        "two_after_features": np.array([0, 0, 0, 0, 2, 0], np.int64),
        "padding": np.array(0, np.int64),
        "no_feature": np.array(0, np.float32),
        "one": np.array([1], np.int64),
        "two": np.array([2], np.int64),
        "minus_one": np.array([-1], np.int64),
        "end": np.array([np.iinfo(np.int64).max], np.int64),
        "axis": np.array([1], np.int64),
        "last_axis": np.array([2], np.int64),
        "first_mark": np.array(_MARKS[0], np.int64),
        "last_mark": np.array(_MARKS[1], np.int64),
        "space": np.array(_SPACE, np.int64),
        "sentence_end": np.array(_SENTENCE_END, np.int64),
        "num_classes": np.array(_NUM_CLASSES, np.int64),
        "off_on": np.array([0, 1], np.float32),
    }
    graph = helper.make_graph(
        nodes,
        "sentence_ends",
        [
            helper.make_tensor_value_info("units", TensorProto.INT64, ["texts", "length"]),
            helper.make_tensor_value_info("features", TensorProto.FLOAT, ["texts", "length", 1]),
        ],
        [helper.make_tensor_value_info("classes", TensorProto.FLOAT, ["texts", "length", _NUM_CLASSES])],
        [numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    helper.set_model_props(
        model,
        {
            "lang_code": language,
            "config": json.dumps({"feat_funcs": ["capitalized"], "max_seqlen": 1000}),
            "vocab": json.dumps({"lang": language, "_unit2id": {unit: index for index, unit in enumerate(_UNITS)}}),
            "lexicon": json.dumps(None),
        },
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    onnx.save(model, str(path))
