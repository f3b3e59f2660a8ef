"""The DeepL-compatible protocol: POST /v2/translate. It tells no tokens; texts are always a list."""

from collections.abc import Mapping

from loadtest.sending.protocols.json_body import json_call, json_object, objects_for, translated
from loadtest.sending.protocols.protocol import Answer, HttpCall
from loadtest.workload.requests import TextRequest

PATH = "/v2/translate"


def http_request(request: TextRequest, fresh: bool = False) -> HttpCall:
    """The call that asks for it. Beam search is what this protocol calls quality."""
    fields: dict[str, object] = {
        "text": list(request.texts),
        "source_lang": request.source.upper(),
        "target_lang": request.target.upper(),
    }
    if request.beam_size is not None:
        fields["model_type"] = "latency_optimized" if request.beam_size == 1 else "quality_optimized"
    return json_call(PATH, fields, fresh)


def read_answer(body: bytes, headers: Mapping[str, str], request: TextRequest) -> Answer:
    """The answer in the body of a 200. Raises `WrongAnswer`."""
    items = objects_for(json_object(body).get("translations"), request)
    return Answer(translated([item.get("text") for item in items]))
