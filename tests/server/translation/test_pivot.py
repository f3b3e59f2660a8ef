"""Two steps through a third language, with pipelines that record their requests."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import pytest

from server.interface.decoding_options import DecodingOptions
from server.interface.errors import InvalidRequest, TextTooLong
from server.interface.request import FinishReason
from server.text.formality import Formality
from server.text.glossary import Glossary
from server.translation.limits import TranslationLimits
from server.translation.pivot import PivotPipeline
from server.translation.text_stream import TextStream
from server.translation.types import (
    KeepReason,
    Phases,
    RepairedSentence,
    TokenCounts,
    Translation,
    TranslationRequest,
    TranslationResult,
)
from tests.fakes.engine import FakeClock


@dataclass
class Step:
    """A pipeline that puts a sign before each text."""

    sign: str
    clock: FakeClock
    limits: TranslationLimits = field(default_factory=TranslationLimits)
    qualities: tuple[float | None, ...] = ()
    finish_reason: FinishReason = FinishReason.STOP
    words: Callable[[str], str] = str
    seconds: float = 0.0
    rejection: Exception | None = None
    requests: list[TranslationRequest] = field(default_factory=list)
    checked: list[TranslationRequest] = field(default_factory=list)

    def check(self, request: TranslationRequest) -> None:
        """Record the check."""
        self.checked.append(request)
        if self.rejection is not None:
            raise self.rejection

    async def translate(self, request: TranslationRequest, stream: TextStream | None = None) -> TranslationResult:
        """Return the texts behind the sign."""
        self.requests.append(request)
        self.clock.now += self.seconds
        translations = [
            Translation(
                self.sign + self.words(text), 2, 3, self.finish_reason, -1.0,
                repaired=(RepairedSentence(f"{self.sign}r", "parts"),), incomplete=(f"{self.sign}i",),
                quality=self.qualities[index] if self.qualities else None,
            )
            for index, text in enumerate(request.texts)
        ]  # fmt: skip
        return TranslationResult(
            translations, Phases(1, 2, 3, 4, 5), TokenCounts.of([(2, 3)]), 1, 7, outcomes={"repaired": 1}
        )


def _steps(**second: object) -> tuple[PivotPipeline, Step, Step]:
    clock = FakeClock()
    steps = Step("1", clock), replace(Step("2", clock), **second)  # type: ignore[arg-type]  # fields
    return PivotPipeline(*steps, ("en", "eng"), clock), *steps


def _translated(pipeline: PivotPipeline, **changes: object) -> TranslationResult:
    request = replace(TranslationRequest(("a", "b"), "de", "fr"), **changes)  # type: ignore[arg-type]  # fields
    return asyncio.run(pipeline.translate(request))


def test_the_numbers_are_those_of_both_steps() -> None:
    pipeline, first, second = _steps(finish_reason=FinishReason.LENGTH)
    result = _translated(pipeline)
    assert [each.text for each in result.translations] == ["21a", "21b"]
    assert {each.finish_reason for each in result.translations} == {FinishReason.LENGTH}
    assert [each.text for each in result.translations[0].repaired] == ["1r", "2r"]
    assert result.translations[0].incomplete == ("1i", "2i")
    assert (result.num_splits, result.seed) == (2, 7)
    # The first token of the answer comes after the queue, the encoder and the decoder of the first step.
    assert result.phases == Phases(2, 4, 6, 8, 2 + 3 + 4 + 5)
    assert result.sentence_tokens.num_sentences == 2
    assert result.outcomes == {"repaired": 2}
    assert [(each.source, each.target) for each in (*first.requests, *second.requests)] == [("de", "en"), ("eng", "fr")]
    assert second.requests[0].accepted_earlier
    assert second.requests[0].size_is_checked
    assert not first.requests[0].accepted_earlier


def test_options_about_the_translation_are_for_the_second_step() -> None:
    pipeline, first, second = _steps()
    options = DecodingOptions(beam_size=3, length_penalty=0.5, num_hypotheses=2, max_new_tokens=9)
    _translated(pipeline, options=options, formality=Formality.FORMAL)
    assert first.requests[0].options.changed() == {"beam_size": 3, "length_penalty": 0.5}
    assert first.requests[0].formality is None
    assert second.requests[0].options == options
    assert second.requests[0].formality is Formality.FORMAL
    assert [(each.source, each.texts) for each in second.checked] == [("eng", ("a", "b"))]


def test_details_of_tokens_and_wrong_options_are_rejected_before_the_first_step() -> None:
    pipeline, first, _ = _steps()
    with pytest.raises(InvalidRequest, match="through en there are no scores, alternatives or alignments of tokens"):
        _translated(pipeline, options=DecodingOptions(return_alignments=True))

    pipeline, first, _ = _steps(rejection=TextTooLong("no"))
    with pytest.raises(TextTooLong):
        _translated(pipeline)
    assert first.requests == []


@pytest.mark.parametrize(("timeout", "seconds", "left"), [(None, 3.0, None), (5.0, 3.0, 2.0), (5.0, 9.0, 1e-3)])
def test_the_second_step_has_the_rest_of_the_time(timeout: float | None, seconds: float, left: float | None) -> None:
    pipeline, first, second = _steps()
    first.seconds = seconds
    _translated(pipeline, timeout_seconds=timeout)
    assert first.requests[0].timeout_seconds == timeout
    assert second.requests[0].timeout_seconds == pytest.approx(left)


def test_terms_pass_through_the_pivot_as_the_first_step_translates_them() -> None:
    pipeline, first, second = _steps()
    first.sign, first.seconds, first.words = "", 1.0, lambda text: {"hund": "Dog.", "Haus": "House"}.get(text, text)
    glossary = Glossary({"hund": "chien", "Haus": "maison", "Katze": "chat"})
    _translated(pipeline, texts=("Der hund und das Haus",), glossary=glossary, timeout_seconds=10.0)
    alone, with_terms = first.requests
    assert set(alone.texts) == {"hund", "Haus"}
    assert alone.glossary is None
    assert alone.size_is_checked
    assert with_terms.glossary is not None
    assert with_terms.glossary.entries == {"hund": ("Dog", "dog"), "Haus": ("House",)}
    assert with_terms.accepted_earlier
    assert with_terms.timeout_seconds == pytest.approx(9.0)
    assert second.requests[0].glossary is not None
    assert set(second.requests[0].glossary.entries) == {"dog", "house"}


def test_texts_without_terms_have_no_glossary_in_either_step() -> None:
    pipeline, first, second = _steps()
    _translated(pipeline, glossary=Glossary({"Katze": "chat"}))
    assert [each.glossary for each in (*first.requests, *second.requests)] == [None, None]
    assert len(first.requests) == 1
    assert not first.requests[0].accepted_earlier


def test_a_quality_is_that_both_translations_are_good() -> None:
    limits = TranslationLimits(min_quality=0.5)
    pipeline, first, second = _steps(limits=limits, qualities=(0.8, None))
    first.qualities = (0.6, 0.9)
    result = _translated(pipeline, options=DecodingOptions(return_quality=True))
    assert [each.quality for each in result.translations] == [0.48, None]
    [[low], none] = [each.low_quality for each in result.translations]
    assert (low.text, low.translation, low.quality) == ("a", "21a", 0.48)
    assert none == ()
    assert result.translations[0].sentence_quality == (low,)
    for step in (first, second):
        assert (step.requests[0].options.min_quality, step.requests[0].options.return_quality) == (0.0, True)
    pipeline, first, second = _steps(limits=limits, qualities=(1.0, 1.0))
    first.qualities = (0.5, 0.5)
    result = _translated(pipeline)
    assert [(each.quality, each.low_quality, each.sentence_quality) for each in result.translations] == [
        (0.5, (), ())
    ] * 2
    assert first.requests[0].options.return_quality is False


@pytest.mark.parametrize(("num_hypotheses", "is_kept"), [(1, True), (2, False)])
def test_a_doubtful_text_stays_if_the_server_keeps_it(num_hypotheses: int, is_kept: bool) -> None:
    limits = TranslationLimits(min_quality=0.5, on_low_quality="keep_source")
    pipeline, first, _ = _steps(limits=limits, qualities=(0.5, 0.9))
    first.qualities = (0.8, 0.8)
    result = _translated(pipeline, options=DecodingOptions(num_hypotheses=num_hypotheses))
    assert [each.text for each in result.translations] == ["a" if is_kept else "21a", "21b"]
    assert [each.reason for each in result.kept_sentences] == [KeepReason.LOW_QUALITY] * is_kept
    assert result.translations[0].quality == (None if is_kept else 0.4)
