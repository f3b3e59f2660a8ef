import pytest
from prometheus_client.parser import text_string_to_metric_families

from bundle.loading import Bundle
from server.http.state import ServerState
from server.interface.request import FinishReason
from server.operations.metrics import Metrics
from server.operations.settings import Device, Settings
from server.translation.types import Phases, TokenCounts, Translation, TranslationResult
from tests.fakes.echo import EchoGenerator, EchoStatus

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
