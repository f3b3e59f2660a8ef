"""The short path of plain texts gives the results of the general one."""

import asyncio
from dataclasses import replace

import pytest

from server.interface.decoding_options import DecodingOptions
from server.translation.limits import TranslationLimits
from server.translation.pipeline import Pipeline
from server.translation.plain_texts import LostNegations, PlainTextPath
from server.translation.types import TranslationRequest, TranslationResult
from tests.fakes.echo import MAX_TOKENS, EchoGenerator

TEXTS = (
    "  Good morning.  How are you today?\r\n\r\n",
    "",
    " \n",
    "…",
    "Where is the dog?\n---\n I would like tea.",
    "The lazy dog jumps. " * 30,
    "tea " * 3 * MAX_TOKENS,
    "a\udc80b",
)


def _translate(engine: EchoGenerator, request: TranslationRequest) -> TranslationResult:
    return asyncio.run(Pipeline(engine, TranslationLimits(), clock=lambda: 100.0).translate(request))


async def _take_no_text(path: PlainTextPath, *arguments: object) -> None:
    return None


@pytest.mark.parametrize("options", [{}, {"beam_size": 1}, {"beam_size": 2, "return_scores": True}])
@pytest.mark.parametrize("texts", [TEXTS, *((text,) for text in TEXTS)])
def test_both_paths_give_the_same_result(
    echo: EchoGenerator, monkeypatch: pytest.MonkeyPatch, options: dict[str, object], texts: tuple[str, ...]
) -> None:
    request = TranslationRequest(texts, "en", "de", DecodingOptions.given(options))
    short = _translate(echo, request)
    submitted = [[list(each.source) for each in batch] for batch in echo.batches]
    echo.batches.clear()
    monkeypatch.setattr(PlainTextPath, "translate", _take_no_text)
    general = _translate(echo, request)
    assert [[list(each.source) for each in batch] for batch in echo.batches] == submitted
    assert repr(short.translations) == repr(general.translations)  # NaN equals NaN
    assert (short.sentence_tokens, short.num_splits) == (general.sentence_tokens, general.num_splits)


@pytest.mark.parametrize(
    "changes",
    [
        {"format": "html"},
        {"options": DecodingOptions(beam_size=2, num_hypotheses=2)},
        {"options": DecodingOptions(target_prefix="tea")},
        {"texts": ("Where is {it}?",)},
    ],
)
def test_other_requests_take_the_general_path(echo: EchoGenerator, changes: dict[str, object]) -> None:
    taken: list[bool] = []
    pipeline = Pipeline(echo, TranslationLimits())
    path = pipeline._plain_texts.translate

    async def recorded(*arguments: object) -> tuple[TranslationResult, LostNegations] | None:
        result = await path(*arguments)  # type: ignore[arg-type]  # those of the method
        taken.append(result is not None)
        return result

    pipeline._plain_texts.translate = recorded  # type: ignore[assignment,method-assign]  # a recorder
    asyncio.run(pipeline.translate(replace(TranslationRequest(("tea",), "en", "de"), **changes)))  # type: ignore[arg-type]  # fields
    assert not any(taken)
