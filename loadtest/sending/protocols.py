"""The protocols of requests and answers: Kvasir's own, plain and as a stream, LibreTranslate's and DeepL's."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from loadtest.workload.requests import TextRequest

TEXT_EVENT = "text"  # a delta of one text
DONE_EVENT = "done"  # the last: the body of a plain answer
ERROR_EVENT = "error"  # the last: the body of an error
EVENTS_TYPE = "text/event-stream"
_JSON_TYPE = "application/json"


class WrongAnswer(Exception):
    """An answer with status 200 that does not answer the request."""


@dataclass(frozen=True, slots=True)
class HttpCall:
    """An HTTP request. `path` starts with a slash and includes the query."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes


@dataclass(frozen=True, slots=True)
class Answer:
    """A translation of each text. Token counts are None if the protocol does not report them."""

    texts: tuple[str, ...]
    source_tokens: int | None = None
    target_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class WireProtocol:
    """A protocol: the path and the fields of a request, and `read_answer` of the body of a 200.

    `read_answer` raises `WrongAnswer`.
    """

    path: str
    fields: Callable[[TextRequest], dict[str, object]]
    read_answer: Callable[[bytes, TextRequest], Answer]
    accept: str = _JSON_TYPE

    def http_request(self, request: TextRequest, bypass_cache: bool = False) -> HttpCall:
        """Return the HTTP request; `bypass_cache` sets Cache-Control: no-cache."""
        headers = {"Content-Type": _JSON_TYPE, "Accept": self.accept}
        if bypass_cache:
            headers["Cache-Control"] = "no-cache"
        body = json.dumps(self.fields(request), ensure_ascii=False, separators=(",", ":")).encode()
        return HttpCall("POST", self.path, headers, body)


def protocol(name: str) -> WireProtocol:
    """Return the protocol with that name, as in `TextRequest.protocol`. Raises `KeyError` for an unknown name."""
    return _PROTOCOLS[name]


def _native_fields(request: TextRequest) -> dict[str, object]:
    """Return the fields of the request, without those left to the server's defaults."""
    fields = {**request.options, "text": _texts(request), "source": request.source, "target": request.target}
    return fields if request.beam_size is None else fields | {"beam_size": request.beam_size}


def _native_answer(body: bytes | str, request: TextRequest) -> Answer:
    items = _objects_for(json_object(body).get("translations"), request)
    texts = _translated([item.get("text") for item in items])
    return Answer(texts, _token_sum(items, "source_tokens"), _token_sum(items, "target_tokens"))


def answer_of_events(events: Sequence["Event"], request: TextRequest) -> Answer:
    """Return the answer in the last event of a stream.

    Raises `WrongAnswer` if the stream ends in an error or not at all, or if the deltas differ from the final text.
    """
    if not events or events[-1].name not in (DONE_EVENT, ERROR_EVENT):
        raise WrongAnswer("stream has no end")
    if events[-1].name == ERROR_EVENT:
        raise WrongAnswer(f"stream ended in an error: {error_code(events[-1])}")
    answer = _native_answer(events[-1].data, request)
    texts = [""] * len(request.texts)
    for event in events[:-1]:
        if event.name == TEXT_EVENT:
            delta = json_object(event.data)
            index, text = delta.get("index"), delta.get("text")
            if not isinstance(index, int) or not 0 <= index < len(texts) or not isinstance(text, str):
                raise WrongAnswer("event has no text or an invalid index")
            texts[index] += text
    if tuple(texts) != answer.texts:
        raise WrongAnswer("deltas of the stream differ from its final text")
    return answer


def error_code(event: "Event") -> str:
    """Return the code in an error event, or "unknown"."""
    error = json_object(event.data).get("error")
    code = error.get("code") if isinstance(error, dict) else None
    return code if isinstance(code, str) else "unknown"


def _libretranslate_answer(body: bytes, request: TextRequest) -> Answer:
    texts = json_object(body).get("translatedText")
    if not request.is_list:
        return Answer(_translated([texts]))
    if not isinstance(texts, list) or len(texts) != len(request.texts):
        raise WrongAnswer(f"answer has no list of {len(request.texts)} translations")
    return Answer(_translated(texts))


def _deepl_fields(request: TextRequest) -> dict[str, object]:
    """Return the fields; texts are always a list, and `model_type` selects greedy or beam search."""
    languages = {"source_lang": request.source.upper(), "target_lang": request.target.upper()}
    fields: dict[str, object] = {"text": list(request.texts), **languages}
    if request.beam_size is not None:
        fields["model_type"] = "latency_optimized" if request.beam_size == 1 else "quality_optimized"
    return fields


def _deepl_answer(body: bytes, request: TextRequest) -> Answer:
    items = _objects_for(json_object(body).get("translations"), request)
    return Answer(_translated([item.get("text") for item in items]))


def _texts(request: TextRequest) -> object:
    return list(request.texts) if request.is_list else request.texts[0]


_PROTOCOLS = {
    "native": WireProtocol("/v1/translate", _native_fields, _native_answer),
    "stream": WireProtocol(
        "/v1/translate",
        lambda request: _native_fields(request) | {"stream": True},
        lambda body, request: answer_of_events(EventReader().feed(body), request),
        EVENTS_TYPE,
    ),
    "libretranslate": WireProtocol(
        "/translate",
        lambda request: {"q": _texts(request), "source": request.source, "target": request.target, "format": "text"},
        _libretranslate_answer,
    ),
    "deepl": WireProtocol("/v2/translate", _deepl_fields, _deepl_answer),
}


def json_object(body: bytes | str) -> dict[str, object]:
    """Return the JSON object in a body. Raises `WrongAnswer` for anything else."""
    try:
        content = json.loads(body)
    except ValueError:
        raise WrongAnswer("answer is not JSON") from None
    if not isinstance(content, dict):
        raise WrongAnswer("answer is not an object")
    return content


def _objects_for(items: object, request: TextRequest) -> list[dict[str, object]]:
    """Return `items` as a list with one object for each text of the request. Raises `WrongAnswer` if it is none."""
    if not isinstance(items, list):
        raise WrongAnswer("answer has no list of translations")
    if len(items) != len(request.texts):
        raise WrongAnswer(f"answer has {len(items)} translations of {len(request.texts)} texts")
    if not all(isinstance(item, dict) for item in items):
        raise WrongAnswer("translation is not an object")
    return items


def _translated(texts: Sequence[object]) -> tuple[str, ...]:
    """Return the translations. Raises `WrongAnswer` if one is not text, or blank.

    A server that quickly returns empty answers must not win a load test.
    """
    checked = []
    for text in texts:
        if not isinstance(text, str):
            raise WrongAnswer("translation has no text")
        if not text.strip():
            raise WrongAnswer("translation is empty")
        checked.append(text)
    return tuple(checked)


def _token_sum(items: Sequence[dict[str, object]], name: str) -> int | None:
    """Return the sum of a count over all translations; None unless every one has it."""
    counts = [count for item in items if isinstance(count := item.get(name), int)]
    return sum(counts) if len(counts) == len(items) else None


@dataclass(frozen=True, slots=True)
class Event:
    """One event. `name` is "message" by default."""

    name: str
    data: str


class EventReader:
    """Incremental parser of a stream of server-sent events, as HTML defines them; chunks may end anywhere."""

    def __init__(self) -> None:
        self._unread = bytearray()
        self._name = ""
        self._data: list[str] = []

    def feed(self, chunk: bytes) -> list[Event]:
        """Return the events that this chunk completes. Comments and heartbeats are not events."""
        self._unread += chunk
        # A carriage return at the end may be half of a line break; the next chunk decides.
        end = len(self._unread) - self._unread.endswith(b"\r")
        whole = self._unread[:end].replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        *lines, rest = whole.split(b"\n")
        self._unread = rest + self._unread[end:]
        return [event for line in lines if (event := self._line(line.decode("utf-8", "replace")))]

    def _line(self, line: str) -> Event | None:
        if not line:
            event = Event(self._name or "message", "\n".join(self._data)) if self._data else None
            self._name, self._data = "", []
            return event
        field, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if field == "event":
            self._name = value
        elif field == "data":
            self._data.append(value)
        return None


def server_timing(header: str) -> dict[str, float]:
    """Return the durations in a Server-Timing header by name, in milliseconds (https://www.w3.org/TR/server-timing/)."""
    durations = {}
    for metric in header.split(","):
        name, *parameters = (part.strip() for part in metric.split(";"))
        for parameter in parameters:
            key, _, value = parameter.partition("=")
            if key.strip().lower() == "dur":
                try:
                    durations[name] = float(value.strip().strip('"'))
                except ValueError:
                    continue
    return durations


def retry_after_seconds(header: str | None) -> float | None:
    """Return the seconds in a Retry-After header; None without the header or for a date."""
    try:
        return None if header is None else max(float(header), 0.0)
    except ValueError:
        return None
