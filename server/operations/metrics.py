"""Every metric object, once for each application. Labels are few and fixed: never a text, an address or a key."""

from collections.abc import Callable, Sequence
from typing import get_args

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from bundle.manifest import BundleConfig
from server.interface.engine_client import EngineClient, EngineStatus, SentenceOutcome
from server.translation.types import TranslationResult

_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 25.0, 60.0)
_STEP_SECONDS = (0.0005, 0.001, 0.002, 0.003, 0.005, 0.0075, 0.01, 0.015, 0.025, 0.05, 0.1, 0.25, 1.0)
_GAP_SECONDS = (0.001, 0.0025, 0.005, 0.0075, 0.01, 0.015, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5)
_COUNTS = (1, 2, 4, 8, 16, 24, 32, 48, 64, 96, 128, 192, 256, 512, 1024)

_PROVIDERS = {"cpu": "CPUExecutionProvider", "cuda": "CUDAExecutionProvider"}  # of ONNX Runtime, by device


class Metrics:
    """What operators watch. `step` may be called from every thread, as all of prometheus_client may."""

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
            "From the first byte of a request to the last byte of its answer.",
            ("endpoint",),
            buckets=_SECONDS,
            registry=registry,
        )
        self._queue_seconds = self._seconds("kvasir_queue_seconds", "Waiting for rows, longest of the sentences.")
        self._tokenize_seconds = self._seconds("kvasir_tokenize_seconds", "Splitting a request and encoding tokens.")
        self._encode_seconds = self._seconds("kvasir_encode_seconds", "Encoder run, longest of the sentences.")
        self._decode_seconds = self._seconds("kvasir_decode_seconds", "All decoder steps, longest of the sentences.")
        self._first_token_seconds = self._seconds(
            "kvasir_time_to_first_token_seconds", "From submission to the first token, longest of the sentences."
        )
        self._stream_first_seconds = self._seconds(
            "kvasir_stream_first_event_seconds", "From a request to the first event with text of its stream."
        )
        self._stream_gap_seconds = self._seconds(
            "kvasir_stream_event_gap_seconds", "Between two events with text of one stream.", _GAP_SECONDS
        )
        self._step_seconds = self._seconds("kvasir_step_seconds", "One decoder step of one replica.", _STEP_SECONDS)
        self._step_rows = self._counts("kvasir_step_rows", "Rows that shared a decoder step.")
        self._source_tokens = self._counts("kvasir_source_tokens", "Source tokens of a sentence.")
        self._target_tokens = self._counts("kvasir_target_tokens", "Target tokens of a sentence.")
        # Not kvasir_source_tokens_total: the histogram of that name owns the prefix.
        self._tokens = Counter("kvasir_tokens_total", "Tokens read and written.", ("side",), registry=registry)
        self._sentences = Counter(
            "kvasir_sentences_total",
            "Sentences answered. outcome: decoded by the engine, cached (decoded earlier), or coalesced (with one in "
            "flight).",
            ("outcome",),
            registry=registry,
        )
        for outcome in get_args(SentenceOutcome):  # so that none is missing before its first time
            self._sentences.labels(outcome)
        self._cached_sentences = Gauge(
            "kvasir_cached_sentences", "Sentences in the caches of all models.", registry=registry
        )
        self._splits = Counter(
            "kvasir_sentence_splits_total",
            "Places where a sentence was divided because the model takes no longer ones.",
            registry=registry,
        )
        self._documents = Counter(
            "kvasir_documents_total",
            "Documents that left the queue. outcome: done, error or cancelled.",
            ("format", "outcome"),
            registry=registry,
        )
        self._model_info = Gauge(
            "kvasir_model_info", "1 for each model served.", ("model", "provider", "precision"), registry=registry
        )

    def watch(self, generators: Sequence[EngineClient]) -> None:
        """Read the gauges off these engines from now on, at every scrape."""

        def total(count: Callable[[EngineStatus], int]) -> int:
            return sum(count(generator.status()) for generator in generators)

        gauges: dict[str, tuple[str, Callable[[], float]]] = {
            "kvasir_requests_running": ("Sentences that have rows.", lambda: total(lambda s: s.running)),
            "kvasir_requests_waiting": ("Sentences in the queue.", lambda: total(lambda s: s.waiting)),
            "kvasir_rows_in_use_ratio": (
                "Share of all rows that belong to a sentence.",
                lambda: total(lambda s: s.rows_in_use) / max(total(lambda s: s.rows), 1),
            ),
        }
        for name, (documentation, value) in gauges.items():
            Gauge(name, documentation, registry=self._registry).set_function(value)

    def step(self, rows: int, seconds: float) -> None:
        """A replica ran one decoder step. Called from engine threads."""
        self._step_rows.observe(rows)
        self._step_seconds.observe(seconds)

    def sentences(self, outcome: SentenceOutcome, count: int) -> None:
        """So many sentences were answered in this way."""
        self._sentences.labels(outcome).inc(count)

    def cache_grew(self, num_sentences: int) -> None:
        """The cache of a model holds so many sentences more than before."""
        self._cached_sentences.inc(num_sentences)

    def model_served(self, config: BundleConfig, device: str) -> None:
        """A model is loaded, on the `device` of the settings."""
        self._model_info.labels(config.name, _PROVIDERS[device], config.precision).set(1)

    def translated(self, result: TranslationResult) -> None:
        """A request was translated."""
        phases = result.phases
        self._tokenize_seconds.observe(phases.tokenize_seconds)
        self._splits.inc(result.num_splits)
        if not result.sentence_tokens:
            return
        self._queue_seconds.observe(phases.queue_seconds)
        self._encode_seconds.observe(phases.encode_seconds)
        self._decode_seconds.observe(phases.decode_seconds)
        self._first_token_seconds.observe(phases.time_to_first_token_seconds)
        for source_tokens, target_tokens in result.sentence_tokens:
            self._source_tokens.observe(source_tokens)
            self._target_tokens.observe(target_tokens)
        self._tokens.labels("source").inc(sum(source for source, _ in result.sentence_tokens))
        self._tokens.labels("target").inc(sum(target for _, target in result.sentence_tokens))

    def watch_documents(self, count: Callable[[], int]) -> None:
        """Read the number of documents from `count` from now on."""
        documentation = "Documents waiting, in work and kept."
        Gauge("kvasir_documents_held", documentation, registry=self._registry).set_function(count)

    def document_finished(self, extension: str, outcome: str) -> None:
        """A document with this ending (".docx") was translated, failed or was deleted before."""
        self._documents.labels(extension.removeprefix("."), outcome).inc()

    def stream_begun(self, seconds: float) -> None:
        """The first text of a stream was sent so long after its request came."""
        self._stream_first_seconds.observe(seconds)

    def stream_continued(self, seconds: float) -> None:
        """More text of a stream was sent so long after the last."""
        self._stream_gap_seconds.observe(seconds)

    def answered(self, endpoint: str, status: int, outcome: str, seconds: float) -> None:
        """An HTTP request ended. `endpoint` is the template of its route, or a fixed word where it has none."""
        self._requests.labels(endpoint, str(status), outcome).inc()
        self._request_seconds.labels(endpoint).observe(seconds)

    def exposition(self) -> bytes:
        """All of it in Prometheus' text format."""
        return generate_latest(self._registry)

    def _seconds(self, name: str, documentation: str, buckets: Sequence[float] = _SECONDS) -> Histogram:
        return Histogram(name, documentation, buckets=buckets, registry=self._registry)

    def _counts(self, name: str, documentation: str) -> Histogram:
        return Histogram(name, documentation, buckets=_COUNTS, registry=self._registry)
