"""Google-compatible routes of the web page, which free clients use."""

from fastapi import APIRouter, Depends, Request
from fastapi.responses import JSONResponse

from server.http.protocols.google.codes import google_code
from server.http.protocols.google.errors import google_responses
from server.http.requests.admission import check_admission
from server.http.requests.compatible_translation import source_codes, translate_texts
from server.http.requests.parameters import Parameters, closes_forms, read_parameters
from server.http.state import server_state
from server.interface.errors import InvalidRequest
from server.text.language_tags import means_detection

router = APIRouter(
    prefix="/translate_a",
    tags=["Google-compatible"],
    dependencies=[Depends(closes_forms), Depends(check_admission)],
    responses=google_responses(400, 413, 429, 500, 503, 504),
)

_BACKEND = 10  # in real answers a number of the model; clients ignore it


@router.get("/single")
@router.post("/single")
async def single(request: Request) -> JSONResponse:
    """Translate one text `q` from `sl` to `tl`, as an array, or as an object with `dj=1`."""
    sent = await _read(request)
    text = sent.text("q")
    if text is None:
        raise InvalidRequest("`q` is missing")
    outcome = await translate_texts(request, [text], sent.text("sl"), sent.text("tl"))
    pieces = _pieces(text, outcome.result.translations[0].text)
    source = google_code(source_codes(outcome, sent.text("sl"))[0]) if outcome.detected else sent.text("sl")
    detection = outcome.detected[0] if outcome.detected else None
    confidence = 1 if detection is None else round(detection.confidence, 4)
    if sent.word("dj") == "1":
        return JSONResponse(
            {
                "sentences": [{"trans": new, "orig": old, "backend": _BACKEND} for new, old in pieces],
                "src": source,
                "confidence": confidence,
                "spell": {},
                "ld_result": {
                    "srclangs": [source],
                    "srclangs_confidences": [confidence],
                    "extended_srclangs": [source],
                },
            }
        )
    # Some clients take any second element for a dictionary.
    sentences = [[new, old, None, None, _BACKEND] for new, old in pieces]
    languages = [[source], None, [confidence], [source]]
    return JSONResponse([sentences, None, source, None, None, None, confidence, [], languages])


@router.get("/t")
@router.post("/t")
async def several(request: Request) -> JSONResponse:
    """Translate the texts `q`. The answer is a list of translations, each with its language if `sl` is auto."""
    sent = await _read(request)
    texts = sent.texts("q")
    if not texts:
        raise InvalidRequest("`q` is missing")
    source = sent.text("sl")
    text_format = sent.text("format") or "text"
    if text_format not in ("text", "html"):
        raise InvalidRequest("`format` must be text or html")
    outcome = await translate_texts(
        request, texts, source, sent.text("tl"), format="html" if text_format == "html" else "text"
    )
    translated = [translation.text for translation in outcome.result.translations]
    if source is None or not means_detection(source):
        return JSONResponse(translated)
    codes = [google_code(code) for code in source_codes(outcome, None)]
    return JSONResponse([[text, code] for text, code in zip(translated, codes, strict=True)])


async def _read(request: Request) -> Parameters:
    return await read_parameters(request, server_state(request).settings.max_texts + 50)


def _pieces(text: str, translated: str) -> list[tuple[str, str]]:
    """Return translations beside their sources, line by line. All but the last end with their line break."""
    new, old = translated.splitlines(keepends=True), text.splitlines(keepends=True)
    return list(zip(new, old, strict=True)) if len(new) == len(old) else [(translated, text)]
