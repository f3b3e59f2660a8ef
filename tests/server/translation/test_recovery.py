"""Translations that lack a part of their sentence: decoded again, named, or left as they are."""

import asyncio
from dataclasses import replace

import pytest

from server.interface.decoding_options import DecodingOptions
from server.interface.request import Completion, FinishReason, Hypothesis, Request
from server.text.glossary import Glossary
from server.text.protection.capitals import upper, with_first
from server.text.tokenizers.registry import open_tokenizer
from server.translation.limits import TranslationLimits
from server.translation.pipeline import Pipeline
from server.translation.plain_texts import PlainTextPath
from server.translation.text_stream import TextStream
from server.translation.types import Translation, TranslationRequest, TranslationResult
from tests.fakes.echo import EchoGenerator

FIRST, SECOND = "Where is the tea?", "Where is the dog?"
TEXT = f"{FIRST} {SECOND}"
WHOLE = DecodingOptions(split=False)


class Skipping(EchoGenerator):
    """A model that was trained to copy and skips all sentences but the first.

    Its hypothesis number `complete_rank` has all of them.
    """

    complete_rank: int | None = None

    def _complete(self, request: Request) -> Completion:
        tokenizer = open_tokenizer(self.bundle)
        text = tokenizer.decode(request.source[:-1].tolist())
        end = min([at + 1 for mark in ".?!;" if (at := text.find(mark)) >= 0], default=len(text))
        hypotheses = []
        for rank in range(request.params.num_hypotheses):
            written = text if rank == self.complete_rank else text[:end]
            tokens = tokenizer.encode_target(written)
            hypotheses.append(Hypothesis(tokens, -0.1 * len(tokens), -0.1, self.finish_reason))
        return replace(super()._complete(request), hypotheses=hypotheses)


@pytest.fixture
def engine(echo: EchoGenerator) -> Skipping:
    return Skipping(echo.bundle)


def _result(
    engine: EchoGenerator, *texts: str, stream: TextStream | None = None, **changes: object
) -> TranslationResult:
    request = replace(TranslationRequest(texts, "en", "de", WHOLE), **changes)  # type: ignore[arg-type]  # fields
    return asyncio.run(Pipeline(engine, TranslationLimits()).translate(request, stream))


def _translate(engine: EchoGenerator, *texts: str, **changes: object) -> Translation:
    return _result(engine, *texts, **changes).translations[0]  # type: ignore[arg-type]  # fields


def test_without_division_a_text_is_one_sentence(echo: EchoGenerator) -> None:
    assert _translate(echo, TEXT).text == TEXT
    assert len(echo.batches[0]) == 1
    assert len(_result(echo, TEXT, options=DecodingOptions()).sentence_tokens.source) == 2


@pytest.mark.parametrize(("is_plain", "split"), [(True, True), (False, True), (False, False)])
def test_another_hypothesis_of_the_same_search_recovers_a_sentence(
    engine: Skipping, monkeypatch: pytest.MonkeyPatch, is_plain: bool, split: bool
) -> None:
    if not is_plain:
        monkeypatch.setattr(PlainTextPath, "translate", _take_no_text)
    engine.complete_rank = 2
    sentence = f"{FIRST[:-1]}; {SECOND}"
    result = _result(engine, sentence, options=DecodingOptions(split=split))
    assert result.translations[0].text == sentence
    assert result.translations[0].recovered == (sentence,)
    assert result.outcomes == {"recovered": 1}
    assert len(engine.batches) == 1


def test_parts_are_decoded_with_two_beams_in_the_same_call(engine: Skipping) -> None:
    assert _translate(engine, TEXT).recovered == (TEXT,)
    first, second = engine.batches
    assert [each.params.beam_size for each in first] == [4]
    assert [each.params.beam_size for each in second] == [2, 2]
    assert all(each.accepted_earlier for each in second)


class Repeating(EchoGenerator):
    """A model that writes a part again in place of the next, and is surer of that than of either alone."""

    finish_reason_of_parts = FinishReason.STOP

    def _complete(self, request: Request) -> Completion:
        tokenizer = open_tokenizer(self.bundle)
        text = tokenizer.decode(request.source[:-1].tolist())
        is_whole = "dog" in text and "tea" in text
        tokens = tokenizer.encode_target("Where is the tea; tea?" if is_whole else text)
        reason = FinishReason.STOP if is_whole else self.finish_reason_of_parts
        log_probability = (-0.5 if is_whole else -0.9) * len(tokens)
        hypothesis = Hypothesis(tokens, log_probability, log_probability, reason)
        return replace(super()._complete(request), hypotheses=[hypothesis])


def test_parts_replace_a_translation_that_has_nothing_of_one_of_them(echo: EchoGenerator) -> None:
    engine, text = Repeating(echo.bundle), "Where is the tea; dog?"
    assert _translate(engine, text).text == text
    engine.finish_reason_of_parts = FinishReason.LENGTH
    assert _translate(engine, text).text == "Where is the tea; tea?"


@pytest.mark.parametrize("text", [TEXT, f"{FIRST[:-1]}; {SECOND}", f"{FIRST} ({SECOND[:-1]})", f'"{FIRST}" "{SECOND}"'])
def test_parts_recover_a_sentence_with_all_that_stands_between_them(engine: Skipping, text: str) -> None:
    translation = _translate(engine, text)
    assert translation.text == text
    assert len(translation.recovered) == 1


class WithoutCapitals(Skipping):
    """A model that begins with a small letter."""

    def _complete(self, request: Request) -> Completion:
        completion = super()._complete(request)
        tokenizer = open_tokenizer(self.bundle)
        written = tokenizer.decode(completion.hypotheses[0].token_ids)
        hypothesis = replace(completion.hypotheses[0], token_ids=tokenizer.encode_target(written.lower()))
        return replace(completion, hypotheses=[hypothesis])


class WithCapitals(Skipping):
    """A model that begins with a capital."""

    def _complete(self, request: Request) -> Completion:
        completion = super()._complete(request)
        tokenizer = open_tokenizer(self.bundle)
        written = tokenizer.decode(completion.hypotheses[0].token_ids)
        hypothesis = replace(
            completion.hypotheses[0], token_ids=tokenizer.encode_target(with_first(written, upper, "de"))
        )
        return replace(completion, hypotheses=[hypothesis])


@pytest.mark.parametrize("item", ["", " 300"])
def test_a_part_inside_a_sentence_begins_with_a_small_letter(echo: EchoGenerator, item: str) -> None:
    text = f"Where is the tea{item}; wir is{item}?"
    assert _translate(WithCapitals(echo.bundle), text).text == text
    text = f"Where is the tea{item}; water is{item}?"  # it may be a noun
    assert _translate(WithCapitals(echo.bundle), text).text == text.replace("water", "Water")


def test_a_part_that_is_a_sentence_begins_with_a_capital_as_its_source_does(echo: EchoGenerator) -> None:
    assert _translate(WithoutCapitals(echo.bundle), TEXT).text == TEXT


def test_a_noun_with_a_capital_inside_a_sentence_may_become_one_without(echo: EchoGenerator) -> None:
    translation = _translate(WithoutCapitals(echo.bundle), f"{FIRST[:-1]}; {SECOND}")
    assert translation.text == f"{FIRST[:-1]}; {SECOND.lower()}"


@pytest.mark.parametrize("is_plain", [True, False])
def test_a_sentence_of_a_divided_text_is_recovered(
    engine: Skipping, monkeypatch: pytest.MonkeyPatch, is_plain: bool
) -> None:
    if not is_plain:
        monkeypatch.setattr(PlainTextPath, "translate", _take_no_text)
    sentence = f"{FIRST[:-1]}; {SECOND}"
    translation = _translate(engine, f"{SECOND}\n{sentence}", options=DecodingOptions())
    assert translation.text == f"{SECOND}\n{sentence}"
    assert translation.recovered == (sentence,)
    assert translation.finish_reason is FinishReason.STOP


async def _take_no_text(path: PlainTextPath, *arguments: object) -> None:
    return None


def test_sentences_with_items_and_tags_are_recovered(engine: Skipping) -> None:
    text = "<p>Where is <b>the tea</b> 300? Where is the dog 400?</p>"
    marked = "<p>Where is <b>the tea</b> 300; where is the dog 400?</p>"
    for each in (text, marked):
        assert _translate(engine, each, options=DecodingOptions(), format="html").text == each


@pytest.mark.parametrize(
    ("changes", "is_named"),
    [
        ({"options": DecodingOptions(split=False, if_incomplete="flag")}, True),
        ({"options": DecodingOptions(split=False, if_incomplete="ignore")}, False),
        ({"options": DecodingOptions(split=False, num_hypotheses=2)}, True),
        ({"options": DecodingOptions(split=False, temperature=1.0)}, False),
        ({"options": DecodingOptions(split=False, max_new_tokens=20)}, False),
        ({"options": DecodingOptions(target_prefix="tea")}, False),
        ({"glossary": Glossary({"cup": "water"})}, True),
    ],
)
def test_other_requests_only_name_it_or_have_limits_of_their_own(
    engine: Skipping, changes: dict[str, object], is_named: bool
) -> None:
    translation = _translate(engine, TEXT, **changes)
    assert translation.incomplete == ((TEXT,) if is_named else ())
    assert not translation.recovered
    assert len(engine.batches) == 1


def test_a_stream_never_retracts_text_and_names_the_sentence(engine: Skipping) -> None:
    stream = TextStream()
    result = _result(engine, TEXT, stream=stream)
    assert "".join(delta.text for delta in stream.take()) == FIRST
    assert result.translations[0].incomplete == (TEXT,)


def test_a_sentence_that_no_attempt_completes_is_named(engine: Skipping) -> None:
    engine.finish_reason = FinishReason.REPETITION
    result = _result(engine, SECOND)
    assert result.translations[0].incomplete == (SECOND,)
    assert result.outcomes == {"incomplete": 1}


def test_a_complete_translation_is_decoded_once(echo: EchoGenerator) -> None:
    translation = _translate(echo, TEXT, options=DecodingOptions(split=False, beam_size=1))
    assert translation.text == TEXT
    assert len(echo.batches) == 1
    assert translation.recovered == translation.incomplete == ()
