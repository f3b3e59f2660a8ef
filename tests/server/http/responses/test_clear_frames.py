import gc
import weakref

from server.http.responses.errors import clear_frames
from server.interface.errors import DeadlineExceeded


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
            raise DeadlineExceeded from kept

    try:
        work()
    except DeadlineExceeded as error:
        clear_frames(error)
    return found[0]


def test_an_error_that_its_own_traceback_keeps_frees_what_its_functions_had() -> None:
    gc.disable()
    try:
        assert _fail()() is None
    finally:
        gc.enable()
