"""Microsoft-compatible translation: texts into one or several languages."""

from collections.abc import Mapping

from fastapi import APIRouter, Request
from pydantic import BaseModel

from server.http.protocols.microsoft.errors import microsoft_responses
from server.http.protocols.microsoft.fields import microsoft_code, text_format_of, texts_of
from server.http.requests.compatible_translation import translate_texts
from server.http.requests.parameters import read_json
from server.http.state import server_state
from server.interface.errors import InvalidRequest
from server.text.unicode_text import replace_lone_surrogates
from server.translation.service import TranslationOutcome

router = APIRouter(
    tags=["Microsoft-compatible"],
    responses=microsoft_responses(400, 413, 429, 500, 503, 504),
)

_MAX_TARGETS = 20


class MicrosoftDetectedLanguage(BaseModel):
    """Detected language of a text, and its probability."""

    language: str
    score: float


class MicrosoftTranslation(BaseModel):
    """Translation into one language, named by `to` in version 3.0 and by `language` in later ones."""

    text: str
    to: str | None = None
    language: str | None = None


class Item(BaseModel):
    """Translations of one text; the language is present if it was detected."""

    detectedLanguage: MicrosoftDetectedLanguage | None = None  # noqa: N815 - the protocol's name
    translations: list[MicrosoftTranslation]


class Items(BaseModel):
    """Envelope of version 2026-06-06."""

    value: list[Item]


@router.post("/microsoft/translate", response_model_exclude_none=True)
@router.post("/translator/text/v3.0/translate", response_model_exclude_none=True)
async def translate(request: Request) -> list[Item] | Items:
    """Translate texts into each language `to`. Answers also at `/translate`, recognised by `api-version`."""
    body = await read_json(request)
    if isinstance(body, Mapping):
        return await _translate_inputs(request, body)
    texts, query = texts_of(request, body), request.query_params
    targets = list(dict.fromkeys(query.getlist("to")))
    if not 1 <= len(targets) <= _MAX_TARGETS:
        raise InvalidRequest(f"`to` must name from 1 to {_MAX_TARGETS} languages. Given: {len(targets)}")
    text_format = text_format_of(query.get("textType"))
    source = query.get("from") or None
    items = [Item(translations=[]) for _ in texts]
    for target in targets:
        outcome = await translate_texts(request, texts, source, target, format=text_format)
        for index, (item, translation) in enumerate(zip(items, outcome.result.translations, strict=True)):
            item.translations.append(MicrosoftTranslation(text=translation.text, to=target))
            item.detectedLanguage = _detected(outcome, index)
    return items


async def _translate_inputs(request: Request, body: Mapping[str, object]) -> Items:
    """Translate the inputs of version 2026-06-06. Inputs with equal languages are translated together."""
    inputs = body.get("inputs")
    if not isinstance(inputs, list):
        raise InvalidRequest("`inputs` must be an array of objects with `text` and `targets`")
    texts_of(request, inputs)
    items = [Item(translations=[]) for _ in inputs]
    groups: dict[tuple[str | None, str, str | None], list[tuple[int, int]]] = {}
    for index, each in enumerate(inputs):
        targets = each.get("targets") if isinstance(each, dict) else None
        if not isinstance(targets, list) or not 1 <= len(targets) <= _MAX_TARGETS:
            raise InvalidRequest(f"`targets` must be an array of 1 to {_MAX_TARGETS} objects with `language`")
        for position, target in enumerate(targets):
            language = _word(target, "language")
            if language is None:
                raise InvalidRequest("each element of `targets` must have a string `language`")
            items[index].translations.append(MicrosoftTranslation(text="", language=language))
            group = (_word(each, "language"), language, _word(each, "textType"))
            groups.setdefault(group, []).append((index, position))
    if len(groups) > server_state(request).settings.max_texts:
        raise InvalidRequest(f"a request must have at most {server_state(request).settings.max_texts} combinations")
    for (source, language, text_type), places in groups.items():
        texts = [_word(inputs[index], "text") or _word(inputs[index], "Text") or "" for index, _ in places]
        outcome = await translate_texts(request, texts, source, language, format=text_format_of(text_type))
        for number, (index, position) in enumerate(places):
            items[index].translations[position].text = outcome.result.translations[number].text
            items[index].detectedLanguage = _detected(outcome, number)
    return Items(value=items)


def _word(fields: object, name: str) -> str | None:
    value = fields.get(name) if isinstance(fields, dict) else None
    if value is not None and not isinstance(value, str):
        raise InvalidRequest(f"`{name}` must be a string")
    return None if value is None else replace_lone_surrogates(value)


def _detected(outcome: TranslationOutcome, index: int) -> MicrosoftDetectedLanguage | None:
    if not outcome.detected:
        return None
    found = outcome.detected[index]
    if found is None:  # clients require a language; a text without letters counts as English
        return MicrosoftDetectedLanguage(language="en", score=0)
    return MicrosoftDetectedLanguage(language=microsoft_code(found.language), score=round(found.confidence, 4))
