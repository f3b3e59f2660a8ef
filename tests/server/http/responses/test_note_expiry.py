import gc
import weakref

from server.http.responses.errors import note_expiry
from server.http.state import RequestRecord
from server.interface.errors import DeadlineExceeded, EngineFailed


class _Sentences:
    pass


def _fail() -> weakref.ref[_Sentences]:
    """Raise an error in a function that keeps it, and return a reference to what that function had."""
    found: list[weakref.ref[_Sentences]] = []

    def work() -> None:
        sentences = _Sentences()
        found.append(weakref.ref(sentences))
        try:
            raise TimeoutError
        except TimeoutError as error:
            kept = error
            raise DeadlineExceeded("late") from kept

    try:
        work()
    except DeadlineExceeded as error:
        note_expiry(error, RequestRecord("id"))
    return found[0]


def test_an_error_that_its_own_traceback_keeps_frees_what_its_functions_had() -> None:
    gc.disable()
    try:
        assert _fail()() is None
    finally:
        gc.enable()


def test_only_an_expired_call_has_phases() -> None:
    record = RequestRecord("id")
    note_expiry(EngineFailed("broken"), record)
    assert record.late_phases == {}
    note_expiry(DeadlineExceeded("late", {"queue": 2.0}), record)
    assert record.late_phases == {"queue": 2.0}
