"""The LibreTranslate-compatible protocol: POST /translate. It tells no tokens."""

from collections.abc import Mapping

from loadtest.sending.protocols.json_body import json_call, json_object, translated
from loadtest.sending.protocols.protocol import Answer, HttpCall, WrongAnswer
from loadtest.workload.requests import TextRequest

PATH = "/translate"


def http_request(request: TextRequest, fresh: bool = False) -> HttpCall:
    """The call that asks for it."""
    texts = list(request.texts) if request.is_list else request.texts[0]
    return json_call(PATH, {"q": texts, "source": request.source, "target": request.target, "format": "text"}, fresh)


def read_answer(body: bytes, headers: Mapping[str, str], request: TextRequest) -> Answer:
    """The answer in the body of a 200. Raises `WrongAnswer`."""
    texts = json_object(body).get("translatedText")
    if not request.is_list:
        return Answer(translated([texts]))
    if not isinstance(texts, list) or len(texts) != len(request.texts):
        raise WrongAnswer(f"answer has no list of {len(request.texts)} translations")
    return Answer(translated(texts))
