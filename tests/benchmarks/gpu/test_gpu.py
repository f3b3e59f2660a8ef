"""The benchmark of the device runner on the host instead of a GPU."""

import json
from pathlib import Path

import numpy as np

from benchmarks.gpu.__main__ import Row, main, render
from benchmarks.gpu.equality import share_of_equal
from benchmarks.gpu.measuring import random_sources
from benchmarks.gpu.models import SIZES, cache_bytes, make_bundle, open_bundle, weight_bytes
from bundle.loading import load_bundle
from server.operations.defaults import DEFAULT_MODEL
from tests.fakes.sentence_params import sentence_params


def test_all_figures_are_taken_and_written_down(tmp_path: Path) -> None:
    models = tmp_path / "models"
    size = ["--device", "cpu", "--size", "tiny", "--models", str(models)]
    window = ["--rows", "4", "--repetitions", "1", "--begin", "2", "--end", "5"]
    main([*size, *window, "--output", str(tmp_path)])
    (row,) = json.loads((tmp_path / "gpu.json").read_text("utf-8"))["rows"]
    assert row["not_run"] == {}
    assert len(row["milliseconds"]) == 4
    assert row["tokens_per_second"].keys() == {"greedy", "beam 4", "Hugging Face greedy", "Hugging Face beam 4"}
    assert all(figure > 0 for figures in (row["milliseconds"], row["tokens_per_second"]) for figure in figures.values())
    assert "**tiny**" in (tmp_path / "gpu.md").read_text("utf-8")

    bundle = open_bundle(models / "tiny")
    tiny = SIZES["tiny"]
    # Two bytes per weight of the projections and the output; approximate, without norms and biases.
    products = tiny.num_layers * (6 * tiny.d_model**2 + 2 * tiny.d_model * tiny.feed_forward_width)
    expected = 2 * (products + tiny.d_model * tiny.vocab_size)
    assert expected < weight_bytes(bundle) < 1.3 * expected
    assert cache_bytes(bundle, target_tokens=3, source_tokens=20) == 2 * 2 * tiny.num_layers * tiny.d_model * 23


def test_a_missing_figure_has_its_reason() -> None:
    def fails() -> float:
        raise MemoryError("too large\nfor this machine")

    row = Row("model", 1024, floor_ms=0.5)
    row.note(row.milliseconds, "greedy", fails)
    row.note(row.milliseconds, "with graphs", lambda: 1.0)
    table = render([row], {"device": "none"})
    assert "1024 rows, not run: greedy: MemoryError: too large" in table
    assert "| 1024 | 0.500 | 1.000 |" in table


def test_answers_of_two_bundles_are_compared_token_for_token(tmp_path: Path) -> None:
    bundle = make_bundle(SIZES["tiny"], tmp_path / "tiny", "float32")
    params = sentence_params(max_new_tokens=4)
    sources = random_sources(load_bundle(DEFAULT_MODEL), 2)
    # Another model with a larger vocabulary.
    sources = [np.minimum(source, 300).astype(np.int32) for source in sources]
    assert share_of_equal(bundle, load_bundle(DEFAULT_MODEL), sources, params, "cpu", max_rows=8) == 0.0
