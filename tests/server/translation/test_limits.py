import pytest

from server.interface.decoding_options import DecodingOptions
from server.translation.limits import TranslationLimits


@pytest.mark.parametrize(
    ("options", "is_used"),
    [
        ({}, True),
        ({"shortlist": False}, False),
        ({"beam_size": 4}, True),
        ({"return_scores": True}, False),
        ({"return_token_scores": True}, False),
        ({"num_token_alternatives": 2}, False),
        ({"return_quality": True}, False),
    ],
)
def test_a_shortlist_is_used_unless_scores_or_the_request_need_all_tokens(
    options: dict[str, object], is_used: bool
) -> None:
    assert TranslationLimits().uses_shortlist(DecodingOptions.given(options)) is is_used
    assert TranslationLimits(shortlist=False).uses_shortlist(DecodingOptions.given(options)) is False


def test_a_request_overrides_a_server_without_shortlists() -> None:
    assert TranslationLimits(shortlist=False).uses_shortlist(DecodingOptions(shortlist=True))
