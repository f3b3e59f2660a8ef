"""JSON requests, and the checks of answers that all protocols share."""

import json
from collections.abc import Sequence

from loadtest.sending.protocols.protocol import HttpCall, WrongAnswer
from loadtest.workload.requests import TextRequest


def json_call(path: str, content: dict[str, object], bypass_cache: bool, accept: str = "application/json") -> HttpCall:
    """Return a POST of a JSON object. `bypass_cache` sets Cache-Control: no-cache."""
    headers = {"Content-Type": "application/json", "Accept": accept}
    if bypass_cache:
        headers["Cache-Control"] = "no-cache"
    return HttpCall("POST", path, headers, json.dumps(content, ensure_ascii=False, separators=(",", ":")).encode())


def json_object(body: bytes | str) -> dict[str, object]:
    """Return the JSON object in a body. Raises `WrongAnswer` for anything else."""
    try:
        content = json.loads(body)
    except ValueError:
        raise WrongAnswer("answer is not JSON") from None
    if not isinstance(content, dict):
        raise WrongAnswer("answer is not an object")
    return content


def objects_for(items: object, request: TextRequest) -> list[dict[str, object]]:
    """Return `items` as a list with one object for each text of the request. Raises `WrongAnswer` if it is none."""
    if not isinstance(items, list):
        raise WrongAnswer("answer has no list of translations")
    if len(items) != len(request.texts):
        raise WrongAnswer(f"answer has {len(items)} translations of {len(request.texts)} texts")
    if not all(isinstance(item, dict) for item in items):
        raise WrongAnswer("translation is not an object")
    return items


def translated(texts: Sequence[object]) -> tuple[str, ...]:
    """Return the translations. Raises `WrongAnswer` if one is no text, or blank.

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


def token_sum(items: Sequence[dict[str, object]], name: str) -> int | None:
    """Return the sum of a count over all translations; None unless every one has it."""
    counts = [count for item in items if isinstance(count := item.get(name), int)]
    return sum(counts) if len(counts) == len(items) else None
