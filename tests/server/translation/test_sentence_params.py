import pytest

from bundle.loading import Bundle
from server.interface.decoding_options import MAX_REQUIRED_TOKENS, NO_OPTIONS, DecodingOptions
from server.text.tokenizers.registry import open_tokenizer
from server.translation.sentence_params import ParamsResolver, num_required_tokens
from tests.fakes.sentence_params import sentence_params


def _resolver(bundle: Bundle, options: DecodingOptions, max_new_tokens: int = 256) -> ParamsResolver:
    params = sentence_params(max_new_tokens=max_new_tokens, min_new_tokens=options.min_new_tokens)
    shapes = bundle.config.shapes.model_copy(update={"max_target_tokens": 256})
    return ParamsResolver(params, options, open_tokenizer(bundle), shapes)


def _limit(bundle: Bundle, source_len: int, options: DecodingOptions = NO_OPTIONS, max_new_tokens: int = 256) -> int:
    resolve = _resolver(bundle, options, max_new_tokens).resolve
    assert resolve(0, source_len) is resolve(0, source_len), "sentences of one length share their parameters"
    return resolve(0, source_len).max_new_tokens


@pytest.mark.parametrize(
    ("source_len", "limit"), [(1, 50), (16, 50), (17, 51), (40, 120), (85, 255), (86, 256), (200, 256)]
)
def test_without_an_option_about_length_the_source_limits_it(echo_bundle: Bundle, source_len: int, limit: int) -> None:
    assert _limit(echo_bundle, source_len) == limit


def test_the_limit_of_the_model_comes_first(echo_bundle: Bundle) -> None:
    assert _limit(echo_bundle, 10, max_new_tokens=32) == 32


def test_an_option_about_length_replaces_the_limit(echo_bundle: Bundle) -> None:
    assert _limit(echo_bundle, 10, DecodingOptions(max_new_tokens=256)) == 256
    assert _limit(echo_bundle, 10, DecodingOptions(min_new_tokens=100)) == 256


def test_required_phrases_fit_into_the_limit(echo_bundle: Bundle) -> None:
    assert _limit(echo_bundle, 3, DecodingOptions(required_phrases=("Wasser",))) == 256


def test_a_prefix_or_a_glossary_term_does_not_replace_the_limit(echo_bundle: Bundle) -> None:
    prefixed = DecodingOptions(target_prefix="Wasser")
    assert _resolver(echo_bundle, prefixed).resolve(0, 10).max_new_tokens == 50
    with_term = _resolver(echo_bundle, NO_OPTIONS).resolve(0, 10, [("Wasser",)])
    assert with_term.max_new_tokens == 50 + len(with_term.required_terms[0][0])


def test_the_alternatives_of_a_term_are_one_group_with_their_capitals(echo_bundle: Bundle) -> None:
    params = _resolver(echo_bundle, NO_OPTIONS).resolve(0, 10, [("where", "water"), ("Tea",)])
    tokenizer = open_tokenizer(echo_bundle)
    spelled = [tuple(tokenizer.encode_target(text)) for text in ("where", "water", "Where", "Water", "Tea")]
    assert params.required_terms == (tuple(spelled[:4]), (spelled[4],))
    assert params.beam_size == 4
    assert num_required_tokens(params) == sum(map(len, spelled))


def test_terms_beyond_the_limit_of_tokens_are_not_required(echo_bundle: Bundle) -> None:
    terms = [("the " * number + "water",) for number in range(50)]
    params = _resolver(echo_bundle, NO_OPTIONS).resolve(0, 10, terms)
    assert 0 < num_required_tokens(params) <= MAX_REQUIRED_TOKENS
    assert len(params.required_terms) < len(terms)
