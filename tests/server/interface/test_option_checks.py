"""Combinations of options, which `tests/server/http/protocols/native/test_decoding_options.py` sends over HTTP too."""

import pytest

from server.interface.decoding_options import NO_OPTIONS, DecodingOptions
from server.interface.errors import InvalidRequest
from server.interface.option_checks import check_options


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
