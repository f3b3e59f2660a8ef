"""The LibreTranslate-compatible protocol: POST /translate. Tokens are not reported."""

from collections.abc import Mapping

from loadtest.sending.protocols.json_body import json_call, json_object, translated
from loadtest.sending.protocols.protocol import Answer, HttpCall, WrongAnswer
from loadtest.workload.requests import TextRequest

PATH = "/translate"


def http_request(request: TextRequest, bypass_cache: bool = False) -> HttpCall:
    """Return the HTTP request."""
    texts = list(request.texts) if request.is_list else request.texts[0]
    return json_call(
        PATH, {"q": texts, "source": request.source, "target": request.target, "format": "text"}, bypass_cache
    )


def read_answer(body: bytes, headers: Mapping[str, str], request: TextRequest) -> Answer:
    """Return the answer in the body of a 200. Raises `WrongAnswer`."""
    texts = json_object(body).get("translatedText")
    if not request.is_list:
        return Answer(translated([texts]))
    if not isinstance(texts, list) or len(texts) != len(request.texts):
        raise WrongAnswer(f"answer has no list of {len(request.texts)} translations")
    return Answer(translated(texts))
