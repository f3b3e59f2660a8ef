"""Google-compatible routes of the web page, which free clients read: its start, `/m` and `batchexecute`."""

import json
from html import escape

from fastapi import APIRouter, Depends, Request
from fastapi.responses import HTMLResponse, PlainTextResponse

from server.http.protocols.google.codes import google_code
from server.http.protocols.google.errors import google_responses
from server.http.requests.admission import check_admission
from server.http.requests.compatible_translation import source_codes, translate_texts
from server.http.requests.parameters import closes_forms, read_parameters
from server.http.state import server_state
from server.interface.errors import InvalidRequest
from server.text.language_tags import means_detection

router = APIRouter(
    tags=["Google-compatible"],
    dependencies=[Depends(closes_forms)],
    responses=google_responses(400, 413, 429, 500, 503, 504),
)

PAGE_PATH = "/google"
MOBILE_PATH = "/m"
BATCH_PATH = "/_/TranslateWebserverUi/data/batchexecute"
_TRANSLATE = "MkEWBc"  # name of the call that translates
_MAX_FIELDS = 50
_MAX_CALLS = 128
_HTML: dict[int | str, dict[str, object]] = {200: {"content": {"text/html": {}}}}
_TEXT: dict[int | str, dict[str, object]] = {200: {"content": {"text/plain": {}}}}
_PREFIX = ")]}'\n\n"  # before JSON, so that a page cannot load it as a script


@router.get(PAGE_PATH, responses=_HTML)
async def start_page(request: Request) -> HTMLResponse:
    """Return the languages and the session as a page has them; `translators` reads both."""
    _, model_router = server_state(request).accept()
    tags = sorted({*model_router.source_languages, *model_router.target_languages})
    items = "".join(f'<li data-language-code="{escape(google_code(tag))}"></li>' for tag in tags)
    session = '<script>window.WIZ_global_data = {"cfb2h":"kvasir","FdrFJe":"0"};</script>'
    return HTMLResponse(f"<!doctype html><title>Kvasir</title>{session}<ul>{items}</ul>")


@router.get(MOBILE_PATH, responses=_HTML, dependencies=[Depends(check_admission)])
async def mobile_page(request: Request) -> HTMLResponse:
    """Translate the text `q` from `sl` to `tl`, into a page with the translation as its result."""
    sent = await read_parameters(request, _MAX_FIELDS)
    text = sent.text("q")
    if text is None:
        raise InvalidRequest("`q` is missing")
    outcome = await translate_texts(request, [text], sent.text("sl"), sent.text("tl"))
    result = escape(outcome.result.translations[0].text)
    return HTMLResponse(f'<!doctype html><title>Kvasir</title><div class="result-container">{result}</div>')


@router.post(BATCH_PATH, responses=_TEXT)
@router.post(PAGE_PATH + BATCH_PATH, responses=_TEXT)
async def batch(request: Request) -> PlainTextResponse:
    """Translate the texts of the calls in `f.req`. With `rt=c` each answer follows a line with its length."""
    sent = await read_parameters(request, _MAX_FIELDS)
    calls = _calls(sent.text("f.req"))
    answers: dict[int, str] = {}
    for pair in dict.fromkeys((source, target) for _, source, target, _ in calls):
        indices = [index for index, call in enumerate(calls) if call[1:3] == pair]
        source, target = pair
        outcome = await translate_texts(request, [calls[index][0] for index in indices], source, target)
        codes = [google_code(code) for code in source_codes(outcome, None if means_detection(source) else source)]
        for index, translation, code in zip(indices, outcome.result.translations, codes, strict=True):
            answers[index] = _answer(translation.text, source, target, code)
    parts = [["wrb.fr", _TRANSLATE, answers[index], None, None, None, calls[index][3]] for index in range(len(calls))]
    if sent.text("rt") == "c":
        lines = [json.dumps([part], ensure_ascii=False) for part in parts]
        return PlainTextResponse(_PREFIX + "".join(f"{len(line) + 2}\n{line}\n" for line in lines))
    return PlainTextResponse(_PREFIX + json.dumps(parts, ensure_ascii=False))


def _answer(text: str, source: str, target: str, detected: str) -> str:
    """Return the JSON text of one answer; clients read the sentences, the named and the detected language."""
    sentence = [None, None, None, None, None, [[text]]]
    return json.dumps([[None, None, detected], [[sentence], target, 1, source], detected], ensure_ascii=False)


def _calls(content: str | None) -> list[tuple[str, str, str, str]]:
    """Return text, source, target and id of each call. Raises `InvalidRequest` unless all translate."""
    try:
        [calls] = json.loads(content or "")
        parsed = [(name, json.loads(arguments)[0], identifier) for name, arguments, _, identifier in calls]
        found = [
            (str(text), str(source), str(target), str(identifier))
            for name, (text, source, target, *_), identifier in parsed
            if name == _TRANSLATE
        ]
    except (ValueError, TypeError, KeyError, IndexError, RecursionError) as error:
        raise InvalidRequest(f"`f.req` must be a list of calls of {_TRANSLATE}") from error
    if not found or len(found) != len(parsed):
        raise InvalidRequest(f"`f.req` must be a list of calls of {_TRANSLATE}")
    if len(found) > _MAX_CALLS:
        raise InvalidRequest(f"`f.req` must have at most {_MAX_CALLS} calls. Given: {len(found)}")
    return found
