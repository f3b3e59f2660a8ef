import dataclasses
import itertools
from pathlib import Path

import pytest

from bundle import tensors as names
from bundle.loading import Bundle
from bundle.manifest import BundleError
from server.engine.runners.encoder_runs import batches
from server.engine.runners.onnx import OnnxSessions
from tests.fakes.engine import fake_bundle


@pytest.mark.parametrize(
    ("lengths", "max_padded_tokens", "expected"),
    [
        ([4, 4, 4], 12, [[0, 1, 2]]),
        ([4, 4, 4], 11, [[0, 1], [2]]),
        ([9, 2, 3, 2], 9, [[1, 3, 2], [0]]),
        ([50, 2, 60], 9, [[1], [0], [2]]),
        ([], 9, []),
        # The long sentence is alone: each of the others would need 20 tokens of padding beside it.
        ([10, 10, 30, 11], 1000, [[0, 1, 3], [2]]),
    ],
)
def test_sentences_of_similar_length_share_an_encoder_run_within_its_budget(
    lengths: list[int], max_padded_tokens: int, expected: list[list[int]]
) -> None:
    assert batches(lengths, max_padded_tokens) == expected
    assert list(itertools.chain(*expected)) == sorted(range(len(lengths)), key=lengths.__getitem__)


def test_a_graph_that_onnx_runtime_cannot_load_is_named(tmp_path: Path) -> None:
    bundle: Bundle = dataclasses.replace(fake_bundle(12), path=tmp_path)
    (tmp_path / names.ENCODER_FILE).write_bytes(b"no graph")
    with pytest.raises(BundleError, match=names.ENCODER_FILE):
        OnnxSessions.open(bundle, threads=1)
