"""Samples of the server's `/metrics`, once a second, and its model list."""

import http.client
import json
import threading
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

from pydantic import JsonValue

from loadtest.results.run_folder import MetricsSample
from loadtest.sending.addresses import Address

POLL_SECONDS = 1.0
_TIMEOUT_SECONDS = 5.0

# Only sums and counts of histograms: buckets would be nine tenths of the file.
SERIES = frozenset(
    {
        "kvasir_requests_waiting",
        "kvasir_requests_running",
        "kvasir_rows_in_use_ratio",
        "kvasir_cached_sentences",
        "kvasir_cached_bytes",
        "kvasir_sentence_splits_total",
        *(
            f"kvasir_{histogram}_{part}"
            for histogram in (
                "request_seconds",
                "queue_seconds",
                "tokenize_seconds",
                "encode_seconds",
                "decode_seconds",
                "time_to_first_token_seconds",
                "stream_first_event_seconds",
                "stream_event_gap_seconds",
                "step_seconds",
                "step_rows",
                "source_tokens",
                "target_tokens",
            )
            for part in ("sum", "count")
        ),
    }
)
# Counters with one useful label, whose values become part of the name.
LABELLED = {"kvasir_requests_total": "outcome", "kvasir_sentences_total": "outcome", "kvasir_tokens_total": "side"}


def useful_series(exposition: str) -> dict[str, float]:
    """Return the values of `SERIES`, summed over all labels, and of `LABELLED` for each value of their label.

    `exposition` is a page in Prometheus' text format. Lines without a number are ignored.
    """
    values: dict[str, float] = defaultdict(float)
    for line in exposition.splitlines():
        if not line.startswith("kvasir_"):
            continue
        series, _, value = line.rpartition(" ")
        name, _, labels = series.partition("{")
        if name in LABELLED:
            _, _, rest = labels.partition(f'{LABELLED[name]}="')
            name = f"{name}.{rest.partition(chr(34))[0]}"
        elif name not in SERIES:
            continue
        try:
            number = float(value)
        except ValueError:
            continue
        values[name] += number
    return dict(values)


class MetricsPoller:
    """Thread that reads /metrics once a second and appends samples to a file. Without /metrics there is no file."""

    def __init__(self, address: Address, path: Path, clock: Callable[[], float]) -> None:
        self._address = address
        self._path = path
        self._clock = clock
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="metrics", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self) -> None:
        """Stop the thread after the request in flight."""
        self._stopped.set()
        self._thread.join()

    def _run(self) -> None:
        connection = _connection(self._address)
        due = self._clock()
        is_over = False
        while not is_over:
            body = _get(connection, f"{self._address.path}/metrics")
            if body is not None and (metrics := useful_series(body.decode("utf-8", "replace"))):
                sample = MetricsSample(round(self._clock(), 3), metrics)
                with self._path.open("a", encoding="utf-8") as file:
                    file.write(json.dumps({"at": sample.at, "metrics": sample.metrics}) + "\n")
            elif body is not None:
                break  # the server has none of these series
            due = max(due + POLL_SECONDS, self._clock())
            is_over = self._stopped.wait(due - self._clock())
        connection.close()


def served_models(address: Address) -> dict[str, JsonValue] | None:
    """Return the answer of GET /v1/models; None if the server is unreachable or lacks the route."""
    connection = _connection(address)
    body = _get(connection, f"{address.path}/v1/models")
    connection.close()
    try:
        models = json.loads(body or b"")
    except ValueError:
        return None
    return models if isinstance(models, dict) else {"models": models}


def _connection(address: Address) -> http.client.HTTPConnection:
    kind = http.client.HTTPSConnection if address.scheme == "https" else http.client.HTTPConnection
    return kind(address.host, address.port, timeout=_TIMEOUT_SECONDS)


def _get(connection: http.client.HTTPConnection, path: str) -> bytes | None:
    """Return the body of a 200, b"" for another status, None without an answer."""
    try:
        connection.request("GET", path)
        response = connection.getresponse()
        body = response.read()
    except (OSError, http.client.HTTPException):
        connection.close()  # the next request opens it again
        return None
    return body if response.status == 200 else b""
