"""The native protocol with `stream`: deltas of the texts as server-sent events, then the whole answer in one."""

from collections.abc import Mapping, Sequence

from loadtest.sending.protocols import native
from loadtest.sending.protocols.event_stream import Event, EventReader
from loadtest.sending.protocols.json_body import json_call, json_object
from loadtest.sending.protocols.protocol import Answer, HttpCall, WrongAnswer
from loadtest.workload.requests import TextRequest

TEXT_EVENT = "text"  # a delta of one text
DONE_EVENT = "done"  # the last: the body of a plain answer
ERROR_EVENT = "error"  # the last: the body of an error
EVENTS_TYPE = "text/event-stream"


def http_request(request: TextRequest, bypass_cache: bool = False) -> HttpCall:
    """Return the HTTP request."""
    return json_call(native.PATH, native.fields(request) | {"stream": True}, bypass_cache, accept=EVENTS_TYPE)


def read_answer(body: bytes, headers: Mapping[str, str], request: TextRequest) -> Answer:
    """Return the answer in the complete body of a 200. Raises `WrongAnswer`."""
    return answer_of_events(EventReader().feed(body), request)


def answer_of_events(events: Sequence[Event], request: TextRequest) -> Answer:
    """Return the answer in the last event of a stream.

    Raises `WrongAnswer` if the stream ends in an error or not at all, or if the deltas differ from the final text.
    """
    if not events or events[-1].name not in (DONE_EVENT, ERROR_EVENT):
        raise WrongAnswer("stream has no end")
    if events[-1].name == ERROR_EVENT:
        raise WrongAnswer(f"stream ended in an error: {error_code(events[-1])}")
    answer = native.answer_of(json_object(events[-1].data), request)
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


def error_code(event: Event) -> str:
    """Return the code in an error event, or "unknown"."""
    error = json_object(event.data).get("error")
    code = error.get("code") if isinstance(error, dict) else None
    return code if isinstance(code, str) else "unknown"
