"""The native protocol as a client sees it: what to post to /v1/translate, and what must come back."""

import json

from loadtest.workload import TextRequest

PATH = "/v1/translate"
MAX_ANSWER_SECONDS = 60  # after this a request has failed, and the drain at the end of a test is over


class WrongAnswer(Exception):
    """An answer with a good status that is not an answer to what was asked."""


def request_body(request: TextRequest, source: str, target: str) -> dict[str, object]:
    """The JSON body of a request; `source` and `target` are language codes."""
    return {
        "text": list(request.texts) if request.is_list else request.texts[0],
        "source": source,
        "target": target,
        "beam_size": request.beam_size,
    }


def read_answer(body: bytes, request: TextRequest) -> int:
    """The number of target tokens the server reports, 0 if it reports none.

    Raises `WrongAnswer` unless there is one translation with text in it for every text asked: a server that
    answers quickly with nothing must not win a load test.
    """
    try:
        answer = json.loads(body)
    except ValueError:
        raise WrongAnswer("answer is not JSON") from None
    translations = answer.get("translations") if isinstance(answer, dict) else None
    if not isinstance(translations, list):
        raise WrongAnswer("answer has no list of translations")
    if len(translations) != len(request.texts):
        raise WrongAnswer("answer has another number of translations than texts were sent")
    target_tokens = 0
    for translation in translations:
        if not isinstance(translation, dict) or not isinstance(translation.get("text"), str):
            raise WrongAnswer("translation has no text")
        if not translation["text"].strip():
            raise WrongAnswer("translation is empty")
        reported = translation.get("target_tokens", 0)
        target_tokens += reported if isinstance(reported, int) else 0
    return target_tokens
