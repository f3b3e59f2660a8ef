"""The benchmark of the device runner on the host instead of a GPU."""

import json
from pathlib import Path

from benchmarks.gpu.__main__ import main
from benchmarks.gpu.models import SIZES, cache_bytes, open_bundle, weight_bytes


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
