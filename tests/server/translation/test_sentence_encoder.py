"""Requests for the engine: which of a client's options hold for one sentence, and how many beams search for it."""

from dataclasses import replace

import pytest

from bundle.loading import Bundle
from server.interface.decoding_options import DecodingOptions
from server.interface.errors import InvalidRequest, TextTooLong
from server.interface.request import Sampling
from server.text.glossary import Glossary
from server.text.protection.masked_sentence import read_sentence
from server.text.readers.units import Unit
from server.text.tokenizers.registry import open_tokenizer
from server.translation.limits import TranslationLimits
from server.translation.sentence_encoder import Part, SentenceEncoder, first_in_prefix, first_token
from server.translation.types import TranslationRequest
from tests.fakes.echo import MAX_TOKENS
from tests.fakes.sentence_params import sentence_params


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
