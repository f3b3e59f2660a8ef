import numpy as np

from server.interface.decoding_options import DecodingOptions
from server.interface.request import Request, SentenceParams, Timings
from server.workers.sentence_keys import SentenceKeys


def _request(*tokens: int, **params: object) -> Request:
    return Request(np.array(tokens, np.int32), SentenceParams(**params), Timings(0.0))  # type: ignore[arg-type]


def test_equal_requests_have_equal_keys_and_others_do_not() -> None:
    keys = SentenceKeys(1_000_000)
    different = [
        _request(5, 0),
        _request(6, 0),
        _request(5, 0, max_new_tokens=3),
        _request(5, 0, required_phrases=((7, 8),)),
        _request(5, 0, options=DecodingOptions(length_penalty=0.5)),
    ]
    found = [keys.key(each) for each in different]
    assert len(set(found)) == len(different)
    assert [keys.key(each) for each in different] == found
    assert keys.key(_request(5, 0, max_new_tokens=3)) == found[2]


def test_remembered_parameters_are_bounded_and_forgotten_ones_get_a_new_number() -> None:
    keys = SentenceKeys(8_000)
    large = [_request(5, 0, target_prefix=tuple(range(1000, 1000 + length))) for length in (100, 101)]
    first = keys.key(large[0])
    assert keys.key(large[0]) == first
    second = keys.key(large[1])
    assert keys.key(large[1]) == second, "the newest is remembered"
    assert keys.key(large[0]) not in (first, second), "the limit made room"


def test_parameters_within_the_limit_are_remembered() -> None:
    keys = SentenceKeys(15_000)
    large = [_request(5, 0, target_prefix=tuple(range(1000, 1000 + length))) for length in (100, 101)]
    found = [keys.key(each) for each in large]
    assert [keys.key(each) for each in large] == found


def test_many_small_parameters_are_bounded_as_well() -> None:
    keys = SentenceKeys(51_200)
    first = keys.key(_request(5, 0, max_new_tokens=1))
    for number in range(2, 100):
        keys.key(_request(5, 0, max_new_tokens=number))
    assert keys.key(_request(5, 0, max_new_tokens=1)) == first
    for number in range(100, 150):
        keys.key(_request(5, 0, max_new_tokens=number))
    assert keys.key(_request(5, 0, max_new_tokens=1)) != first


def test_long_strings_in_options_count() -> None:
    keys = SentenceKeys(20_000)
    long = [_request(5, 0, options=DecodingOptions(suppress_phrases=(letter * 200,) * 15)) for letter in "ab"]
    first = keys.key(long[0])
    keys.key(long[1])
    assert keys.key(long[0]) != first, "12 KB each"
