"""Samples of a running server for `kvasir top`: its port for administration, and its metrics."""

import http.client
import json
import socket
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from prometheus_client.parser import text_string_to_metric_families

_TIMEOUT_SECONDS = 5.0
_UNIX = "unix:"


class AdminConnection:
    """Connection to the port for administration: `http://HOST:PORT` or `unix:PATH`."""

    def __init__(self, address: str, key: str | None) -> None:
        """Raises ValueError for another form of address."""
        self._headers = {} if key is None else {"Authorization": f"Bearer {key}"}
        self._unix_path = address.removeprefix(_UNIX) if address.startswith(_UNIX) else None
        parts = urlsplit(address)
        if self._unix_path is None and (parts.scheme != "http" or not parts.hostname):
            raise ValueError(f"the address must be http://HOST:PORT or unix:PATH. Given: {address}")
        self._address = address
        self._host = parts.netloc if self._unix_path is None else "localhost"

    def get(self, path: str) -> str:
        """Return the body of a resource. Raises OSError, with what to do, if the server does not answer with 200."""
        connection = http.client.HTTPConnection(self._host, timeout=_TIMEOUT_SECONDS)
        try:
            if self._unix_path is not None:
                connection.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
                connection.sock.settimeout(_TIMEOUT_SECONDS)
                connection.sock.connect(self._unix_path)
            connection.request("GET", path, headers=self._headers)
            answer = connection.getresponse()
            body = answer.read().decode()
        except (OSError, http.client.HTTPException) as error:
            raise OSError(f"no answer from {self._address}: {error}; start the server with --admin-port") from error
        finally:
            connection.close()
        if answer.status == 401:
            raise OSError(f"{self._address} requires a key; set it with --key or KVASIR_ADMIN_KEY")
        if answer.status != 200:
            raise OSError(f"{self._address}{path} answered with status {answer.status}")
        return body


@dataclass(frozen=True, slots=True)
class ModelLoad:
    """A model at one moment; tokens and requests count from the start of the server."""

    name: str
    is_loaded: bool = True
    rows_in_use: int = 0
    rows: int = 0
    running: int = 0
    waiting: int = 0
    memory_bytes: int = 0
    requests: int = 0
    source_tokens: int = 0
    target_tokens: int = 0


@dataclass(frozen=True, slots=True)
class KeyLoad:
    """An API key: counts from the start of the server."""

    id: str
    name: str
    requests: int
    rejected: int
    characters: int
    target_tokens: int


@dataclass(frozen=True, slots=True)
class Sample:
    """The server at `seconds` of a clock. `latencies` are requests by upper bound of their duration.

    Health probes and scrapes of metrics are not counted.
    """

    seconds: float
    uptime_seconds: float
    requests_in_flight: int
    draining: bool
    models: tuple[ModelLoad, ...]
    keys: tuple[KeyLoad, ...]
    outcomes: Mapping[str, float]
    latencies: Mapping[float, float]
    cached_share: float


def read_sample(get: Callable[[str], str], clock: Callable[[], float] = time.monotonic) -> Sample:
    """Return the present state of a server. `get` returns the body of a resource of its port for administration."""
    seconds = clock()
    states = json.loads(get("/admin/models"))["models"]
    activity = json.loads(get("/admin/activity"))
    outcomes: dict[str, float] = {}
    latencies: dict[float, float] = {}
    sentences: dict[str, float] = {}
    for family in text_string_to_metric_families(get("/metrics")):
        for sample in family.samples:
            if _is_monitoring(sample.labels.get("endpoint", "")):
                continue
            if sample.name == "kvasir_requests_total":
                outcome = sample.labels["outcome"]
                outcomes[outcome] = outcomes.get(outcome, 0.0) + sample.value
            elif sample.name == "kvasir_request_seconds_bucket":
                bound = float(sample.labels["le"])
                latencies[bound] = latencies.get(bound, 0.0) + sample.value
            elif sample.name == "kvasir_sentences_total":
                sentences[sample.labels["outcome"]] = sample.value
    counts = activity["models"]
    names = [state["name"] for state in states]
    models = [
        ModelLoad(
            state["name"],
            state["is_loaded"],
            state["rows_in_use"],
            state["rows"],
            state["running"],
            state["waiting"],
            state["memory_bytes"],
            *_counts(counts.get(state["name"], {})),
        )
        for state in states
    ]
    models += [
        ModelLoad(name, True, 0, 0, 0, 0, 0, *_counts(each)) for name, each in counts.items() if name not in names
    ]
    keys = [
        KeyLoad(id_, each["name"], each["requests"], each["rejected"], each["characters"], each["target_tokens"])
        for id_, each in activity["keys"].items()
    ]
    total = sum(sentences.values())
    return Sample(
        seconds,
        activity["uptime_seconds"],
        activity["requests_in_flight"],
        activity["draining"],
        tuple(models),
        tuple(keys),
        outcomes,
        latencies,
        (sentences.get("cached", 0.0) + sentences.get("coalesced", 0.0)) / total if total else 0.0,
    )


def quantile(share: float, before: Mapping[float, float], after: Mapping[float, float]) -> float | None:
    """Return the upper bound of the bucket with this quantile of the requests in between; None without any."""
    counts = {bound: count - before.get(bound, 0.0) for bound, count in sorted(after.items())}
    total = max(counts.values(), default=0.0)
    return next((bound for bound, count in counts.items() if count >= share * total), None) if total else None


def _counts(of_model: Mapping[str, int]) -> tuple[int, int, int]:
    return of_model.get("requests", 0), of_model.get("source_tokens", 0), of_model.get("target_tokens", 0)


def _is_monitoring(endpoint: str) -> bool:
    return endpoint.startswith(("/health", "/metrics"))
