from pathlib import Path

from loadtest.coordination.server_metrics import MetricsPoller, served_models, useful_series
from loadtest.results.run_folder import MetricsSample, RunFolder
from loadtest.sending.addresses import address_of
from server.operations.metrics import Metrics
from tests.loadtest.answering import answering


def test_the_series_of_the_server_are_found_by_the_names_it_gives_them() -> None:
    metrics = Metrics()
    metrics.step(rows=8, seconds=0.004)
    metrics.step(rows=4, seconds=0.002)
    metrics.answered("/v1/translate", 200, "ok", 0.1)
    metrics.answered("/translate", 200, "ok", 0.3)
    metrics.answered("/translate", 429, "rejected", 0.001)
    metrics.sentences("cached", 5)
    series = useful_series(metrics.exposition().decode())
    assert series["kvasir_step_rows_sum"] == 12
    assert series["kvasir_step_rows_count"] == 2
    assert series["kvasir_requests_total.ok"] == 2
    assert series["kvasir_requests_total.rejected"] == 1
    assert series["kvasir_request_seconds_count"] == 3  # of all endpoints
    assert series["kvasir_sentences_total.cached"] == 5
    assert not any("bucket" in name or "{" in name for name in series)


def test_the_poller_samples_the_servers_metrics(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    with answering() as server:
        poller = MetricsPoller(address_of(server.url), folder.metrics_file, lambda: 4.25)
        poller.start()
        poller.stop()
        models = served_models(address_of(server.url))
    values = {"kvasir_requests_waiting": 3.0, "kvasir_requests_total.ok": 7.0}
    assert folder.metrics() == (MetricsSample(4.25, values),)
    assert models == {"models": [{"name": "capitals"}]}
    assert served_models(address_of(server.url)) is None
