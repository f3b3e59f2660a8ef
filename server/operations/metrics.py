"""Prometheus metrics of one application. Label values are few and fixed: never a text, an address or a key."""

import threading
import time
from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import get_args

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.core import HistogramMetricFamily, Metric
from prometheus_client.openmetrics import exposition as openmetrics
from prometheus_client.registry import Collector

from bundle.manifest import BundleConfig
from server.interface.engine_client import EngineClient, EngineStatus, SentenceOutcome
from server.operations.api_keys.key_file import ApiKey
from server.translation.types import TranslationResult


class LeanHistogram(Collector):
    """Histogram with upper bounds, registered under a name, without labels. Thread-safe.

    The library's own locks several times and checks its labels for each number: 20 ms of the event loop for a call of
    3000 sentences, and a fortieth of the time of a short request.
    """

    def __init__(self, name: str, documentation: str, bounds: Sequence[float], registry: CollectorRegistry) -> None:
        self._name = name
        self._documentation = documentation
        self._bounds = bounds
        self._numbers = [0] * (len(bounds) + 1)
        self._sum = 0.0
        self._created = time.time()
        self._lock = threading.Lock()
        registry.register(self)

    def observe(self, value: float, number: int = 1) -> None:
        """Add a value so many times."""
        with self._lock:
            self._numbers[bisect_left(self._bounds, value)] += number
            self._sum += value * number

    def observe_all(self, counts: Mapping[int, int]) -> None:
        """Add values, each so many times."""
        for value, number in counts.items():
            self.observe(value, number)

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
    """Metrics registry, the metrics that others record, and methods for the rest. Thread-safe, as prometheus_client is.

    Series whose labels are known are made at the start: prometheus_client joins and locks for each look-up.
    """

    def __init__(self) -> None:
        self._registry = registry = CollectorRegistry()

        def counter(name: str, documentation: str, *labels: str) -> Counter:
            return Counter(name, documentation, labels, registry=registry)

        def gauge(name: str, documentation: str, *labels: str) -> Gauge:
            return Gauge(name, documentation, labels, registry=registry)

        def histogram(name: str, documentation: str, bounds: Sequence[float] = _SECONDS) -> LeanHistogram:
            return LeanHistogram(name, documentation, bounds, registry)

        self._requests = counter(
            "kvasir_requests_total",
            "HTTP requests answered. outcome: ok, invalid, rejected, timeout, cancelled or error.",
            *("endpoint", "status", "outcome"),
        )
        self._request_seconds = Histogram(
            "kvasir_request_seconds",
            "Time from the first byte of a request to the last byte of its response.",
            ("endpoint",),
            buckets=_SECONDS,
            registry=registry,
        )
        self._answered: dict[tuple[str, int, str], tuple[Counter, Histogram]] = {}
        self._queue_seconds = histogram(
            "kvasir_queue_seconds", "Time waiting for rows; maximum over the request's sentences."
        )
        self._tokenize_seconds = histogram(
            "kvasir_tokenize_seconds", "Time for segmentation and tokenization of a request."
        )
        self._encode_seconds = histogram(
            "kvasir_encode_seconds", "Time of the encoder run; maximum over the request's sentences."
        )
        self._decode_seconds = histogram(
            "kvasir_decode_seconds", "Time of all decoder steps; maximum over the request's sentences."
        )
        self._first_token_seconds = histogram(
            "kvasir_time_to_first_token_seconds",
            "Time from submission to the first token; maximum over the request's sentences.",
        )
        self.stream_first_seconds = histogram(
            "kvasir_stream_first_event_seconds", "Time from a request to the first text event of its stream."
        )
        self.stream_gap_seconds = histogram(
            "kvasir_stream_event_gap_seconds", "Time between two text events of one stream.", _GAP_SECONDS
        )
        self._step_seconds = histogram("kvasir_step_seconds", "Time of one decoder step of one replica.", _STEP_SECONDS)
        self._step_rows = histogram("kvasir_step_rows", "Rows in a decoder step.", _COUNTS)
        self._source_tokens = histogram("kvasir_source_tokens", "Source tokens of a sentence.", _COUNTS)
        self._target_tokens = histogram("kvasir_target_tokens", "Target tokens of a sentence.", _COUNTS)
        # Not kvasir_source_tokens_total: the prefix belongs to the histogram.
        tokens = counter("kvasir_tokens_total", "Tokens read (source) and written (target).", "side")
        self._tokens_read, self._tokens_written = tokens.labels("source"), tokens.labels("target")
        sentences = counter(
            "kvasir_sentences_total",
            "Sentences completed. outcome: decoded by the engine, cached (decoded earlier), or coalesced (with an "
            "identical one in flight).",
            "outcome",
        )
        self._sentences = {outcome: sentences.labels(outcome) for outcome in get_args(SentenceOutcome)}
        self._cached_sentences = gauge("kvasir_cached_sentences", "Sentences in the caches of all models.")
        self._cached_bytes = gauge("kvasir_cached_bytes", "Bytes of the caches of all models, approximately.")
        self._splits = counter(
            "kvasir_sentence_splits_total", "Splits of sentences that were longer than the model's maximum."
        )
        self._protected_spans = counter(
            "kvasir_protected_spans_total",
            "Spans that had to survive (addresses, placeholders, identifiers). means: as_is, mask, placed or apart.",
            *("kind", "means"),
        )
        self._kept_sentences = counter(
            "kvasir_kept_sentences_total",
            "Texts and sentences that were left untranslated. reason: no_words, already_in_target_language or "
            "low_quality.",
            "reason",
        )
        self._outcomes = counter(
            "kvasir_checked_sentences_total",
            "Sentences that a check named. outcome: repaired, incomplete or numbers_differ.",
            "outcome",
        )
        self._low_quality = counter(
            "kvasir_low_quality_sentences_total",
            "Sentences with a quality below min_quality, flagged or left untranslated.",
        )
        self._documents = counter(
            "kvasir_documents_total", "Documents finished. outcome: done, error or cancelled.", "format", "outcome"
        )
        self.documents_held = gauge("kvasir_documents_held", "Documents queued, in progress and stored.")
        self.live_sessions = gauge("kvasir_live_sessions", "Live sessions.")
        self.live_seconds = histogram(
            "kvasir_live_seconds", "Time from input of a live session until it is translated."
        )
        self.loop_lag_seconds = histogram(
            "kvasir_event_loop_lag_seconds", "Delay of a timer in the event loop, measured four times a second."
        )
        self.aborted_connections = counter(
            "kvasir_connections_aborted_total",
            "Connections aborted because their client did not read the response.",
        )
        self._model_info = gauge("kvasir_model_info", "1 for each model served.", "model", "provider", "precision")

    def _watch(self, name: str, documentation: str, value: Callable[[], float]) -> None:
        Gauge(name, documentation, registry=self._registry).set_function(value)

    def watch(self, engines: Sequence[EngineClient]) -> None:
        """Read the engine gauges from `engines` at every scrape."""

        def total(count: Callable[[EngineStatus], int]) -> int:
            return sum(count(engine.status()) for engine in engines)

        self._watch("kvasir_requests_running", "Sentences being decoded.", lambda: total(lambda s: s.running))
        self._watch("kvasir_requests_waiting", "Sentences in the queue.", lambda: total(lambda s: s.waiting))
        self._watch(
            "kvasir_sentences_waiting",
            "Sentences not decoded yet: those in the queue, and the rest of long texts.",
            lambda: max(total(lambda s: s.unfinished - s.running), 0),
        )
        self._watch(
            "kvasir_rows_in_use_ratio",
            "Fraction of all rows in use.",
            lambda: total(lambda s: s.rows_in_use) / max(total(lambda s: s.rows), 1),
        )

    def step(self, rows: int, seconds: float) -> None:
        """Record one decoder step. Called from engine threads."""
        self._step_rows.observe(rows)
        self._step_seconds.observe(seconds)

    def sentences(self, outcome: SentenceOutcome, count: int) -> None:
        """Count sentences completed with this outcome."""
        self._sentences[outcome].inc(count)

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
        if result.num_splits:
            self._splits.inc(result.num_splits)
        for span in result.kept_spans:
            self._protected_spans.labels(span.kind, span.means).inc()
        for sentence in result.kept_sentences:
            self._kept_sentences.labels(sentence.reason).inc()
        for outcome, number in result.outcomes.items():
            self._outcomes.labels(outcome).inc(number)
        if num_low_quality := result.num_low_quality:
            self._low_quality.inc(num_low_quality)
        tokens = result.sentence_tokens
        if not tokens.source:
            return
        self._queue_seconds.observe(phases.queue_seconds)
        self._encode_seconds.observe(phases.encode_seconds)
        self._decode_seconds.observe(phases.decode_seconds)
        self._first_token_seconds.observe(phases.time_to_first_token_seconds)
        self._source_tokens.observe_all(tokens.source)
        self._target_tokens.observe_all(tokens.target)
        self._tokens_read.inc(tokens.num_source_tokens)
        self._tokens_written.inc(tokens.num_target_tokens)

    def watch_certificate(self, expiry_seconds: Callable[[], float]) -> None:
        """Read the end of the TLS certificate, in seconds since 1970, from `expiry_seconds` at every scrape."""
        self._watch(
            "kvasir_tls_certificate_expiry_timestamp_seconds",
            "End of the TLS certificate in seconds since 1970, with --tls-certificate.",
            expiry_seconds,
        )

    def document_finished(self, extension: str, outcome: str) -> None:
        """Count a document with this file extension (".docx") that was translated, failed or was deleted."""
        self._documents.labels(extension.removeprefix("."), outcome).inc()

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

    def exposition(self) -> bytes:
        """Return all metrics in Prometheus' text format."""
        return generate_latest(self._registry)

    def open_metrics(self) -> bytes:
        """Return all metrics in the format of OpenMetrics, which has exemplars."""
        text: bytes = openmetrics.generate_latest(self._registry)  # type: ignore[no-untyped-call]
        return text


_MAX_MODELS = 1000  # combinations of models, by their names in answers


@dataclass(slots=True)
class Counts:
    """Requests since the start of the server, and the tokens of those that were translated."""

    name: str
    requests: int = 0
    rejected: int = 0
    characters: int = 0
    source_tokens: int = 0
    target_tokens: int = 0

    def add(self, is_rejected: bool, num_characters: int, result: TranslationResult | None) -> None:
        """Count one request."""
        self.requests += 1
        self.rejected += is_rejected
        if result is not None:
            self.characters += num_characters
            self.source_tokens += result.sentence_tokens.num_source_tokens
            self.target_tokens += result.sentence_tokens.num_target_tokens


@dataclass(slots=True)
class Activity:
    """Counts by model (of several, by their names together) and by the id of the key."""

    models: dict[str, Counts] = field(default_factory=dict)
    keys: dict[str, Counts] = field(default_factory=dict)

    def count(
        self,
        model: str | None,
        key: ApiKey | None,
        num_characters: int,
        result: TranslationResult | None,
        *,
        is_rejected: bool,
    ) -> None:
        """Count a finished request."""
        if model is not None and (model in self.models or len(self.models) < _MAX_MODELS):
            self.models.setdefault(model, Counts(model)).add(is_rejected, num_characters, result)
        if key is not None:
            self.keys.setdefault(key.id, Counts(key.name)).add(is_rejected, num_characters, result)
