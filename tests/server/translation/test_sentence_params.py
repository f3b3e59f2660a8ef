from dataclasses import replace

import pytest

from bundle.loading import Bundle
from server.interface.decoding_options import NO_OPTIONS, DecodingOptions
from server.interface.request import GenerationParams
from server.text.tokenizers.marian import Tokenizer
from server.translation.sentence_params import SentenceParams


def _params(bundle: Bundle, options: DecodingOptions, names_length: bool = False, most: int = 256) -> SentenceParams:
    params = GenerationParams(max_new_tokens=most, min_new_tokens=options.min_new_tokens)
    shapes = bundle.config.shapes.model_copy(update={"max_target_tokens": 256})
    return SentenceParams(params, options, Tokenizer(bundle), shapes, names_length)


def _limit(
    bundle: Bundle, source_len: int, options: DecodingOptions = NO_OPTIONS, names_length: bool = False, most: int = 256
) -> int:
    of = _params(bundle, options, names_length, most).of
    assert of(0, source_len) is of(0, source_len), "sentences of one length share their parameters"
    return of(0, source_len).max_new_tokens


@pytest.mark.parametrize(
    ("source_len", "limit"), [(1, 50), (16, 50), (17, 51), (40, 120), (85, 255), (86, 256), (200, 256)]
)
def test_where_nothing_is_said_of_length_the_source_limits_it(echo_bundle: Bundle, source_len: int, limit: int) -> None:
    assert _limit(echo_bundle, source_len) == limit


def test_a_model_that_writes_less_is_not_asked_for_more(echo_bundle: Bundle) -> None:
    assert _limit(echo_bundle, 10, most=32) == 32


def test_a_request_that_says_how_long_is_taken_at_its_word(echo_bundle: Bundle) -> None:
    assert _limit(echo_bundle, 10, names_length=True) == 256
    assert _limit(echo_bundle, 10, replace(NO_OPTIONS, min_new_tokens=100)) == 256


def test_what_must_be_said_has_room(echo_bundle: Bundle) -> None:
    assert _limit(echo_bundle, 3, replace(NO_OPTIONS, required_phrases=("Wasser",))) == 256


def test_a_prefix_or_a_term_of_a_glossary_says_nothing_of_length(echo_bundle: Bundle) -> None:
    prefixed = replace(NO_OPTIONS, target_prefix="Wasser")
    assert _params(echo_bundle, prefixed).of(0, 10).max_new_tokens == 50
    with_term = _params(echo_bundle, NO_OPTIONS).of(0, 10, ["Wasser"])
    assert with_term.max_new_tokens == 50 + len(with_term.required_phrases[0])
