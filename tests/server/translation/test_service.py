import asyncio
import math
from dataclasses import replace

import pytest

from server.interface.decoding_options import DecodingOptions
from server.interface.errors import InvalidRequest, QueueFull, TextTooLong, UnsupportedPair
from server.interface.request import FinishReason
from server.text.glossary import Glossary
from server.text.language_detection import Detection, Detector
from server.text.protection.masked_sentence import KeptSpan, Strategy
from server.text.spans import SpanKind
from server.text.tokenizers.registry import open_tokenizer
from server.translation.limits import TranslationLimits
from server.translation.pipeline import Pipeline
from server.translation.router import Router
from server.translation.service import AUTO, TranslationOutcome, TranslationService, merge, with_kept
from server.translation.text_stream import TextStream
from server.translation.types import (
    KeepReason,
    KeptSentence,
    Phases,
    TokenCounts,
    Translation,
    TranslationRequest,
    TranslationResult,
)
from tests.fakes.echo import EchoFor, EchoGenerator

PAIRS = [("de", "en"), ("en", "fr"), ("en", "de")]
ENGLISH, GERMAN = "Where is the railway station?", "Wo ist der Bahnhof? Er ist hier."
LIMITS = TranslationLimits(max_texts=10, max_text_characters=1000, max_timeout_seconds=60.0)

Echoes = dict[str, EchoGenerator]


@pytest.fixture
def echoes(echo_for: EchoFor) -> Echoes:
    return {"-".join(pair): echo_for(*pair) for pair in PAIRS}


@pytest.fixture
def service(echoes: Echoes) -> TranslationService:
    translators = [Pipeline(echo, LIMITS) for echo in echoes.values()]
    return TranslationService(Router(translators, pivot="en"), Detector(["en", "de"]), LIMITS)


def _asked(*texts: str) -> TranslationRequest:
    return TranslationRequest(texts, "", "")


def _translate(
    service: TranslationService, asked: TranslationRequest, source: str | None, target: str | None
) -> TranslationOutcome:
    return asyncio.run(service.translate(asked, source, target))


def _texts(done: TranslationOutcome) -> list[str]:
    return [translation.text for translation in done.result.translations]


def test_a_pair_without_a_model_goes_through_the_pivot_and_names_it(
    service: TranslationService, echoes: Echoes
) -> None:
    done = _translate(
        service, replace(_asked(GERMAN), options=DecodingOptions(num_hypotheses=2, beam_size=3)), "de", "fr"
    )
    assert _texts(done) == [GERMAN]
    assert (done.model, done.pivot) == ("echo-de-en+echo-en-fr", "en")
    [[first, *_]], [[second, *_]] = echoes["de-en"].batches, echoes["en-fr"].batches
    assert (first.params.beam_size, first.params.num_hypotheses) == (3, 1)
    assert (second.params.beam_size, second.params.num_hypotheses) == (3, 2)
    assert (first.accepted_earlier, second.accepted_earlier) == (False, True)
    assert done.result.sentence_tokens.num_sentences == 4
    [translation] = done.result.translations
    assert len(translation.alternatives) == 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (DecodingOptions(suppress_tokens=(9999,)), "`suppress_tokens` must be from 0 to .* Given: 9999"),
        (DecodingOptions(patience=0.1), "`num_hypotheses` must be from 1 to 1 with a patience of 0.1. Given: 2"),
        (DecodingOptions(required_phrases=("日本",)), "`required_phrases`: '日本' has characters"),
        (DecodingOptions(target_prefix=("", "日本")), "`target_prefix`: '日本' has characters"),
    ],
)
def test_options_that_the_second_step_rejects_are_rejected_before_the_first(
    service: TranslationService, echoes: Echoes, options: DecodingOptions, message: str
) -> None:
    asked = replace(_asked(GERMAN, GERMAN), options=options.with_changes(num_hypotheses=2))
    with pytest.raises(InvalidRequest, match=message):
        _translate(service, asked, "de", "fr")
    assert not echoes["de-en"].batches


def test_each_text_is_detected_and_takes_its_own_route(service: TranslationService, echoes: Echoes) -> None:
    texts = [GERMAN, "", ENGLISH, "12:30", GERMAN, " \n"]
    done = _translate(service, _asked(*texts), AUTO, "fr")
    assert _texts(done) == texts
    assert [None if each is None else each.language for each in done.detected] == ["de", None, "en", None, "de", None]
    assert len(echoes["de-en"].batches[0]) == 4
    assert sorted(map(len, echoes["en-fr"].batches)) == [1, 4]
    assert not echoes["en-de"].batches


def test_a_text_that_is_in_the_target_language_already_comes_back_as_it_is(
    service: TranslationService, echoes: Echoes
) -> None:
    done = _translate(service, _asked(GERMAN, ENGLISH), AUTO, "de")
    assert _texts(done) == [GERMAN, ENGLISH]
    assert done.result.translations[0].source_tokens == 0
    assert math.isnan(done.result.translations[0].score)
    assert [len(echoes[pair].batches) for pair in ("de-en", "en-fr", "en-de")] == [0, 0, 1]


def test_options_for_each_text_go_with_it(service: TranslationService, echoes: Echoes) -> None:
    asked = replace(_asked(GERMAN, ENGLISH), options=DecodingOptions(target_prefix=("Tea", "Where")))
    _translate(service, asked, AUTO, "fr")
    english = next(batch for batch in echoes["en-fr"].batches if batch[0].source.size < 20)
    assert [len(request.params.target_prefix) > 0 for request in english] == [True]
    with pytest.raises(InvalidRequest, match="`target_prefix` has 1 entries for 2 texts"):
        _translate(service, replace(asked, options=DecodingOptions(target_prefix=("Tea",))), AUTO, "fr")


def test_a_part_that_fails_fails_the_request_and_cancels_the_others(
    service: TranslationService, echoes: Echoes
) -> None:
    echoes["en-fr"].error = QueueFull("full", 1.0)
    echoes["de-en"].gate = asyncio.Event()
    with pytest.raises(QueueFull):
        _translate(service, _asked(GERMAN, ENGLISH), AUTO, "fr")
    assert echoes["de-en"].num_cancelled == 2


def test_the_limits_count_the_whole_request(service: TranslationService) -> None:
    with pytest.raises(InvalidRequest, match=r"at most 10 texts\. Given: 11"):
        _translate(service, _asked(*["Tea."] * 11), AUTO, "fr")
    with pytest.raises(TextTooLong, match=r"at most 1000 characters\. Given: 1001"):
        _translate(service, _asked("x" * 1001), AUTO, "fr")


@pytest.mark.parametrize(
    ("source", "target", "message"),
    [
        (AUTO, "es", "no model translates to es; available: en, fr, de"),
        (AUTO, None, "`target` is required; available: en, fr, de"),
        ("fr", "de", "from fr to de; available: de to en, de to fr, en to de, en to fr"),
    ],
)
def test_missing_pairs_are_rejected(
    service: TranslationService, source: str | None, target: str | None, message: str
) -> None:
    with pytest.raises(UnsupportedPair, match=message):
        _translate(service, _asked(GERMAN), source, target)


def _streamed(
    service: TranslationService, asked: TranslationRequest, source: str, target: str
) -> tuple[list[str], list[str]]:
    """Return the joined texts of the stream, and those of the result."""
    feed = TextStream()
    done = asyncio.run(service.translate(asked, source, target, feed))
    texts = [""] * len(asked.texts)
    for piece in feed.take():
        texts[piece.index] += piece.text
    return texts, _texts(done)


def test_a_stream_receives_each_text_at_its_index(service: TranslationService) -> None:
    asked = _asked(f" {GERMAN}\n", "", ENGLISH, "12:30 !", GERMAN)
    for target in ("fr", "de"):
        streamed, whole = _streamed(service, asked, AUTO, target)
        assert streamed == whole == list(asked.texts)


def test_a_stream_receives_texts_through_a_pivot_and_with_a_glossary(service: TranslationService) -> None:
    assert _streamed(service, _asked(GERMAN), "de", "fr") == ([GERMAN], [GERMAN])
    asked = replace(_asked("Where is the water?"), glossary=Glossary({"water": "where"}))
    streamed, whole = _streamed(service, asked, "en", "de")
    assert streamed == whole


def _required(echo: EchoGenerator) -> list[list[str]]:
    """Return the first alternative of each required term of every request, in the order of the requests."""
    tokenizer = open_tokenizer(echo.bundle)
    return [
        [tokenizer.decode(alternatives[0]) for alternatives in request.params.required_terms]
        for batch in echo.batches
        for request in sorted(batch, key=lambda each: each.id)
    ]


def test_through_a_pivot_each_step_requires_the_terms_of_its_own_target(
    service: TranslationService, echoes: Echoes
) -> None:
    asked = replace(_asked("Wo ist der Bahnhof? Er ist hier."), glossary=Glossary({"Bahnhof": "station", "Tee": "tea"}))
    done = _translate(service, asked, "de", "fr")
    assert _texts(done) == ["Wo ist der Bahnhof? Er ist hier."]
    # The first batch is the term alone, which the model translates by itself.
    assert [len(batch) for batch in echoes["de-en"].batches] == [1, 2]
    assert _required(echoes["de-en"]) == [[], ["Bahnhof"], []]
    assert _required(echoes["en-fr"]) == [["station"], []]


def test_with_detection_a_glossary_is_for_the_texts_in_its_language(
    service: TranslationService, echoes: Echoes
) -> None:
    glossary = Glossary({"is": "water", "ist": "water"})
    asked = replace(_asked(GERMAN, ENGLISH), glossary=glossary)
    for source, both in ((None, True), ("en-GB", False)):
        for echo in echoes.values():
            echo.batches.clear()
        _translate(service, replace(asked, glossary_source=source), AUTO, "fr")
        assert any(map(any, _required(echoes["de-en"]))) == both
        assert any(terms == ["water"] for terms in _required(echoes["en-fr"]))


def test_a_server_with_one_direction_leaves_texts_in_its_target_language(echo_for: EchoFor) -> None:
    echo = echo_for("en", "de")
    service = TranslationService(Router([Pipeline(echo, LIMITS)], pivot=""), Detector(["en"]), LIMITS)
    done = _translate(service, _asked(GERMAN, ENGLISH), AUTO, "de")
    assert done.unchanged == {0}
    assert [None if each is None else each.language for each in done.detected] == ["de", "en"]
    assert _texts(done) == [GERMAN, ENGLISH]
    assert [len(batch) for batch in echo.batches] == [1]


def _result(*texts: str, times: tuple[float, float, float, float, float], seed: int | None = None) -> TranslationResult:
    spans = (KeptSpan("a.org", SpanKind.ADDRESS, Strategy.AS_IS),)
    kept = (KeptSentence("12", KeepReason.NO_WORDS),)
    translations = [Translation(each, 3, 4, FinishReason.STOP, -0.5, protected=spans, kept=kept) for each in texts]
    counts = TokenCounts.of([(3, 4)] * len(texts))
    return TranslationResult(translations, Phases(*times), counts, len(texts), seed, {"repaired": 1})


def test_results_are_merged_in_the_order_of_the_texts() -> None:
    first = _result("A", "C", times=(1, 2, 3, 4, 5))
    second = _result("D", times=(5, 1, 4, 2, 9), seed=7)
    merged = merge(["a", "b\ud800", "c", "d"], [[0, 2], [3]], [first, second])
    assert [each.text for each in merged.translations] == ["A", "b\ufffd", "C", "D"]
    assert merged.translations[1].source_tokens == merged.translations[1].target_tokens == 0
    assert math.isnan(merged.translations[1].score)
    assert merged.phases == Phases(5, 2, 4, 4, 9)  # at the same time
    assert merged.sentence_tokens == TokenCounts({3: 3}, {4: 3})
    assert (merged.num_splits, merged.seed) == (3, 7)
    assert [(each.kind, each.means) for each in merged.kept_spans] == [(SpanKind.ADDRESS, Strategy.AS_IS)] * 3
    assert [each.reason for each in merged.kept_sentences] == [KeepReason.NO_WORDS] * 3
    assert merged.outcomes == {"repaired": 2}


def test_a_request_without_parts_took_no_time() -> None:
    merged = merge(["a"], [], [])
    assert merged.translations[0].text == "a"
    assert (merged.phases, merged.num_splits, merged.seed) == (Phases(), 0, None)


def test_texts_that_stay_are_named_with_their_reasons() -> None:
    result = merge(["12", " Hallo ", " ", "x"], [[3]], [_result("X", times=(0, 0, 0, 0, 0))])
    detected = [None, Detection("de", 0.9), None, Detection("en", 0.9)]
    named = with_kept(result, [0, 1, 2], detected)
    assert [each.kept for each in named.translations] == [
        (KeptSentence("12", KeepReason.NO_WORDS),),
        (KeptSentence("Hallo", KeepReason.ALREADY_IN_TARGET_LANGUAGE),),
        (),
        (KeptSentence("12", KeepReason.NO_WORDS),),
    ]
