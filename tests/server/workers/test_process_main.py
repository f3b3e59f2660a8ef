"""Messages to a worker process, and the queue that they fill."""

import pickle

import numpy as np
import pytest

from server.interface.decoding_options import DecodingOptions
from server.interface.request import FinishReason, Hypothesis, Request, SentenceParams, Timings, TokenDetails
from server.workers.process_main import AdmissionMessage, SubmitMessage, _AdmittedQueue


def _request(num_tokens: int, **params: object) -> Request:
    tokens = np.arange(num_tokens, 0, -1, dtype=np.int32)
    return Request(tokens, SentenceParams(**params), Timings(0.0))  # type: ignore[arg-type]


@pytest.fixture
def queue() -> _AdmittedQueue:
    return _AdmittedQueue(max_encoder_tokens=10)


def _has_news(queue: _AdmittedQueue) -> bool:
    return not queue.is_empty


def _receive(queue: _AdmittedQueue, requests: list[Request], dropped: tuple[int, ...] = ()) -> None:
    queue.receive(AdmissionMessage([SubmitMessage.of(each) for each in requests], list(dropped)))


def _admitted(queue: _AdmittedQueue, *, may_admit: bool = True) -> list[int]:
    return [request.id for request in queue.admit(0, 0.0, may_admit).admitted]


def test_requests_are_admitted_in_order_until_an_encoder_run_is_full(queue: _AdmittedQueue) -> None:
    requests = [_request(length) for length in (5, 4, 1, 1, 20)]
    assert not _has_news(queue)
    _receive(queue, requests)
    assert _has_news(queue)
    assert _admitted(queue, may_admit=False) == []
    ids = [request.id for request in requests]
    assert _admitted(queue) == ids[:3]
    assert _admitted(queue) == ids[3:]
    assert not _has_news(queue)


def test_a_request_that_is_dropped_is_not_admitted_or_cancelled_once(queue: _AdmittedQueue) -> None:
    waiting, running, ended = (_request(2) for _ in range(3))
    _receive(queue, [running, ended])
    admitted = queue.admit(0, 0.0).admitted
    assert [request.id for request in admitted] == [running.id, ended.id]
    queue.retire(0, admitted[1:], 0.0)
    _receive(queue, [waiting], (waiting.id, running.id, ended.id, -1))
    assert _has_news(queue)
    admission = queue.admit(0, 0.0)
    assert [(request.id, reason) for request, reason in admission.dropped] == [
        (waiting.id, FinishReason.CANCELLED),
        (running.id, FinishReason.CANCELLED),
    ]
    assert admission.admitted == []
    assert not _has_news(queue)
    assert queue.admit(0, 0.0).dropped == []


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
