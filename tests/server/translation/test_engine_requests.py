from dataclasses import replace

import numpy as np
import pytest

from bundle.loading import Bundle
from bundle.manifest import BundleConfig
from server.interface.decoding_options import MAX_REQUIRED_TOKENS, NO_OPTIONS, DecodingOptions
from server.interface.errors import InvalidRequest, TextTooLong
from server.interface.request import Sampling
from server.text.glossary import Glossary
from server.text.protection.masked_sentence import read_sentence
from server.text.readers.units import Unit
from server.text.tokenizers.registry import open_tokenizer
from server.translation.engine_requests import (
    ParamsResolver,
    Part,
    SentenceEncoder,
    first_in_prefix,
    first_token,
    fitted,
    num_required_tokens,
)
from server.translation.limits import TranslationLimits
from server.translation.types import TranslationRequest
from tests.fakes.echo import MAX_TOKENS
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


def _encoder(bundle: Bundle, limits: TranslationLimits | None = None, **changes: object) -> SentenceEncoder:
    request = replace(TranslationRequest(("a",), "en", "de"), **changes)  # type: ignore[arg-type]  # fields
    return SentenceEncoder(request, limits or TranslationLimits(), open_tokenizer(bundle), bundle.config, 7.5)


def test_the_first_token_is_that_of_the_language_or_of_the_model(echo_bundle: Bundle) -> None:
    special = echo_bundle.config.special_tokens.model_copy(update={"forced_first": 4})
    config = echo_bundle.config.model_copy(update={"special_tokens": special, "target_language_tokens": {}})
    assert first_token(echo_bundle.config, "de") is None
    assert first_token(config, "de") == 4


def test_a_first_token_moves_into_a_prefix_or_before_alternatives(echo_bundle: Bundle) -> None:
    shapes = echo_bundle.config.shapes
    plain = sentence_params(first_token=9, max_new_tokens=MAX_TOKENS)
    assert first_in_prefix(plain, shapes) is plain
    assert first_in_prefix(sentence_params(target_prefix=(5,)), shapes).target_prefix == (5,)
    moved = first_in_prefix(replace(plain, target_prefix=(5,)), shapes)
    assert (moved.first_token, moved.target_prefix, moved.max_new_tokens) == (None, (9, 5), MAX_TOKENS - 2)
    sampled = first_in_prefix(replace(plain, sampling=Sampling(), max_new_tokens=3), shapes)
    assert (sampled.first_token, sampled.target_prefix, sampled.max_new_tokens) == (None, (9,), 3)


def _part(text: str, **fields: object) -> Part:
    sentence = read_sentence(Unit(text, text, (), (), str), 0, len(text))
    assert sentence is not None
    return Part(0, sentence, **fields)  # type: ignore[arg-type]  # fields


@pytest.mark.parametrize(
    ("fields", "options", "num_beams", "num_hypotheses"),
    [
        ({}, {}, 4, 1),
        ({"needs_beams": True}, {}, 4, 4),  # one of them may lack less
        ({"needs_beams": True}, {"beam_size": 2}, 2, 2),
        ({"needs_beams": True}, {"temperature": 1.0}, 1, 1),
        ({"needs_beams": True}, {"patience": 0.5}, 4, 1),
        ({"needs_beams": True}, {"num_beam_groups": 2, "diversity_penalty": 0.5, "beam_size": 4}, 4, 1),
        ({"has_few_beams": True}, {}, 2, 2),
    ],
)
def test_all_beams_are_hypotheses_where_one_may_lack_less(
    echo_bundle: Bundle, fields: dict[str, object], options: dict[str, object], num_beams: int, num_hypotheses: int
) -> None:
    encoder = _encoder(echo_bundle, options=DecodingOptions.given(options))
    [job] = encoder.jobs([_part("Tea.", **fields)])
    assert (job.request.params.beam_size, job.request.params.num_hypotheses) == (num_beams, num_hypotheses)
    assert job.request.deadline == 7.5
    assert job.request.cacheable


def test_a_request_may_bypass_the_cache(echo_bundle: Bundle) -> None:
    [job] = _encoder(echo_bundle, bypass_cache=True).jobs([_part("Tea.")])
    assert not job.request.cacheable


def test_a_sentence_that_is_too_long_is_rejected_with_its_length(echo_bundle: Bundle) -> None:
    encoder = _encoder(echo_bundle)
    tokens = encoder.tokens("tea " * 40)
    [job] = encoder.jobs([_part("tea", source=(fitting := tokens[:MAX_TOKENS]))])
    assert job.request.source is fitting
    with pytest.raises(TextTooLong, match=rf"has {MAX_TOKENS + 1} tokens; this model takes {MAX_TOKENS}"):
        encoder.jobs([_part("tea", source=tokens[: MAX_TOKENS + 1])])


def test_options_about_whole_texts_are_for_plain_text(echo_bundle: Bundle) -> None:
    for options in ({"target_prefix": "Tee"}, {"split": False}, {"return_alternatives": True, "num_hypotheses": 2}):
        with pytest.raises(InvalidRequest, match="they cannot be combined with format html"):
            _encoder(echo_bundle, options=DecodingOptions.given(options), format="html")
        _encoder(echo_bundle, options=DecodingOptions.given(options))


def test_the_seed_of_samples_is_known(echo_bundle: Bundle) -> None:
    assert _encoder(echo_bundle, options=DecodingOptions(seed=5)).seed == 5
    assert _encoder(echo_bundle).seed is None
    assert _encoder(echo_bundle, glossary=Glossary({"tea": "Tee"})).seed is None


def test_a_prefix_that_leaves_no_room_is_rejected_before_any_sentence(echo_bundle: Bundle) -> None:
    with pytest.raises(TextTooLong, match=rf"`target_prefix` may have {MAX_TOKENS - 1} tokens"):
        _encoder(echo_bundle, options=DecodingOptions(target_prefix="Tee " * 40)).check_texts(1)
    _encoder(echo_bundle, options=DecodingOptions(target_prefix="Tee")).check_texts(1)


def _config(bundle: Bundle, **tokenizer: object) -> BundleConfig:
    shapes = bundle.config.shapes.model_copy(update={"max_source_tokens": 5})
    described = bundle.config.tokenizer.model_copy(update=tokenizer)
    return bundle.config.model_copy(update={"shapes": shapes, "tokenizer": described})


def _fitted(config: BundleConfig, length: int) -> list[int]:
    return list(map(int, fitted(0, np.arange(length, dtype=np.int32), config, truncate=True)))


@pytest.mark.parametrize(
    ("tokenizer", "kept"),
    [
        ({"after": None}, [0, 1, 2, 3, 7]),  # the end of the sequence
        ({"after": ()}, [0, 1, 2, 3, 4]),
        ({"after": (1, 2)}, [0, 1, 2, 6, 7]),
        ({"source_language_last": True, "source_language_tokens": {"en": 9}}, [0, 1, 2, 6, 7]),
        ({"source_language_last": False, "source_language_tokens": {"en": 9}}, [0, 1, 2, 3, 7]),
        ({"source_language_last": True, "source_language_tokens": {}}, [0, 1, 2, 3, 7]),
    ],
)
def test_a_long_source_loses_what_stands_before_its_control_tokens(
    echo_bundle: Bundle, tokenizer: dict[str, object], kept: list[int]
) -> None:
    config = _config(echo_bundle, **tokenizer)
    assert _fitted(config, 8) == kept
    assert _fitted(config, 5) == [0, 1, 2, 3, 4]


def test_a_long_source_is_rejected_unless_it_may_be_cut(echo_bundle: Bundle) -> None:
    config = _config(echo_bundle)
    source = np.arange(6, dtype=np.int32)
    assert fitted(3, source[:5], config, truncate=False) is not None
    with pytest.raises(TextTooLong, match=r"text 3 must have at most 5 tokens with this model. Given: 6"):
        fitted(3, source, config, truncate=False)
