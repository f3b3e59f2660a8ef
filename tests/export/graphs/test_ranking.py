import warnings

import numpy as np
import onnxruntime as ort
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.export import Dim

from export.graphs.ranking import BlockedVocabulary

NUM_TOKENS = 1003


class _Candidates(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.vocabulary = BlockedVocabulary.of(NUM_TOKENS)

    def forward(self, logits: Tensor, num_candidates: Tensor) -> tuple[Tensor, Tensor]:
        padded = self.vocabulary.pad(logits.T, -torch.inf).T
        return self.vocabulary.top_k(padded, num_candidates)


@pytest.fixture(scope="module")
def exported() -> ort.InferenceSession:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the exporter's own
        program = torch.onnx.export(
            _Candidates().eval(),
            (torch.zeros(3, NUM_TOKENS), torch.tensor([2])),
            dynamo=True,
            verbose=False,
            input_names=["logits", "num_candidates"],
            dynamic_shapes=({0: Dim("rows", min=1, max=1000)}, {}),
        )
    assert program is not None
    model = program.model_proto
    del model.graph.value_info[:]
    for output in model.graph.output:
        output.type.tensor_type.ClearField("shape")
    return ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])


def _found(
    session: ort.InferenceSession, logits: NDArray[np.float32], num_candidates: int
) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    best, tokens = session.run(None, {"logits": logits, "num_candidates": np.array([num_candidates])})
    return best, tokens


@pytest.mark.parametrize("num_candidates", [1, 2, 8, 16, 100, NUM_TOKENS])
@pytest.mark.parametrize("num_rows", [1, 7])
def test_two_rounds_find_what_one_over_the_whole_vocabulary_finds(
    exported: ort.InferenceSession, num_rows: int, num_candidates: int
) -> None:
    logits = np.random.default_rng(num_candidates).standard_normal((num_rows, NUM_TOKENS)).astype(np.float32)
    best, tokens = _found(exported, logits, num_candidates)
    expected = np.argsort(-logits, axis=1, kind="stable")[:, :num_candidates]
    assert np.array_equal(tokens, expected)
    assert np.array_equal(best, np.take_along_axis(logits, expected, axis=1))


def test_equal_logits_give_different_tokens_and_the_best_value(exported: ort.InferenceSession) -> None:
    best, tokens = _found(exported, np.full((3, NUM_TOKENS), 0.25, np.float32), 40)
    assert (best == 0.25).all()
    assert all(len(set(row)) == 40 and max(row) < NUM_TOKENS for row in tokens.tolist())


@pytest.mark.parametrize("num_tokens", [1, 15, 16, 17, 1000, 58_101])
def test_blocks_hold_the_whole_vocabulary_and_no_block_is_empty(num_tokens: int) -> None:
    vocabulary = BlockedVocabulary.of(num_tokens)
    size = vocabulary.num_blocks * vocabulary.block_size
    assert num_tokens <= size < num_tokens + vocabulary.block_size
    assert vocabulary.pad(torch.zeros(num_tokens, 2), 1.0).sum() == 2 * (size - num_tokens)
