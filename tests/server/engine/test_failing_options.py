import numpy as np
import pytest
from numpy.typing import NDArray

from server.engine.decoding.candidate_selection import CandidateSelection, Selected
from server.engine.decoding.request_rows import RequestRows
from server.interface.errors import EngineFailed
from tests.fakes.engine import END, FakeEngine, copying_table, request
from tests.fakes.sentence_params import sentence_params


def test_an_error_in_the_options_of_a_request_ends_it_in_the_same_step(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = FakeEngine(copying_table(12))
    ill, other = (
        request([3, 3, 3, END], sentence_params(max_new_tokens=8, suppress_tokens=(token,))) for token in (6, 7)
    )
    engine.scheduler.submit([ill, other])
    engine.step()
    select = CandidateSelection.select

    def broken(
        selection: CandidateSelection, sequences: NDArray[np.int32], num_candidates: int, rows: RequestRows
    ) -> Selected:
        if selection.params is ill.params:
            raise RuntimeError("a bug in an option")
        return select(selection, sequences, num_candidates, rows)

    with monkeypatch.context() as patched:
        patched.setattr(CandidateSelection, "select", broken)
        [failed] = engine.step()
    assert failed.request is ill
    assert isinstance(failed.error, EngineFailed)
    while not (done := engine.step()):
        pass
    [completed] = done
    assert completed.request is other
    assert completed.hypotheses[0].token_ids == [3, 3, 3]
