from types import SimpleNamespace
from typing import cast

import pytest
from fastapi import Request

from server.http.requests import translation_call
from server.http.requests.translation_call import source_codes, translate_texts
from server.interface.errors import InvalidRequest
from server.interface.request import FinishReason
from server.text.language_detection import Detection
from server.translation.router import Route
from server.translation.service import TranslationOutcome
from server.translation.types import Phases, TokenCounts, Translation, TranslationRequest, TranslationResult
from tests.fakes.event_loop import in_event_loop


class _Server:
    """A server whose models read English and Brazilian Portuguese."""

    def accept(self) -> tuple[None, SimpleNamespace]:
        return None, SimpleNamespace(source_languages=["en", "pt-BR"])


@pytest.mark.parametrize(
    ("source", "is_hint", "expected"),
    [
        (None, False, "auto"),
        ("", True, "auto"),
        ("Auto", False, "auto"),
        ("en", False, "en"),
        ("en", True, "en"),
        ("PT", True, "PT"),
        ("fr", False, "fr"),
        ("fr", True, "auto"),
        ("de", True, "auto"),
        ("de", False, "de"),
    ],
)
@in_event_loop
async def test_a_source_language_is_detected_if_it_is_missing_or_a_wrong_hint(
    source: str | None, is_hint: bool, expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[TranslationRequest, str | None, str | None]] = []

    async def run(_: Request, translation: TranslationRequest, own_source: str | None, target: str | None) -> None:
        asked.append((translation, own_source, target))

    monkeypatch.setattr(translation_call, "server_state", lambda _: _Server())
    monkeypatch.setattr(translation_call, "run_translation", run)
    request = Request({"type": "http"})
    await translate_texts(request, ["a", "b"], source, "de", format="html", source_is_hint=is_hint)
    assert asked == [(TranslationRequest(("a", "b"), "", "", format="html"), expected, "de")]


@in_event_loop
async def test_a_hint_that_is_the_target_is_no_source(monkeypatch: pytest.MonkeyPatch) -> None:
    sources: list[str | None] = []

    async def run(_: Request, __: TranslationRequest, source: str | None, ___: str | None) -> None:
        sources.append(source)

    monkeypatch.setattr(translation_call, "server_state", lambda _: _Server())
    monkeypatch.setattr(translation_call, "run_translation", run)
    for target in ("en-US", "de"):
        await translate_texts(Request({"type": "http"}), ["a"], "en", target, source_is_hint=True)
    assert sources == ["auto", "en"]


@pytest.mark.parametrize("target", [None, "", "auto"])
@in_event_loop
async def test_a_target_language_is_required(target: str | None) -> None:
    with pytest.raises(InvalidRequest, match="target language is missing"):
        await translate_texts(Request({"type": "http"}), ["a"], "en", target)


@pytest.mark.parametrize(
    ("source", "target", "name"), [("en-" + "x" * 62, "de", "source"), ("en", "de-" + "x" * 62, "target")]
)
@in_event_loop
async def test_a_language_that_answers_would_repeat_is_limited(source: str, target: str, name: str) -> None:
    with pytest.raises(InvalidRequest, match=f"the {name} language must have at most 64 characters. Given: 65"):
        await translate_texts(Request({"type": "http"}), ["a"], source, target, source_is_hint=True)


def _outcome(num_texts: int, *detected: str | None, source: str = "en") -> TranslationOutcome:
    translations = [Translation("x", 1, 1, FinishReason.STOP, 0.0)] * num_texts
    result = TranslationResult(translations, Phases(), TokenCounts({}, {}), num_splits=0)
    found = tuple(None if tag is None else Detection(tag, 0.9) for tag in detected)
    routes = (SimpleNamespace(source=source),) if num_texts else ()
    return TranslationOutcome(result, found, cast(tuple[Route, ...], routes))


@pytest.mark.parametrize(
    ("outcome", "source", "codes"),
    [
        (_outcome(2), "EN", ["EN", "EN"]),
        (_outcome(2, source="fr"), None, ["fr", "fr"]),
        (_outcome(0), None, []),
        (_outcome(3, None, "de", "fr"), None, ["de", "de", "fr"]),
        (_outcome(1, None), "auto", ["en"]),
    ],
)
def test_each_text_has_the_code_of_the_caller_or_the_detected_one(
    outcome: TranslationOutcome, source: str | None, codes: list[str]
) -> None:
    assert source_codes(outcome, source) == codes
