"""The DeepL-compatible protocol: POST /v2/translate. Texts are always a list; tokens are not reported."""

from collections.abc import Mapping

from loadtest.sending.protocols.json_body import json_call, json_object, objects_for, translated
from loadtest.sending.protocols.protocol import Answer, HttpCall
from loadtest.workload.requests import TextRequest

PATH = "/v2/translate"


def http_request(request: TextRequest, bypass_cache: bool = False) -> HttpCall:
    """Return the HTTP request. `model_type` selects greedy or beam search."""
    fields: dict[str, object] = {
        "text": list(request.texts),
        "source_lang": request.source.upper(),
        "target_lang": request.target.upper(),
    }
    if request.beam_size is not None:
        fields["model_type"] = "latency_optimized" if request.beam_size == 1 else "quality_optimized"
    return json_call(PATH, fields, bypass_cache)


def read_answer(body: bytes, headers: Mapping[str, str], request: TextRequest) -> Answer:
    """Return the answer in the body of a 200. Raises `WrongAnswer`."""
    items = objects_for(json_object(body).get("translations"), request)
    return Answer(translated([item.get("text") for item in items]))
