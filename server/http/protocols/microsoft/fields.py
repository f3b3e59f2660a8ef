"""Bodies of the Microsoft-compatible protocol: an array of texts (3.0), or an object with inputs (2026-06-06)."""

from collections.abc import Mapping

from fastapi import Request

from server.http.state import server_state
from server.interface.errors import InvalidRequest
from server.text.language_tags import match_language
from server.text.unicode_text import replace_lone_surrogates
from server.translation.types import TextFormat, TranslationRequest

_CODE_OF_TAG = {"zh-Hans": "zh-Hans", "zh-Hant": "zh-Hant", "fil": "fil", "nb": "nb", "he": "he"}
_FORMATS: dict[str, TextFormat] = {"": "text", "plain": "text", "html": "html"}


def microsoft_code(tag: str) -> str:
    """Return Microsoft's code for a language of a model."""
    found = match_language(tag, list(_CODE_OF_TAG))
    return tag.replace("_", "-") if found is None else _CODE_OF_TAG[found]


def texts_of(request: Request, body: object) -> list[str]:
    """Return the texts of an array of objects with `Text` or `text`.

    Raises `InvalidRequest`, also for too many texts, and `TextTooLong`.
    """
    if not isinstance(body, list):
        raise InvalidRequest("the body must be an array of objects with `Text`")
    texts = []
    for each in body:
        text = each.get("Text", each.get("text")) if isinstance(each, Mapping) else each
        if not isinstance(text, str):
            raise InvalidRequest("each element of the body must have a string `Text`")
        texts.append(replace_lone_surrogates(text))
    server_state(request).settings.limits.check_size(TranslationRequest(tuple(texts), "", ""))
    return texts


def text_format_of(value: object) -> TextFormat:
    """Return the format that `textType` names. Raises `InvalidRequest` for others than plain and html."""
    found = _FORMATS.get(value.casefold()) if isinstance(value, str) else "text" if value is None else None
    if found is None:
        raise InvalidRequest("`textType` must be plain or html")
    return found
