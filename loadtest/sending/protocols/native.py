"""Kvasir's own protocol: POST /v1/translate."""

from collections.abc import Mapping

from loadtest.sending.protocols.json_body import json_call, json_object, objects_for, token_sum, translated
from loadtest.sending.protocols.protocol import Answer, HttpCall
from loadtest.workload.requests import TextRequest

PATH = "/v1/translate"


def http_request(request: TextRequest, bypass_cache: bool = False) -> HttpCall:
    """Return the HTTP request."""
    return json_call(PATH, fields(request), bypass_cache)


def fields(request: TextRequest) -> dict[str, object]:
    """Return the fields of the request, without those left to the server's defaults."""
    chosen: dict[str, object] = {
        **request.options,
        "text": list(request.texts) if request.is_list else request.texts[0],
        "source": request.source,
        "target": request.target,
    }
    if request.beam_size is not None:
        chosen["beam_size"] = request.beam_size
    return chosen


def read_answer(body: bytes, headers: Mapping[str, str], request: TextRequest) -> Answer:
    """Return the answer in the body of a 200. Raises `WrongAnswer`."""
    return answer_of(json_object(body), request)


def answer_of(content: dict[str, object], request: TextRequest) -> Answer:
    """Return the answer in a parsed body. Raises `WrongAnswer`."""
    items = objects_for(content.get("translations"), request)
    return Answer(
        translated([item.get("text") for item in items]),
        token_sum(items, "source_tokens"),
        token_sum(items, "target_tokens"),
    )
