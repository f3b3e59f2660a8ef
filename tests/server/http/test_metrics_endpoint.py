import pytest
from prometheus_client.parser import text_string_to_metric_families

from bundle.loading import Bundle
from server.http.state import ServerState
from server.interface.request import FinishReason
from server.operations.metrics import Metrics
from server.operations.settings import Device, Settings
from server.translation.types import Phases, TokenCounts, Translation, TranslationResult
from tests.fakes.echo import EchoGenerator, EchoStatus

_NAMES = {
    "kvasir_connections_aborted": "counter",
    "kvasir_event_loop_lag_seconds": "histogram",
    "kvasir_documents": "counter",
    "kvasir_documents_held": "gauge",
    "kvasir_requests": "counter",
    "kvasir_request_seconds": "histogram",
    "kvasir_queue_seconds": "histogram",
    "kvasir_tokenize_seconds": "histogram",
    "kvasir_encode_seconds": "histogram",
    "kvasir_decode_seconds": "histogram",
    "kvasir_time_to_first_token_seconds": "histogram",
    "kvasir_stream_first_event_seconds": "histogram",
    "kvasir_stream_event_gap_seconds": "histogram",
    "kvasir_step_seconds": "histogram",
    "kvasir_live_seconds": "histogram",
    "kvasir_step_rows": "histogram",
    "kvasir_source_tokens": "histogram",
    "kvasir_target_tokens": "histogram",
    "kvasir_requests_running": "gauge",
    "kvasir_requests_waiting": "gauge",
    "kvasir_sentences_waiting": "gauge",
    "kvasir_rows_in_use_ratio": "gauge",
    "kvasir_model_info": "gauge",
    "kvasir_tokens": "counter",
    "kvasir_sentences": "counter",
    "kvasir_cached_sentences": "gauge",
    "kvasir_cached_bytes": "gauge",
    "kvasir_sentence_splits": "counter",
    "kvasir_protected_spans": "counter",
    "kvasir_kept_sentences": "counter",
    "kvasir_checked_sentences": "counter",
    "kvasir_low_quality_sentences": "counter",
}

_RESULT = TranslationResult(
    [Translation("Tee.", 3, 4, FinishReason.STOP, float("nan"))],
    Phases(0.001, 0.002, 0.004, 0.008, 0.005),
    TokenCounts.of([(3, 4), (5, 6)]),
    num_splits=2,
)


def _samples(metrics: Metrics) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(metrics.exposition().decode())
        for sample in family.samples
    }


def test_the_metrics_have_the_names_and_kinds_that_operators_were_promised(echo: EchoGenerator) -> None:
    metrics = Metrics()
    metrics.watch([echo])
    metrics.watch_documents(int)
    families = text_string_to_metric_families(metrics.exposition().decode())
    # The client library adds the time at which each series began.
    assert {family.name: family.type for family in families if not family.name.endswith("_created")} == _NAMES


def test_a_translation_feeds_phases_tokens_and_splits() -> None:
    metrics = Metrics()
    metrics.translated(_RESULT)
    samples = _samples(metrics)
    assert samples["kvasir_queue_seconds_sum", ()] == 0.002
    assert samples["kvasir_decode_seconds_sum", ()] == 0.008
    assert samples["kvasir_time_to_first_token_seconds_sum", ()] == 0.005
    assert samples["kvasir_source_tokens_count", ()] == 2
    assert samples["kvasir_tokens_total", (("side", "source"),)] == 8
    assert samples["kvasir_tokens_total", (("side", "target"),)] == 10
    assert samples["kvasir_sentence_splits_total", ()] == 2


def test_a_request_without_sentences_leaves_the_engine_phases_alone() -> None:
    metrics = Metrics()
    metrics.translated(TranslationResult([], Phases(), TokenCounts({}, {}), 0))
    assert _samples(metrics)["kvasir_decode_seconds_count", ()] == 0


def test_steps_and_answers_are_counted() -> None:
    metrics = Metrics()
    metrics.step(rows=7, seconds=0.003)
    metrics.answered("/v1/translate", 200, "ok", 0.5)
    samples = _samples(metrics)
    assert samples["kvasir_step_rows_sum", ()] == 7
    assert samples["kvasir_step_seconds_sum", ()] == 0.003
    labels = (("endpoint", "/v1/translate"), ("outcome", "ok"), ("status", "200"))
    assert samples["kvasir_requests_total", labels] == 1
    assert samples["kvasir_request_seconds_count", (("endpoint", "/v1/translate"),)] == 1


def test_gauges_are_read_off_all_engines_at_the_scrape(echo: EchoGenerator, echo_bundle: Bundle) -> None:
    other = EchoGenerator(echo_bundle)
    metrics = Metrics()
    metrics.watch([echo, other])
    echo.shown_status = EchoStatus(waiting=2, running=3, unfinished=45, rows_in_use=12, rows=64)
    other.shown_status = EchoStatus(waiting=1, running=1, unfinished=2, rows_in_use=4, rows=64)
    samples = _samples(metrics)
    assert samples["kvasir_requests_waiting", ()] == 3
    assert samples["kvasir_requests_running", ()] == 4
    assert samples["kvasir_sentences_waiting", ()] == 43
    assert samples["kvasir_rows_in_use_ratio", ()] == 0.125


@pytest.mark.parametrize(("device", "provider"), [("cpu", "CPUExecutionProvider"), ("cuda", "CUDAExecutionProvider")])
def test_the_model_is_named_with_provider_and_precision(echo: EchoGenerator, device: Device, provider: str) -> None:
    server = ServerState(Settings(device=device), metrics := Metrics())
    server.open([echo])
    labels = (("model", "echo-en-de"), ("precision", "float32"), ("provider", provider))
    assert _samples(metrics)["kvasir_model_info", labels] == 1
