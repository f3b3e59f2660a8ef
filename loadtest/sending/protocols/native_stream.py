"""The native protocol with `stream`: pieces of the texts as server-sent events, then all of the answer in one."""

from collections.abc import Mapping, Sequence

from loadtest.sending.protocols import native
from loadtest.sending.protocols.event_stream import Event, EventReader
from loadtest.sending.protocols.json_body import json_call, json_object
from loadtest.sending.protocols.protocol import Answer, HttpCall, WrongAnswer
from loadtest.workload.requests import TextRequest

TEXT_EVENT = "text"  # carries a piece of a text
DONE_EVENT = "done"  # carries what a plain answer holds; the last
ERROR_EVENT = "error"  # carries the body of an error; the last
EVENTS_TYPE = "text/event-stream"


def http_request(request: TextRequest, fresh: bool = False) -> HttpCall:
    """The call that asks for it."""
    return json_call(native.PATH, native.fields(request) | {"stream": True}, fresh, accept=EVENTS_TYPE)


def read_answer(body: bytes, headers: Mapping[str, str], request: TextRequest) -> Answer:
    """The answer in the whole body of a 200. Raises `WrongAnswer`."""
    return answer_of_events(EventReader().feed(body), request)


def answer_of_events(events: Sequence[Event], request: TextRequest) -> Answer:
    """The answer that a stream ends with.

    Raises `WrongAnswer` where it ends in an error or not at all, and where the pieces are not the text at the end.
    """
    if not events or events[-1].name not in (DONE_EVENT, ERROR_EVENT):
        raise WrongAnswer("stream has no end")
    if events[-1].name == ERROR_EVENT:
        raise WrongAnswer(f"stream ended in an error: {error_code(events[-1])}")
    answer = native.answer_of(json_object(events[-1].data), request)
    pieces = [""] * len(request.texts)
    for event in events[:-1]:
        if event.name == TEXT_EVENT:
            piece = json_object(event.data)
            index, text = piece.get("index"), piece.get("text")
            if not isinstance(index, int) or not 0 <= index < len(pieces) or not isinstance(text, str):
                raise WrongAnswer("event has no text, or is of no text that was asked")
            pieces[index] += text
    if tuple(pieces) != answer.texts:
        raise WrongAnswer("pieces of the stream are not the text at its end")
    return answer


def error_code(event: Event) -> str:
    """What an error event says went wrong: the code of its envelope, or "unknown"."""
    error = json_object(event.data).get("error")
    code = error.get("code") if isinstance(error, dict) else None
    return code if isinstance(code, str) else "unknown"
