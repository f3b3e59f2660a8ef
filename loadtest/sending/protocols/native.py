"""Kvasir's own protocol: POST /v1/translate."""

from collections.abc import Mapping

from loadtest.sending.protocols.json_body import json_call, json_object, objects_for, token_sum, translated
from loadtest.sending.protocols.protocol import Answer, HttpCall
from loadtest.workload.requests import TextRequest

PATH = "/v1/translate"


def http_request(request: TextRequest, fresh: bool = False) -> HttpCall:
    """The call that asks for it."""
    return json_call(PATH, fields(request), fresh)


def fields(request: TextRequest) -> dict[str, object]:
    """The fields of the request; what is left to the server is not there."""
    chosen: dict[str, object] = {
        "text": list(request.texts) if request.is_list else request.texts[0],
        "source": request.source,
        "target": request.target,
    }
    if request.beam_size is not None:
        chosen["beam_size"] = request.beam_size
    return chosen


def read_answer(body: bytes, headers: Mapping[str, str], request: TextRequest) -> Answer:
    """The answer in the body of a 200. Raises `WrongAnswer`."""
    return answer_of(json_object(body), request)


def answer_of(content: dict[str, object], request: TextRequest) -> Answer:
    """The answer in an object that was read already. Raises `WrongAnswer`."""
    items = objects_for(content.get("translations"), request)
    return Answer(
        translated([item.get("text") for item in items]),
        token_sum(items, "source_tokens"),
        token_sum(items, "target_tokens"),
    )
