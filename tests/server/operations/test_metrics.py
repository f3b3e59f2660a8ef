from collections import Counter
from collections.abc import Mapping

from prometheus_client import CollectorRegistry, Histogram, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from bundle.loading import Bundle
from server.interface.request import FinishReason
from server.operations.metrics import Activity, LeanHistogram, Metrics
from server.text.protection.masked_sentence import KeptSpan, Strategy
from server.text.spans import SpanKind
from server.translation.types import (
    KeepReason,
    KeptSentence,
    Phases,
    SentenceQuality,
    TokenCounts,
    Translation,
    TranslationResult,
)
from tests.fakes.echo import EchoGenerator, EchoStatus


def _samples(metrics: Metrics, name: str) -> dict[tuple[str, ...], float]:
    """Return the values of one metric by its labels."""
    return {
        tuple(value for _, value in sorted(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(metrics.exposition().decode())
        for sample in family.samples
        if sample.name == name
    }


def test_what_was_protected_kept_checked_and_doubtful_is_counted() -> None:
    metrics = Metrics()
    spans = (KeptSpan("a.org", SpanKind.ADDRESS, Strategy.AS_IS),) * 3
    kept = (KeptSentence("12", KeepReason.NO_WORDS),) * 2
    doubtful = (SentenceQuality("a", "b", 0.1), SentenceQuality("c", "d", 0.2))
    result = TranslationResult(
        [Translation("b d", 3, 4, FinishReason.STOP, 0.0, protected=spans, kept=kept, low_quality=doubtful)],
        Phases(0.5),
        TokenCounts({}, {}),
        num_splits=1,
        outcomes={"repaired": 4, "numbers_differ": 1},
    )
    for _ in range(2):
        metrics.translated(result)
    assert _samples(metrics, "kvasir_protected_spans_total") == {("address", "as_is"): 6}
    assert _samples(metrics, "kvasir_kept_sentences_total") == {("no_words",): 4}
    assert _samples(metrics, "kvasir_checked_sentences_total") == {("repaired",): 8, ("numbers_differ",): 2}
    assert _samples(metrics, "kvasir_low_quality_sentences_total") == {(): 4}
    assert _samples(metrics, "kvasir_sentence_splits_total") == {(): 2}
    assert _samples(metrics, "kvasir_tokenize_seconds_sum") == {(): 1}
    assert _samples(metrics, "kvasir_queue_seconds_count") == {(): 0}, "no sentence was decoded"


def test_gauges_are_read_off_all_engines_at_the_scrape(echo: EchoGenerator, echo_bundle: Bundle) -> None:
    other = EchoGenerator(echo_bundle)
    metrics = Metrics()
    metrics.watch([echo, other])
    echo.shown_status = EchoStatus(waiting=2, running=3, unfinished=45, rows_in_use=12, rows=64)
    other.shown_status = EchoStatus(waiting=1, running=1, unfinished=2, rows_in_use=4, rows=64)
    names = ("requests_waiting", "requests_running", "sentences_waiting", "rows_in_use_ratio")
    assert [_samples(metrics, f"kvasir_{name}")[()] for name in names] == [3, 4, 43, 0.125]


def test_gauges_never_fall_below_zero_and_need_no_rows(echo: EchoGenerator) -> None:
    metrics = Metrics()
    metrics.watch([echo])
    echo.shown_status = EchoStatus(running=3, unfinished=1, rows=0)
    assert _samples(metrics, "kvasir_sentences_waiting") == {(): 0}
    assert _samples(metrics, "kvasir_rows_in_use_ratio") == {(): 0}
    echo.shown_status = EchoStatus(rows_in_use=1, rows=1)
    assert _samples(metrics, "kvasir_rows_in_use_ratio") == {(): 1}
    metrics.models_served([echo.bundle.config], "cpu")
    assert list(_samples(metrics, "kvasir_model_info").values()) == [1]
    metrics.models_served([], "cpu")
    assert _samples(metrics, "kvasir_model_info") == {}


_BOUNDS = (1, 4, 16)
_VALUES = [0, 1, 1, 2, 4, 5, 16, 17, 400]


def _all_samples(registry: CollectorRegistry) -> Mapping[tuple[str, str], float]:
    return {
        (sample.name, sample.labels.get("le", "")): sample.value
        for family in text_string_to_metric_families(generate_latest(registry).decode())
        for sample in family.samples
        if not sample.name.endswith("_created")
    }


def test_counts_make_the_same_samples_as_single_observations() -> None:
    own, library = CollectorRegistry(), CollectorRegistry()
    histogram = LeanHistogram("tokens", "Tokens.", _BOUNDS, own)
    histogram.observe_all(Counter(_VALUES[:3]))
    for value in _VALUES[3:]:
        histogram.observe(value)
    theirs = Histogram("tokens", "Tokens.", buckets=_BOUNDS, registry=library)
    for value in _VALUES:
        theirs.observe(value)
    assert _all_samples(own) == _all_samples(library)


RESULT = TranslationResult([], Phases(), TokenCounts.of([(3, 4), (5, 6)]), num_splits=0)


def test_names_of_models_are_bounded_and_known_ones_are_still_counted() -> None:
    activity = Activity()
    for number in range(1010):
        activity.count(str(number), None, 1, RESULT, is_rejected=False)
    activity.count("0", None, 1, RESULT, is_rejected=False)
    activity.count("1009", None, 1, RESULT, is_rejected=False)
    assert len(activity.models) == 1000
    assert activity.models["0"].requests == 2
