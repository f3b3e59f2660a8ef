import pytest

from bundle.loading import Bundle
from server.interface.decoding_options import DecodingOptions
from server.interface.errors import InvalidRequest, TextTooLong
from server.interface.request import SentenceParams
from server.text.formality import Formality
from server.text.glossary import Glossary
from server.translation.limits import TranslationLimits
from server.translation.types import TranslationRequest
from tests.fakes.echo import MAX_TOKENS

LIMITS = TranslationLimits(max_beam_size=6, default_beam_size=4)


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


def _params(bundle: Bundle, **options: object) -> SentenceParams:
    request = TranslationRequest(("a",), "en", "de", DecodingOptions.given(options))
    return LIMITS.sentence_params(request, bundle.config.shapes)


@pytest.mark.parametrize(
    ("options", "beam_size", "num_hypotheses"),
    [
        ({}, 4, 1),
        ({"beam_size": 6}, 6, 1),
        ({"beam_size": 1}, 1, 1),
        ({"num_hypotheses": 3}, 4, 3),
        ({"num_hypotheses": 6}, 6, 6),
        ({"temperature": 1.0, "num_hypotheses": 6}, 1, 6),
        ({"return_alternatives": True, "num_hypotheses": 5}, 1, 5),
        ({"beam_size": 6, "num_beam_groups": 3, "diversity_penalty": 0.5, "num_hypotheses": 6}, 6, 6),
    ],
)
def test_a_request_gets_the_default_beams_or_as_many_as_its_hypotheses_need(
    echo_bundle: Bundle, options: dict[str, object], beam_size: int, num_hypotheses: int
) -> None:
    params = _params(echo_bundle, **options)
    assert (params.beam_size, params.num_hypotheses) == (beam_size, num_hypotheses)
    assert params.max_new_tokens == MAX_TOKENS


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"beam_size": 7}, "`beam_size` must be from 1 to 6 on this server. Given: 7"),
        ({"max_new_tokens": MAX_TOKENS + 1}, f"`max_new_tokens` must be from 1 to {MAX_TOKENS} with this model"),
        ({"beam_size": 3, "num_hypotheses": 4}, "`num_hypotheses` must be from 1 to 3 with a beam_size of 3. Given: 4"),
        ({"num_hypotheses": 7}, "`num_hypotheses` must be from 1 to 6 with a beam_size of 6. Given: 7"),
        ({"temperature": 1.0, "num_hypotheses": 7}, "`num_hypotheses` must be from 1 to 6 on this server. Given: 7"),
        ({"patience": 0.5, "num_hypotheses": 3}, "`num_hypotheses` must be from 1 to 2 with a patience of 0.5"),
        ({"suppress_tokens": (3, 10_000)}, "with this model. Given: 10000"),
        ({"return_attention": True, "alignment_layer": 1}, "`alignment_layer` must be from -1 to 0 with this model"),
        ({"return_attention": True, "alignment_layer": -2}, "Given: -2"),
        (
            {"return_attention": True, "alignment_heads": (0, 1)},
            "`alignment_heads` must be from 0 to 0 with this model",
        ),
    ],
)
def test_options_beyond_a_limit_are_rejected_with_it(
    echo_bundle: Bundle, options: dict[str, object], reason: str
) -> None:
    with pytest.raises(InvalidRequest) as rejected:
        _params(echo_bundle, **options)
    assert reason in str(rejected.value)


def test_options_at_their_limits_are_taken(echo_bundle: Bundle) -> None:
    size = echo_bundle.config.shapes.target_vocab_size
    assert _params(echo_bundle, max_new_tokens=MAX_TOKENS).max_new_tokens == MAX_TOKENS
    assert _params(echo_bundle, suppress_tokens=(0, size - 1)).options.suppress_tokens == (0, size - 1)
    assert _params(echo_bundle, return_attention=True, alignment_layer=0, alignment_heads=(0,)).return_attention
    assert _params(echo_bundle, return_alignments=True, alignment_layer=-1).return_attention
    assert _params(echo_bundle, patience=0.5, num_hypotheses=2).num_hypotheses == 2
    assert not _params(echo_bundle).return_attention


def test_beams_that_differ_by_design_have_no_glossary_and_no_form_of_address(echo_bundle: Bundle) -> None:
    glossary = Glossary({"a": "b"})
    grouped = {"beam_size": 4, "num_beam_groups": 2, "diversity_penalty": 0.5}
    for options in ({"temperature": 1.0}, {"return_alternatives": True, "num_hypotheses": 2}, grouped):
        request = TranslationRequest(("a",), "en", "de", DecodingOptions.given(options), glossary=glossary)
        with pytest.raises(InvalidRequest, match="a glossary cannot be combined"):
            LIMITS.sentence_params(request, echo_bundle.config.shapes)
        request = TranslationRequest(("a",), "en", "de", DecodingOptions.given(options), formality=Formality.FORMAL)
        with pytest.raises(InvalidRequest, match="`formal` cannot be combined"):
            LIMITS.sentence_params(request, echo_bundle.config.shapes)
    request = TranslationRequest(("a",), "en", "de", glossary=glossary, formality=Formality.FORMAL)
    assert LIMITS.sentence_params(request, echo_bundle.config.shapes).beam_size == 4


def test_greedy_search_computes_the_scores_that_a_quality_needs(echo_bundle: Bundle) -> None:
    assert _params(echo_bundle, beam_size=1, return_quality=True).options.return_scores
    assert not _params(echo_bundle, beam_size=2, return_quality=True).options.return_scores
    assert not _params(echo_bundle, beam_size=1).options.return_scores
    request = TranslationRequest(("a",), "en", "de", DecodingOptions(beam_size=1))
    assert TranslationLimits(min_quality=0.5).sentence_params(request, echo_bundle.config.shapes).options.return_scores


def test_the_size_of_a_request_is_limited_unless_it_was_checked() -> None:
    limits = TranslationLimits(max_texts=2, max_text_characters=5)
    limits.check_size(TranslationRequest(("abc", "de"), "en", "de"))
    with pytest.raises(InvalidRequest, match=r"at most 2 texts. Given: 3"):
        limits.check_size(TranslationRequest(("a", "b", "c"), "en", "de"))
    with pytest.raises(TextTooLong, match=r"at most 5 characters. Given: 6"):
        limits.check_size(TranslationRequest(("abc", "def"), "en", "de"))
    limits.check_size(TranslationRequest(("a", "b", "c", "defghi"), "en", "de", size_is_checked=True))
    TranslationLimits().check_size(TranslationRequest(("x" * 100,) * 9, "en", "de"))


def test_a_deadline_is_that_of_the_request_or_of_the_server() -> None:
    limits = TranslationLimits(max_timeout_seconds=10)
    assert limits.deadline(TranslationRequest(("a",), "en", "de"), 100.0) == 110
    assert limits.deadline(TranslationRequest(("a",), "en", "de", timeout_seconds=10), 100.0) == 110
    assert limits.deadline(TranslationRequest(("a",), "en", "de", timeout_seconds=0.5), 100.0) == 100.5
    for seconds in (0, -1, 10.5, float("nan")):
        with pytest.raises(InvalidRequest, match="above 0 and at most 10 on this server"):
            limits.deadline(TranslationRequest(("a",), "en", "de", timeout_seconds=seconds), 100.0)
    assert TranslationLimits().deadline(TranslationRequest(("a",), "en", "de"), 100.0) is None
    assert TranslationLimits().deadline(TranslationRequest(("a",), "en", "de", timeout_seconds=50), 100.0) == 150


def test_options_of_a_request_come_before_those_of_the_server() -> None:
    keep, translate = TranslationLimits(), TranslationLimits(if_already_target="translate", repair=False)
    assert keep.keeps_target(DecodingOptions())
    assert not translate.keeps_target(DecodingOptions())
    assert translate.keeps_target(DecodingOptions(if_already_target="keep"))
    assert keep.repairs(DecodingOptions())
    assert not keep.repairs(DecodingOptions(repair=False))
    assert not translate.repairs(DecodingOptions())
    assert translate.repairs(DecodingOptions(repair=True))
    doubting = TranslationLimits(min_quality=0.5, on_low_quality="keep_source")
    assert doubting.min_quality_of(DecodingOptions()) == 0.5
    assert doubting.min_quality_of(DecodingOptions(min_quality=0.0)) == 0.0
    assert doubting.keeps_low_quality(DecodingOptions())
    assert not doubting.keeps_low_quality(DecodingOptions(on_low_quality="flag"))
    assert doubting.estimates_quality(DecodingOptions())
    assert not keep.estimates_quality(DecodingOptions())
    assert keep.estimates_quality(DecodingOptions(min_quality=0.1))
