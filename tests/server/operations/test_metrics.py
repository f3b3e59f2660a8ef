from prometheus_client.parser import text_string_to_metric_families

from server.interface.request import FinishReason
from server.operations.metrics import Metrics
from server.text.protection.masked_sentence import Means
from server.text.spans import SpanKind
from server.translation.types import KeepReason, Phases, SentenceQuality, TokenCounts, Translation, TranslationResult
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
    doubtful = (SentenceQuality("a", "b", 0.1), SentenceQuality("c", "d", 0.2))
    result = TranslationResult(
        [Translation("b d", 3, 4, FinishReason.STOP, 0.0, low_quality=doubtful)],
        Phases(0.5),
        TokenCounts({}, {}),
        num_splits=1,
        kept_spans={(SpanKind.ADDRESS, Means.AS_IS): 3},
        kept_sentences={KeepReason.NO_WORDS: 2},
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


def test_documents_streams_caches_and_connections_are_counted() -> None:
    metrics = Metrics()
    metrics.document_finished(".docx", "done")
    metrics.stream_first_seconds.observe(0.5)
    metrics.stream_gap_seconds.observe(0.25)
    metrics.stream_gap_seconds.observe(0.25)
    metrics.sentences("cached", 3)
    metrics.sentences("decoded", 2)
    metrics.sentences("cached", 1)
    metrics.cache_grew(3, 300)
    metrics.cache_grew(-1, -100)
    metrics.aborted_connections.inc()
    metrics.loop_lag_seconds.observe(0.125)
    assert _samples(metrics, "kvasir_documents_total") == {("docx", "done"): 1}
    assert _samples(metrics, "kvasir_stream_first_event_seconds_sum") == {(): 0.5}
    assert _samples(metrics, "kvasir_stream_event_gap_seconds_sum") == {(): 0.5}
    assert _samples(metrics, "kvasir_sentences_total") == {("cached",): 4, ("decoded",): 2, ("coalesced",): 0}
    assert _samples(metrics, "kvasir_cached_sentences") == {(): 2}
    assert _samples(metrics, "kvasir_cached_bytes") == {(): 200}
    assert _samples(metrics, "kvasir_connections_aborted_total") == {(): 1}
    assert _samples(metrics, "kvasir_event_loop_lag_seconds_sum") == {(): 0.125}


def test_requests_are_counted_by_route_status_and_outcome() -> None:
    metrics = Metrics()
    for status, outcome in ((200, "ok"), (200, "ok"), (429, "rejected")):
        metrics.answered("/v1/translate", status, outcome, 0.5, "0af7651916cd43dd8448eb211c80319c")
    assert _samples(metrics, "kvasir_requests_total") == {
        ("/v1/translate", "ok", "200"): 2,
        ("/v1/translate", "rejected", "429"): 1,
    }
    assert _samples(metrics, "kvasir_request_seconds_sum") == {("/v1/translate",): 1.5}
    assert b'trace_id="0af7651916cd43dd8448eb211c80319c"' in metrics.open_metrics()


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
