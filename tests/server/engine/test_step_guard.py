import pytest

from server.engine.step_guard import StepGuard
from server.interface.errors import EngineFailed
from server.interface.request import Completion, Request
from tests.fakes.engine import END, request


def test_an_exception_becomes_one_failed_completion_for_each_request() -> None:
    requests, ended = [request([5, END]), request([6, END])], list[Completion]()
    with StepGuard(ended, lambda: requests):
        raise ValueError
    assert [completion.request for completion in ended] == requests
    for completion in ended:
        assert isinstance(completion.error, EngineFailed)
        assert "ValueError" in str(completion.error)
    assert ended[0].error is not ended[1].error


def test_without_an_exception_no_request_is_taken() -> None:
    def taken() -> list[Request]:
        raise AssertionError

    ended: list[Completion] = []
    with StepGuard(ended, taken):
        pass
    assert not ended


def test_an_interrupt_is_not_suppressed() -> None:
    ended: list[Completion] = []
    with pytest.raises(KeyboardInterrupt), StepGuard(ended, list):
        raise KeyboardInterrupt
    assert not ended
