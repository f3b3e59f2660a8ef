"""Forms of address with an engine whose hypotheses a test names."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from server.interface.decoding_options import DecodingOptions
from server.interface.errors import InvalidRequest
from server.interface.request import Completion, Hypothesis, Request, Tokens
from server.text.formality import Formality
from server.text.language_detection import Detector
from server.text.tokenizers.registry import open_tokenizer
from server.translation.limits import TranslationLimits
from server.translation.pipeline import Pipeline
from server.translation.router import Router
from server.translation.service import TranslationService
from server.translation.text_stream import TextStream
from server.translation.types import TranslationRequest
from tests.fakes.echo import EchoGenerator, make_bundle
from tests.server.text.identity import LETTERS

INFORMAL = "Wo ist dein Bahnhof?"
FORMAL = "Wo ist Ihr Bahnhof?"
NEUTRAL = "Wo ist der Bahnhof?"


@dataclass
class AddressingEngine(EchoGenerator):
    """Engine with the hypotheses of `answers`, best first, except those with a suppressed phrase."""

    answers: Sequence[str] = ()

    async def generate(self, requests: Sequence[Request]) -> list[Completion]:
        """Return as many of the hypotheses as are requested, each 0.1 worse than the one before."""
        completions = await super().generate(requests)
        tokenizer = open_tokenizer(self.bundle)
        spelled = [tuple(tokenizer.encode_target(answer)) for answer in self.answers]
        return [
            replace(
                done,
                hypotheses=[
                    Hypothesis(list(tokens), -0.1 * rank, -0.1 * rank, done.finish_reason)
                    for rank, tokens in enumerate(spelled)
                    if not any(_contains(tokens, phrase) for phrase in done.request.params.suppress_phrases)
                ][: done.request.params.num_hypotheses],
            )
            for done in completions
        ]


def _contains(tokens: Tokens, phrase: Tokens) -> bool:
    return any(tokens[place : place + len(phrase)] == phrase for place in range(len(tokens)))


@pytest.fixture
def engine(tmp_path: Path) -> AddressingEngine:
    return AddressingEngine(make_bundle(tmp_path))


def _translate(engine: AddressingEngine, form: Formality | None, text: str = "Where is your station?") -> str:
    request = TranslationRequest((text,), "en", "de", formality=form)
    result = asyncio.run(Pipeline(engine, TranslationLimits(), clock=lambda: 100.0).translate(request))
    return result.translations[0].text


@pytest.mark.parametrize(
    ("answers", "form", "expected", "num_rounds"),
    [
        ((INFORMAL, NEUTRAL, FORMAL), Formality.FORMAL, FORMAL, 1),
        ((INFORMAL, NEUTRAL, FORMAL), Formality.INFORMAL, INFORMAL, 1),
        ((FORMAL, INFORMAL), Formality.INFORMAL, INFORMAL, 1),
        ((INFORMAL, NEUTRAL), Formality.FORMAL, NEUTRAL, 1),
        # A neutral best hypothesis stays: the source may have no address.
        ((NEUTRAL, FORMAL), Formality.FORMAL, NEUTRAL, 1),
        # The fifth hypothesis appears once the words of the other form are avoided.
        ((INFORMAL,) * 4 + (FORMAL,), Formality.FORMAL, FORMAL, 2),
        ((INFORMAL,) * 4 + (NEUTRAL, FORMAL), Formality.FORMAL, FORMAL, 2),
        # A neutral one that is much worse does not replace the answer.
        ((INFORMAL,) * 4 + (NEUTRAL,), Formality.FORMAL, INFORMAL, 2),
        ((INFORMAL,) * 4 + ("Wo?",) * 5, Formality.FORMAL, INFORMAL, 2),
        # Neither does a neutral or a formal one that lacks words of the answer.
        ((INFORMAL, "Los."), Formality.FORMAL, INFORMAL, 2),
        ((INFORMAL, "Ihr Bahnhof"), Formality.FORMAL, INFORMAL, 2),
        ((INFORMAL, FORMAL), None, INFORMAL, 1),
    ],
)
def test_the_best_hypothesis_with_the_form_is_the_answer(
    engine: AddressingEngine, answers: Sequence[str], form: Formality | None, expected: str, num_rounds: int
) -> None:
    engine.answers = answers
    assert _translate(engine, form) == expected
    assert len(engine.batches) == num_rounds


def test_a_request_without_a_form_has_the_parameters_that_it_had(engine: AddressingEngine) -> None:
    engine.answers = (INFORMAL,)
    _translate(engine, None)
    _translate(engine, Formality.INFORMAL)
    [[plain], [with_form]] = engine.batches
    assert plain.params.num_hypotheses == 1
    assert with_form.params.num_hypotheses == with_form.params.beam_size == 4


def test_protected_text_keeps_the_form_too(tmp_path: Path) -> None:
    engine = AddressingEngine(make_bundle(tmp_path, sentences=LETTERS))
    engine.answers = ("Wo ist dein {name}?", "Wo ist Ihr {name}?")
    assert _translate(engine, Formality.FORMAL, "Where is your {name}?") == "Wo ist Ihr {name}?"


def test_streams_receive_the_chosen_form(engine: AddressingEngine) -> None:
    engine.answers = (INFORMAL, FORMAL)
    limits = TranslationLimits()
    service = TranslationService(Router([Pipeline(engine, limits)], pivot=""), Detector(["en", "de"]), limits)
    stream = TextStream()
    request = TranslationRequest(("Where is your station?",), "", "", formality=Formality.FORMAL)
    asyncio.run(service.translate(request, "en", "de", stream))
    assert [piece.text for piece in stream.take()] == [FORMAL]


def test_targets_without_rules_are_rejected_unless_the_form_is_only_preferred(tmp_path: Path) -> None:
    engine = EchoGenerator(make_bundle(tmp_path, languages=("de", "en")))
    limits = TranslationLimits()
    service = TranslationService(Router([Pipeline(engine, limits)], pivot=""), Detector(["en", "de"]), limits)
    request = TranslationRequest(("Wo ist der Bahnhof?",), "", "", formality=Formality.FORMAL)
    with pytest.raises(InvalidRequest, match=r"`formal` requires a target language .*: de, es, .*\. Given: en"):
        asyncio.run(service.translate(request, "de", "en"))
    with pytest.raises(InvalidRequest, match="`formal` requires"):
        service.check(request, "de", "en")
    preferred = replace(request, formality_is_optional=True)
    assert asyncio.run(service.translate(preferred, "de", "en")).result.translations[0].text == "Wo ist der Bahnhof?"


def test_a_form_needs_beams(engine: AddressingEngine) -> None:
    request = TranslationRequest(("You.",), "en", "de", DecodingOptions(seed=1), formality=Formality.FORMAL)
    with pytest.raises(InvalidRequest, match="`formal` cannot be combined with sampling"):
        asyncio.run(Pipeline(engine, TranslationLimits()).translate(request))


@pytest.mark.parametrize(
    ("answers", "form", "other"),
    [
        ((INFORMAL, FORMAL), Formality.FORMAL, ()),
        ((INFORMAL, NEUTRAL), Formality.FORMAL, ()),
        ((INFORMAL,) * 4 + (NEUTRAL,), Formality.FORMAL, (INFORMAL,)),
        ((INFORMAL,) * 4, Formality.INFORMAL, ()),
        ((INFORMAL,) * 4, None, ()),
    ],
)
def test_sentences_with_the_other_form_are_reported(
    engine: AddressingEngine, answers: Sequence[str], form: Formality | None, other: tuple[str, ...]
) -> None:
    engine.answers = answers
    request = TranslationRequest(("Where is your station?",), "en", "de", formality=form)
    result = asyncio.run(Pipeline(engine, TranslationLimits()).translate(request))
    assert result.translations[0].formality_mismatches == other
