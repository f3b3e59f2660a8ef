from server.interface.request import FinishReason
from server.workers.answer_store import AnswerStore, key_bytes
from server.workers.coalescing import Answer

_SHORT, _LONG = bytes(4), bytes(400)
_ANSWER = Answer((), FinishReason.STOP, None)


def test_the_size_of_a_store_follows_its_answers_and_a_cleared_store_is_empty() -> None:
    store = AnswerStore(max_sentences=2, max_bytes=10_000)
    store.add(_SHORT, _ANSWER)
    size = store.num_bytes
    assert size > len(_SHORT)
    store.add(_LONG, _ANSWER)
    assert store.num_bytes == 2 * size + len(_LONG) - len(_SHORT), "a longer source takes more"
    store.clear()
    assert (len(store), store.num_bytes) == (0, 0)
    store.add(_SHORT, _ANSWER)
    assert store.num_bytes == size


def test_an_answer_as_large_as_the_store_is_kept_and_a_larger_one_is_not() -> None:
    size = key_bytes(_SHORT)
    exact, small, none = AnswerStore(9, size), AnswerStore(9, size - 1), AnswerStore(0, 10 * size)
    for store in (exact, small, none):
        store.add(_SHORT, _ANSWER)
    assert [len(store) for store in (exact, small, none)] == [1, 0, 0]
    assert small.num_bytes == none.num_bytes == 0
    exact.add(_LONG, _ANSWER)
    assert exact.get(_SHORT) is _ANSWER, "an answer that cannot be kept evicts no other"


def test_the_least_recently_used_answer_makes_room() -> None:
    store = AnswerStore(2, 10_000)
    for key in (b"a", b"b"):
        store.add(key, _ANSWER)
    assert store.get(b"a") is _ANSWER
    store.add(b"c", _ANSWER)
    assert (store.get(b"a"), store.get(b"b"), store.get(b"c")) == (_ANSWER, None, _ANSWER)
