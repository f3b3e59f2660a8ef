"""Prometheus metrics of one application. Label values are few and fixed: never a text, an address or a key."""

import threading
import time
from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import accumulate
from typing import get_args

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.core import HistogramMetricFamily, Metric
from prometheus_client.openmetrics import exposition as openmetrics
from prometheus_client.registry import Collector

from bundle.manifest import BundleConfig
from server.interface.engine_client import EngineClient, EngineStatus, SentenceOutcome
from server.translation.types import TranslationResult


class CountHistogram(Collector):
    """Histogram with upper bounds, registered under a name. Thread-safe.

    The library's own locks and searches for each number: 20 ms of the event loop for a call of 3000 sentences.
    """

    def __init__(self, name: str, documentation: str, bounds: Sequence[int], registry: CollectorRegistry) -> None:
        self._name = name
        self._documentation = documentation
        self._bounds = bounds
        self._numbers = [0] * (len(bounds) + 1)
        self._sum = 0
        self._created = time.time()
        self._lock = threading.Lock()
        registry.register(self)

    def observe(self, counts: Mapping[int, int]) -> None:
        """Add values, each so many times."""
        with self._lock:
            for value, number in counts.items():
                self._numbers[bisect_left(self._bounds, value)] += number
                self._sum += value * number

    def collect(self) -> Iterable[Metric]:
        """Yield the samples, for the registry."""
        with self._lock:
            totals, sum_value = list(accumulate(self._numbers)), self._sum
        bounds = [str(float(bound)) for bound in self._bounds] + ["+Inf"]
        family = HistogramMetricFamily(
            self._name, self._documentation, buckets=list(zip(bounds, totals, strict=True)), sum_value=sum_value
        )
        family.add_sample(f"{self._name}_created", {}, self._created)
        yield family


_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 25.0, 60.0)
_STEP_SECONDS = (0.0005, 0.001, 0.002, 0.003, 0.005, 0.0075, 0.01, 0.015, 0.025, 0.05, 0.1, 0.25, 1.0)
_GAP_SECONDS = (0.001, 0.0025, 0.005, 0.0075, 0.01, 0.015, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5)
_COUNTS = (1, 2, 4, 8, 16, 24, 32, 48, 64, 96, 128, 192, 256, 512, 1024)

_PROVIDERS = {"cpu": "CPUExecutionProvider", "cuda": "CUDAExecutionProvider"}  # of ONNX Runtime, by device


class Metrics:
    """Metrics registry and its recording methods. Thread-safe, as prometheus_client is."""

    def __init__(self) -> None:
        self._registry = registry = CollectorRegistry()
        self._requests = Counter(
            "kvasir_requests_total",
            "HTTP requests answered. outcome: ok, invalid, rejected, timeout, cancelled or error.",
            ("endpoint", "status", "outcome"),
            registry=registry,
        )
        self._request_seconds = Histogram(
            "kvasir_request_seconds",
            "Time from the first byte of a request to the last byte of its response.",
            ("endpoint",),
            buckets=_SECONDS,
            registry=registry,
        )
        # Series by their labels: prometheus_client joins and locks for each look-up.
        self._answered: dict[tuple[str, int, str], tuple[Counter, Histogram]] = {}
        self._queue_seconds = self._seconds(
            "kvasir_queue_seconds", "Time waiting for rows; maximum over the request's sentences."
        )
        self._tokenize_seconds = self._seconds(
            "kvasir_tokenize_seconds", "Time for segmentation and tokenization of a request."
        )
        self._encode_seconds = self._seconds(
            "kvasir_encode_seconds", "Time of the encoder run; maximum over the request's sentences."
        )
        self._decode_seconds = self._seconds(
            "kvasir_decode_seconds", "Time of all decoder steps; maximum over the request's sentences."
        )
        self._first_token_seconds = self._seconds(
            "kvasir_time_to_first_token_seconds",
            "Time from submission to the first token; maximum over the request's sentences.",
        )
        self._stream_first_seconds = self._seconds(
            "kvasir_stream_first_event_seconds", "Time from a request to the first text event of its stream."
        )
        self._stream_gap_seconds = self._seconds(
            "kvasir_stream_event_gap_seconds", "Time between two text events of one stream.", _GAP_SECONDS
        )
        self._step_seconds = self._seconds(
            "kvasir_step_seconds", "Time of one decoder step of one replica.", _STEP_SECONDS
        )
        self._step_rows = self._counts("kvasir_step_rows", "Rows in a decoder step.")
        self._source_tokens = CountHistogram("kvasir_source_tokens", "Source tokens of a sentence.", _COUNTS, registry)
        self._target_tokens = CountHistogram("kvasir_target_tokens", "Target tokens of a sentence.", _COUNTS, registry)
        # Not kvasir_source_tokens_total: the prefix belongs to the histogram.
        self._tokens = Counter(
            "kvasir_tokens_total", "Tokens read (source) and written (target).", ("side",), registry=registry
        )
        self._tokens_read, self._tokens_written = self._tokens.labels("source"), self._tokens.labels("target")
        self._sentences = Counter(
            "kvasir_sentences_total",
            "Sentences completed. outcome: decoded by the engine, cached (decoded earlier), or coalesced (with an "
            "identical one in flight).",
            ("outcome",),
            registry=registry,
        )
        for outcome in get_args(SentenceOutcome):  # so that every series exists before its first count
            self._sentences.labels(outcome)
        self._cached_sentences = Gauge(
            "kvasir_cached_sentences", "Sentences in the caches of all models.", registry=registry
        )
        self._cached_bytes = Gauge(
            "kvasir_cached_bytes", "Bytes of the caches of all models, approximately.", registry=registry
        )
        self._splits = Counter(
            "kvasir_sentence_splits_total",
            "Splits of sentences that were longer than the model's maximum.",
            registry=registry,
        )
        self._protected_spans = Counter(
            "kvasir_protected_spans_total",
            "Spans that had to survive (addresses, placeholders, identifiers). means: as_is, mask, placed or apart.",
            ("kind", "means"),
            registry=registry,
        )
        self._kept_sentences = Counter(
            "kvasir_kept_sentences_total",
            "Texts and sentences that were left untranslated. reason: no_words, already_in_target_language or low_quality.",
            ("reason",),
            registry=registry,
        )
        self._outcomes = Counter(
            "kvasir_checked_sentences_total",
            "Sentences that a check named. outcome: repaired, incomplete or numbers_differ.",
            ("outcome",),
            registry=registry,
        )
        self._low_quality = Counter(
            "kvasir_low_quality_sentences_total",
            "Sentences with a quality below min_quality, flagged or left untranslated.",
            registry=registry,
        )
        self._documents = Counter(
            "kvasir_documents_total",
            "Documents finished. outcome: done, error or cancelled.",
            ("format", "outcome"),
            registry=registry,
        )
        self._live_seconds = self._seconds(
            "kvasir_live_seconds", "Time from input of a live session until it is translated."
        )
        self._loop_lag_seconds = self._seconds(
            "kvasir_event_loop_lag_seconds", "Delay of a timer in the event loop, measured four times a second."
        )
        self._aborted_connections = Counter(
            "kvasir_connections_aborted_total",
            "Connections aborted because their client did not read the response.",
            registry=registry,
        )
        self._model_info = Gauge(
            "kvasir_model_info", "1 for each model served.", ("model", "provider", "precision"), registry=registry
        )

    def watch(self, engines: Sequence[EngineClient]) -> None:
        """Read the engine gauges from `engines` at every scrape."""

        def total(count: Callable[[EngineStatus], int]) -> int:
            return sum(count(engine.status()) for engine in engines)

        gauges: dict[str, tuple[str, Callable[[], float]]] = {
            "kvasir_requests_running": ("Sentences being decoded.", lambda: total(lambda s: s.running)),
            "kvasir_requests_waiting": ("Sentences in the queue.", lambda: total(lambda s: s.waiting)),
            "kvasir_sentences_waiting": (
                "Sentences not decoded yet: those in the queue, and the rest of long texts.",
                lambda: max(total(lambda s: s.unfinished - s.running), 0),
            ),
            "kvasir_rows_in_use_ratio": (
                "Fraction of all rows in use.",
                lambda: total(lambda s: s.rows_in_use) / max(total(lambda s: s.rows), 1),
            ),
        }
        for name, (documentation, value) in gauges.items():
            Gauge(name, documentation, registry=self._registry).set_function(value)

    def step(self, rows: int, seconds: float) -> None:
        """Record one decoder step. Called from engine threads."""
        self._step_rows.observe(rows)
        self._step_seconds.observe(seconds)

    def sentences(self, outcome: SentenceOutcome, count: int) -> None:
        """Count sentences completed with this outcome."""
        self._sentences.labels(outcome).inc(count)

    def cache_grew(self, num_sentences: int, num_bytes: int) -> None:
        """Record a change in the number of cached sentences and their bytes."""
        self._cached_sentences.inc(num_sentences)
        self._cached_bytes.inc(num_bytes)

    def models_served(self, configs: Iterable[BundleConfig], device: str) -> None:
        """Record the served models, and no others."""
        self._model_info.clear()
        for config in configs:
            self._model_info.labels(config.name, _PROVIDERS[device], config.precision).set(1)

    def translated(self, result: TranslationResult) -> None:
        """Record a translated request."""
        phases = result.phases
        self._tokenize_seconds.observe(phases.tokenize_seconds)
        self._splits.inc(result.num_splits)
        for (kind, means), number in result.kept_spans.items():
            self._protected_spans.labels(kind, means).inc(number)
        for reason, number in result.kept_sentences.items():
            self._kept_sentences.labels(reason).inc(number)
        for outcome, number in result.outcomes.items():
            self._outcomes.labels(outcome).inc(number)
        self._low_quality.inc(result.num_low_quality)
        tokens = result.sentence_tokens
        if not tokens.source:
            return
        self._queue_seconds.observe(phases.queue_seconds)
        self._encode_seconds.observe(phases.encode_seconds)
        self._decode_seconds.observe(phases.decode_seconds)
        self._first_token_seconds.observe(phases.time_to_first_token_seconds)
        self._source_tokens.observe(tokens.source)
        self._target_tokens.observe(tokens.target)
        self._tokens_read.inc(tokens.num_source_tokens)
        self._tokens_written.inc(tokens.num_target_tokens)

    def watch_documents(self, count: Callable[[], int]) -> None:
        """Read the number of documents from `count` at every scrape."""
        documentation = "Documents queued, in progress and stored."
        Gauge("kvasir_documents_held", documentation, registry=self._registry).set_function(count)

    def watch_live_sessions(self, count: Callable[[], int]) -> None:
        """Read the number of live sessions from `count` at every scrape."""
        Gauge("kvasir_live_sessions", "Live sessions.", registry=self._registry).set_function(count)

    def live_translated(self, seconds: float) -> None:
        """Record the time from input of a live session until it was translated."""
        self._live_seconds.observe(seconds)

    def watch_certificate(self, expiry_seconds: Callable[[], float]) -> None:
        """Read the end of the TLS certificate, in seconds since 1970, from `expiry_seconds` at every scrape."""
        documentation = "End of the TLS certificate in seconds since 1970, with --tls-certificate."
        name = "kvasir_tls_certificate_expiry_timestamp_seconds"
        Gauge(name, documentation, registry=self._registry).set_function(expiry_seconds)

    def document_finished(self, extension: str, outcome: str) -> None:
        """Count a document with this file extension (".docx") that was translated, failed or was deleted."""
        self._documents.labels(extension.removeprefix("."), outcome).inc()

    def stream_begun(self, seconds: float) -> None:
        """Record the time from a request to the first text of its stream."""
        self._stream_first_seconds.observe(seconds)

    def stream_continued(self, seconds: float) -> None:
        """Record the time between two text events of a stream."""
        self._stream_gap_seconds.observe(seconds)

    def answered(self, endpoint: str, status: int, outcome: str, seconds: float, trace_id: str | None = None) -> None:
        """Record a finished HTTP request. `endpoint` is its route's path template, or a fixed word without a route.

        `trace_id` is the exemplar of its duration.
        """
        key = endpoint, status, outcome
        if (series := self._answered.get(key)) is None:
            requests = self._requests.labels(endpoint, str(status), outcome)
            self._answered[key] = series = requests, self._request_seconds.labels(endpoint)
        series[0].inc()
        series[1].observe(seconds, None if trace_id is None else {"trace_id": trace_id})

    def loop_lagged(self, seconds: float) -> None:
        """Record a measurement of the event loop's lag."""
        self._loop_lag_seconds.observe(seconds)

    def connection_aborted(self) -> None:
        """Count a connection whose client did not read the response."""
        self._aborted_connections.inc()

    def exposition(self) -> bytes:
        """Return all metrics in Prometheus' text format."""
        return generate_latest(self._registry)

    def open_metrics(self) -> bytes:
        """Return all metrics in the format of OpenMetrics, which has exemplars."""
        text: bytes = openmetrics.generate_latest(self._registry)  # type: ignore[no-untyped-call]
        return text

    def _seconds(self, name: str, documentation: str, buckets: Sequence[float] = _SECONDS) -> Histogram:
        return Histogram(name, documentation, buckets=buckets, registry=self._registry)

    def _counts(self, name: str, documentation: str) -> Histogram:
        return Histogram(name, documentation, buckets=_COUNTS, registry=self._registry)
