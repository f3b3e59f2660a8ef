"""Messages to a worker process, and runs of its model that fail: no answer is made of them."""

import multiprocessing
import pickle
import time
from multiprocessing.connection import Connection
from typing import NoReturn

import numpy as np
import pytest

from bundle.loading import load_bundle
from kernels.candidates import StepCandidates
from server.interface.decoding_options import DecodingOptions
from server.interface.errors import EngineFailed
from server.interface.request import FinishReason, Hypothesis, Request, SentenceParams, Timings, TokenDetails
from server.operations.defaults import DEFAULT_MODEL
from server.text.tokenizers.registry import open_tokenizer
from server.workers.process_main import AdmissionMessage, BrokenRunner, EngineSettings, SubmitMessage, _Worker
from tests.fakes.sentence_params import sentence_params


def _request(num_tokens: int, **params: object) -> Request:
    tokens = np.arange(num_tokens, 0, -1, dtype=np.int32)
    return Request(tokens, SentenceParams(**params), Timings(0.0))  # type: ignore[arg-type]


def test_a_request_arrives_as_it_was_sent() -> None:
    options = DecodingOptions(length_penalty=0.5, suppress_tokens=(3,))
    sent = _request(3, options=options, beam_size=4, max_new_tokens=7, required_phrases=((1, 2),))
    sent.on_progress = lambda _tokens, _is_complete: None
    arrived = pickle.loads(pickle.dumps(SubmitMessage.of(sent))).request()
    assert (arrived.id, arrived.source.tolist()) == (sent.id, [3, 2, 1])
    assert arrived.params == sent.params
    assert arrived.on_progress is not None
    plain = SubmitMessage.of(_request(3)).request()
    assert (plain.params, plain.on_progress) == (SentenceParams(), None)


def test_requests_with_the_same_parameters_share_them_in_the_process() -> None:
    first, second = (SubmitMessage.of(_request(3, beam_size=4, max_new_tokens=7)).request() for _ in range(2))
    assert first.params is second.params
    other = SubmitMessage.of(_request(3, beam_size=4, max_new_tokens=8)).request()
    assert other.params == SentenceParams(beam_size=4, max_new_tokens=8)


def test_a_hypothesis_is_pickled_with_all_its_fields() -> None:
    details = TokenDetails([-0.5, -1.0], [[(1, -0.5)], [(2, -1.0)]], None)
    sent = Hypothesis([1, 2], -1.5, -0.75, FinishReason.LENGTH, details)
    assert pickle.loads(pickle.dumps(sent, pickle.HIGHEST_PROTOCOL)) == sent


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
