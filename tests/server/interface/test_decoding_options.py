"""Combinations of options, which `tests/server/http/protocols/native/test_decoding_options.py` sends over HTTP too."""

import pytest

from server.http.protocols.native.texts import TranslateBody
from server.interface.decoding_options import (
    ALTERNATIVES,
    BEAM,
    GREEDY,
    NO_OPTIONS,
    SAMPLING,
    DecodingOptions,
    check_options,
)
from server.interface.errors import InvalidRequest
from tests.fakes.sentence_params import changed, sentence_params


def test_the_options_of_a_body_are_its_fields_without_the_texts() -> None:
    body = TranslateBody.model_validate({"text": "Tea.", "beam_size": 2, "suppress_tokens": [5], "temperature": None})
    options = DecodingOptions.of(body)
    assert type(options) is DecodingOptions
    assert options == DecodingOptions(beam_size=2, suppress_tokens=(5,))
    assert hash(options) == hash(DecodingOptions(beam_size=2, suppress_tokens=(5,)))
    assert DecodingOptions.of(TranslateBody.model_validate({"text": "Tea."})) is NO_OPTIONS


def test_a_named_default_is_no_change() -> None:
    options = DecodingOptions(patience=1.0, top_k=None, coverage_penalty=0.5, beam_size=3)
    assert list(options.changed().items()) == [("beam_size", 3), ("coverage_penalty", 0.5)]
    assert options.with_changes(coverage_penalty=0.0).changed() == {"beam_size": 3}


def test_the_engine_gets_equal_options_where_only_resolved_ones_differ() -> None:
    first = DecodingOptions(
        beam_size=3, seed=1, target_prefix=("a", "b"), required_phrases=("c",), coverage_penalty=0.5
    )
    second = DecodingOptions(max_new_tokens=9, return_alignments=True, alignment_layer=1, coverage_penalty=0.5)
    assert first.without_resolved() == second.without_resolved() == DecodingOptions(coverage_penalty=0.5)
    assert DecodingOptions(beam_size=3, min_p=0.1).without_resolved() is NO_OPTIONS


@pytest.mark.parametrize(
    ("options", "beam_size", "mode"),
    [
        (NO_OPTIONS, 1, GREEDY),
        (NO_OPTIONS, 4, BEAM),
        (DecodingOptions(min_p=0.0), 4, SAMPLING),
        (DecodingOptions(seed=0, return_alternatives=True), 4, SAMPLING),
        (DecodingOptions(return_alternatives=True), 1, ALTERNATIVES),
    ],
)
def test_options_choose_the_search(options: DecodingOptions, beam_size: int, mode: object) -> None:
    assert options.search_mode(beam_size) is mode


def test_parameters_of_a_sentence_are_equal_and_hash_alike_by_value() -> None:
    params = sentence_params(4, coverage_penalty=0.5, target_prefix=(1, 2))
    again = sentence_params(4, coverage_penalty=0.5, target_prefix=(1, 2))
    assert params == again
    assert hash(params) == hash(again) == hash(params)
    for other in (
        {"beam_size": 3},
        {"coverage_penalty": 0.25},
        {"target_prefix": (1,)},
        {"forced_target": (0,)},
        {"return_attention": True},
    ):
        different = changed(params, **other)
        assert different != params
        assert hash(different) != hash(params)


@pytest.mark.parametrize(
    ("options", "beam_size", "message"),
    [
        ({"patience": 2.0}, 1, "`patience` needs a beam_size of 2 or more. Given: 1"),
        ({"num_beam_groups": 2}, 1, "`num_beam_groups` needs a beam_size of 2 or more. Given: 1"),
        (
            {"num_beam_groups": 2},
            5,
            "`num_beam_groups` must divide beam_size. Given: num_beam_groups is 2, beam_size is 5",
        ),
        ({"top_k": 5, "beam_size": 4}, 4, "`top_k` cannot be combined with a beam_size of 4"),
        ({"seed": 0, "early_stopping": True}, 1, "`seed` cannot be combined with `early_stopping`"),
        ({"return_alternatives": True, "patience": 2.0}, 1, "`return_alternatives` cannot be combined with `patience`"),
        (
            {"required_phrases": ("a",), "num_beam_groups": 2},
            4,
            "`required_phrases` cannot be combined with `num_beam_groups`",
        ),
        ({"required_phrases": ("a", "b"), "suppress_phrases": ("b",)}, 4, "both have 'b'"),
        ({"target_prefix": ("a", "b")}, 4, "`target_prefix` has 2 entries for 3 texts"),
        ({"min_new_tokens": 10}, 4, "min_new_tokens is 10, max_new_tokens is 10"),
    ],
)
def test_contradictions_are_rejected_with_both_names(options: dict[str, object], beam_size: int, message: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        check_options(DecodingOptions.given(options), beam_size, max_new_tokens=10, num_texts=3)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("options", "beam_size"),
    [
        (NO_OPTIONS, 1),
        (DecodingOptions(early_stopping=True), 1),
        (DecodingOptions(beam_size=1, temperature=0.5, patience=1.0), 1),
        (DecodingOptions(num_beam_groups=2, diversity_penalty=0.5, coverage_penalty=0.1), 4),
        (DecodingOptions(required_phrases=("a",), suppress_phrases=("b",), target_prefix=("a", "b", "c")), 4),
    ],
)
def test_options_that_go_together_are_accepted(options: DecodingOptions, beam_size: int) -> None:
    check_options(options, beam_size, max_new_tokens=10, num_texts=3)
