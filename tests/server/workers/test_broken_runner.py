"""Runs of the model that fail, or that return logits that are no numbers: no answer is made of them."""

import multiprocessing
import time
from multiprocessing.connection import Connection
from typing import NoReturn

import numpy as np
import pytest

from bundle.loading import load_bundle
from kernels.candidates import StepCandidates
from server.interface.errors import EngineFailed
from server.interface.request import Request, Timings
from server.operations.defaults import DEFAULT_MODEL
from server.text.tokenizers.registry import open_tokenizer
from server.workers.process_main import AdmissionMessage, BrokenRunner, EngineSettings, SubmitMessage, _Worker
from tests.fakes.sentence_params import sentence_params

_update = StepCandidates.update
SETTINGS = EngineSettings("cpu", threads=1, max_rows=8, max_encoder_tokens=512, niceness=0)


@pytest.fixture(scope="module")
def worker_and_parent() -> tuple[_Worker, Connection]:
    parent, child = multiprocessing.Pipe()
    return _Worker(child, load_bundle(DEFAULT_MODEL), SETTINGS), parent


def _fail(*_: object) -> NoReturn:
    raise RuntimeError("Non-zero status code returned while running MatMul node")


def _damaged(candidates: StepCandidates) -> int:
    candidates._logits.fill(np.nan)
    return _update(candidates)


def _steps(worker: _Worker) -> None:
    for _ in range(5):
        worker.run_step()


@pytest.mark.parametrize("fault", ["encode", "decode", "logits"])
def test_a_worker_whose_model_fails_exits_without_an_answer(
    fault: str, worker_and_parent: tuple[_Worker, Connection], monkeypatch: pytest.MonkeyPatch
) -> None:
    worker, parent = worker_and_parent
    source = open_tokenizer(load_bundle(DEFAULT_MODEL)).encode("Good morning.")
    request = Request(source, sentence_params(), Timings(time.monotonic()))
    if fault == "logits":
        monkeypatch.setattr(StepCandidates, "update", _damaged)
    else:
        monkeypatch.setattr(worker._engine._runner, fault, _fail)
    parent.send(AdmissionMessage([SubmitMessage.of(request)], []))
    with pytest.raises(BrokenRunner):
        _steps(worker)
    assert not parent.poll()
    worker._engine._runs.have_failed = False
    monkeypatch.undo()
    parent.send(AdmissionMessage([SubmitMessage.of(Request(source, sentence_params(), Timings(0.0)))], []))
    for _ in range(20):
        worker.run_step()
        if parent.poll() and (ended := parent.recv().ended):
            assert ended[0].hypotheses
            assert ended[0].error is None
            return
    raise EngineFailed("the worker did not answer after its model was mended")
