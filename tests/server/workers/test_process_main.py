"""Messages to a worker process."""

import pickle

import numpy as np

from server.interface.decoding_options import DecodingOptions
from server.interface.request import FinishReason, Hypothesis, Request, SentenceParams, Timings, TokenDetails
from server.workers.process_main import SubmitMessage


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
