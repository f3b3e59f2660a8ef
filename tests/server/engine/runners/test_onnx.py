import dataclasses
import itertools
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bundle import tensors as names
from bundle.loading import Bundle
from bundle.manifest import BundleError
from server.engine.runners import onnx
from server.engine.runners.encoder_runs import batches
from server.engine.runners.onnx import OnnxRunner, OnnxSessions
from tests.fakes.engine import DrivenEngine, fake_bundle, request
from tests.fakes.sentence_params import sentence_params


@pytest.mark.parametrize(
    ("lengths", "max_padded_tokens", "expected"),
    [
        ([4, 4, 4], 12, [[0, 1, 2]]),
        ([4, 4, 4], 11, [[0, 1], [2]]),
        ([9, 2, 3, 2], 9, [[1, 3, 2], [0]]),
        ([50, 2, 60], 9, [[1], [0], [2]]),
        ([], 9, []),
        # The long sentence is alone: each of the others would need 20 tokens of padding next to it.
        ([10, 10, 30, 11], 1000, [[0, 1, 3], [2]]),
        # A new run costs as much as 12 tokens of padding.
        ([4, 4, 4, 8], 1000, [[0, 1, 2, 3]]),
        ([4, 4, 5, 9], 1000, [[0, 1, 2], [3]]),
    ],
)
def test_sentences_of_similar_length_share_an_encoder_run_within_its_budget(
    lengths: list[int], max_padded_tokens: int, expected: list[list[int]]
) -> None:
    assert batches(lengths, max_padded_tokens) == expected
    assert list(itertools.chain(*expected)) == sorted(range(len(lengths)), key=lengths.__getitem__)


def test_the_binding_that_was_not_used_for_longest_makes_room(
    default_bundle: Bundle, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[int] = []

    class Recorded(onnx._BoundStep):
        def __init__(self, *arguments: Any) -> None:  # noqa: ANN401 - passed on
            made.append(arguments[4])
            super().__init__(*arguments)

    monkeypatch.setattr(onnx, "_BoundStep", Recorded)
    monkeypatch.setattr(onnx, "_MAX_BOUND_STEPS", 2)
    runner = OnnxRunner(OnnxSessions.open(default_bundle, threads=1), max_rows=4, max_encoder_tokens=64)
    for num_rows in (1, 2, 1, 3, 1, 2):
        assert len(runner.decode(num_rows, 1, with_scores=False).tokens) == num_rows
    assert made == [1, 2, 3, 2]


_PARAMS: Sequence[dict[str, object]] = (
    {"target_prefix": (40, 50, 60, 70, 80)},
    {"target_prefix": (40, 50), "beam_size": 4, "num_hypotheses": 2, "coverage_penalty": 0.3},
    {"target_prefix": tuple(range(100, 121)), "return_attention": True, "alignment_layer": 1},
    {"target_prefix": (7, 8, 9), "return_token_scores": True, "num_token_alternatives": 3},
    {"forced_target": (*range(300, 319), 0), "return_token_scores": True},
    {"forced_target": (0,)},
    {},
)


def _answers(runner: OnnxRunner, end: int) -> tuple[list[str], float]:
    """Decode requests with forced tokens together; return their hypotheses and the number of steps."""
    source = (*np.random.default_rng(3).integers(5, 8000, 15).tolist(), end)
    requests = [request(source, sentence_params(**{"max_new_tokens": 6} | each)) for each in _PARAMS]
    engine = DrivenEngine(runner, end)
    begun = engine.clock.now
    return [str(done.hypotheses) for done in engine.run(requests)], engine.clock.now - begun


@pytest.mark.parametrize("max_rows", [8, 32])  # fewer rows than a request has forced tokens, and more
def test_forced_tokens_give_the_same_at_once_and_step_by_step(max_rows: int, default_bundle: Bundle) -> None:
    sessions, end = OnnxSessions.open(default_bundle, threads=1), default_bundle.config.special_tokens.end_of_sequence
    runner, stepping = (OnnxRunner(sessions, max_rows, max_encoder_tokens=64) for _ in range(2))
    stepping.prefill = None
    at_once, few_steps = _answers(runner, end)
    one_by_one, many_steps = _answers(stepping, end)
    assert at_once == one_by_one
    assert few_steps < many_steps - 10


def test_sentences_share_a_run_while_padding_costs_less_than_another_run() -> None:
    assert batches([4, 4, 5, 9], 1000, run_costs_tokens=14) == [[0, 1, 2, 3]]
    assert batches([4, 4, 5, 9], 1000, run_costs_tokens=13) == [[0, 1, 2], [3]]


def test_a_graph_that_onnx_runtime_cannot_load_is_named(tmp_path: Path) -> None:
    bundle: Bundle = dataclasses.replace(fake_bundle(12), path=tmp_path)
    (tmp_path / names.ENCODER_FILE).write_bytes(b"no graph")
    with pytest.raises(BundleError, match=names.ENCODER_FILE):
        OnnxSessions.open(bundle, threads=1)
