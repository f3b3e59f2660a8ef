"""A translation does not say the opposite: negations among the hypotheses, and a second search for lost ones."""

import asyncio
from collections.abc import Mapping
from dataclasses import replace

import pytest

from bundle.loading import Bundle
from server.interface.decoding_options import DecodingOptions
from server.translation.limits import TranslationLimits
from server.translation.pipeline import Pipeline
from server.translation.text_stream import TextStream
from server.translation.types import TranslationRequest, TranslationResult
from tests.fakes.answering import Answering
from tests.fakes.echo import make_bundle
from tests.server.text.identity import LETTERS

_TEXT = "None saw the dog."
_KEPT = "Niemand sah den Hund."
_LOST = "Alle sahen den Hund."
_BEAMS = DecodingOptions(beam_size=4)


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    return make_bundle(tmp_path_factory.mktemp("negations"), sentences=LETTERS)


def _translate(
    bundle: Bundle, answers: Mapping[str, str], required: Mapping[str, str], *texts: str, **changes: object
) -> tuple[TranslationResult, list[list[int]]]:
    """Return the result, and the beam sizes of each round."""
    engine = Answering(bundle, answers, required)
    request = replace(TranslationRequest(texts, "en", "de", _BEAMS), **changes)  # type: ignore[arg-type]  # fields
    result = asyncio.run(Pipeline(engine, TranslationLimits()).translate(request))
    return result, [[each.params.beam_size for each in batch] for batch in engine.batches]


def test_a_kept_negation_takes_one_search(bundle: Bundle) -> None:
    result, rounds = _translate(bundle, {_TEXT: f"{_KEPT}|{_LOST}"}, {}, _TEXT)
    assert result.translations[0].text == _KEPT
    assert rounds == [[4]]


@pytest.mark.parametrize("text", [_TEXT, "None saw the {dog}.", "NONE SAW THE DOG 5."])
def test_the_first_hypothesis_with_the_negation_is_the_answer(bundle: Bundle, text: str) -> None:
    read = text.replace("NONE SAW THE DOG", "None saw the dog") if text.isupper() else text
    end = "" if text is _TEXT else text.split()[-1]
    answers = dict.fromkeys((read, text, text.lower()), f"{_LOST} {end}|{_KEPT} {end}")
    result, rounds = _translate(bundle, answers, {}, text)
    assert result.translations[0].text.lower().rstrip() == f"{_KEPT} {end}".lower().rstrip()
    assert rounds == [[4]]


def test_a_negation_that_all_hypotheses_lost_is_required(bundle: Bundle) -> None:
    other = "The dog is here."
    answers = {_TEXT: _LOST, other: "Der Hund ist da."}
    result, rounds = _translate(bundle, answers, {_TEXT: _KEPT}, other, _TEXT, other)
    assert [each.text for each in result.translations] == ["Der Hund ist da.", _KEPT, "Der Hund ist da."]
    assert [len(each) for each in rounds] == [3, 1]
    assert rounds[-1] == [4]


def test_a_greedy_search_is_followed_by_hypotheses_of_beams(bundle: Bundle) -> None:
    options = DecodingOptions(beam_size=1)
    beams = f"{_LOST}|{_LOST}|{_KEPT}"
    result, rounds = _translate(bundle, {_TEXT: beams}, {}, _TEXT, options=options)
    assert result.translations[0].text == _KEPT
    assert rounds == [[1], [4]]


def test_a_negation_that_beams_lost_is_required(bundle: Bundle) -> None:
    options = DecodingOptions(beam_size=1)
    result, rounds = _translate(bundle, {_TEXT: _LOST}, {_TEXT: _KEPT}, _TEXT, options=options)
    assert result.translations[0].text == _KEPT
    assert rounds == [[1], [4], [4]]


def test_a_negation_that_cannot_be_had_ends_after_two_searches(bundle: Bundle) -> None:
    prohibited = "Smoking is forbidden."
    doubled = "Rauchen ist nicht verboten."
    result, rounds = _translate(bundle, {prohibited: "Rauchen."}, {prohibited: doubled}, prohibited)
    assert result.translations[0].text == doubled
    assert len(rounds) <= 4


@pytest.mark.parametrize("text", ["Smoking is forbidden.", "SMOKING IS FORBIDDEN."])
def test_the_last_search_has_one_hypothesis_which_is_the_answer(bundle: Bundle, text: str) -> None:
    sent = (text.capitalize(), text.lower())
    required = dict.fromkeys(sent, "Rauchen ist nicht verboten.")
    engine = Answering(bundle, dict.fromkeys(sent, "Rauchen."), required)
    request = TranslationRequest((text,), "en", "de", _BEAMS)
    result = asyncio.run(Pipeline(engine, TranslationLimits()).translate(request))
    assert result.translations[0].text.lower() == "rauchen ist nicht verboten."
    assert [each.params.num_hypotheses for batch in engine.batches for each in batch] == [4, 4, 1]


def test_samples_are_left_as_they_are(bundle: Bundle) -> None:
    options = DecodingOptions(temperature=1.0, seed=1)
    result, rounds = _translate(bundle, {_TEXT: _LOST}, {_TEXT: _KEPT}, _TEXT, options=options)
    assert result.translations[0].text == _LOST
    assert len(rounds) == 1


@pytest.mark.parametrize("answer", [_LOST, _KEPT])
def test_a_stream_has_the_same_text(bundle: Bundle, answer: str) -> None:
    async def streamed() -> str:
        stream = TextStream()
        engine = Answering(bundle, {_TEXT: answer}, {_TEXT: _KEPT})
        request = TranslationRequest((_TEXT,), "en", "de", _BEAMS)
        result = await Pipeline(engine, TranslationLimits()).translate(request, stream)
        return result.translations[0].text

    assert asyncio.run(streamed()) == _KEPT
