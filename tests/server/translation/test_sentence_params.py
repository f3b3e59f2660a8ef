import pytest

from bundle.loading import Bundle
from server.interface.decoding_options import NO_OPTIONS, DecodingOptions
from server.text.tokenizers.marian import Tokenizer
from server.translation.sentence_params import ParamsResolver
from tests.fakes.sentence_params import sentence_params


def _resolver(bundle: Bundle, options: DecodingOptions, max_new_tokens: int = 256) -> ParamsResolver:
    params = sentence_params(max_new_tokens=max_new_tokens, min_new_tokens=options.min_new_tokens)
    shapes = bundle.config.shapes.model_copy(update={"max_target_tokens": 256})
    return ParamsResolver(params, options, Tokenizer(bundle), shapes)


def _limit(bundle: Bundle, source_len: int, options: DecodingOptions = NO_OPTIONS, max_new_tokens: int = 256) -> int:
    resolve = _resolver(bundle, options, max_new_tokens).resolve
    assert resolve(0, source_len) is resolve(0, source_len), "sentences of one length share their parameters"
    return resolve(0, source_len).max_new_tokens


@pytest.mark.parametrize(
    ("source_len", "limit"), [(1, 50), (16, 50), (17, 51), (40, 120), (85, 255), (86, 256), (200, 256)]
)
def test_where_nothing_is_said_of_length_the_source_limits_it(echo_bundle: Bundle, source_len: int, limit: int) -> None:
    assert _limit(echo_bundle, source_len) == limit


def test_a_model_that_writes_less_is_not_asked_for_more(echo_bundle: Bundle) -> None:
    assert _limit(echo_bundle, 10, max_new_tokens=32) == 32


def test_a_request_that_says_how_long_is_taken_at_its_word(echo_bundle: Bundle) -> None:
    assert _limit(echo_bundle, 10, DecodingOptions(max_new_tokens=256)) == 256
    assert _limit(echo_bundle, 10, DecodingOptions(min_new_tokens=100)) == 256


def test_what_must_be_said_has_room(echo_bundle: Bundle) -> None:
    assert _limit(echo_bundle, 3, DecodingOptions(required_phrases=("Wasser",))) == 256


def test_a_prefix_or_a_term_of_a_glossary_says_nothing_of_length(echo_bundle: Bundle) -> None:
    prefixed = DecodingOptions(target_prefix="Wasser")
    assert _resolver(echo_bundle, prefixed).resolve(0, 10).max_new_tokens == 50
    with_term = _resolver(echo_bundle, NO_OPTIONS).resolve(0, 10, ["Wasser"])
    assert with_term.max_new_tokens == 50 + len(with_term.required_phrases[0])
