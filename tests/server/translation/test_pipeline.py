import asyncio
import itertools
import math
from dataclasses import replace

import pytest

from bundle.loading import Bundle
from server.interface.decoding_options import DecodingOptions
from server.interface.errors import (
    DeadlineExceeded,
    Draining,
    EngineFailed,
    InvalidRequest,
)
from server.interface.request import Completion, FinishReason, Hypothesis, Request
from server.text.glossary import Glossary
from server.translation.limits import TranslationLimits
from server.translation.pipeline import Pipeline
from server.translation.types import TokenCounts, TranslationRequest, TranslationResult
from tests.fakes.echo import MAX_TOKENS, EchoGenerator


def _request(*texts: str) -> TranslationRequest:
    return TranslationRequest(texts, "en", "de")


def _translate(
    generator: EchoGenerator, request: TranslationRequest, limits: TranslationLimits | None = None
) -> TranslationResult:
    pipeline = Pipeline(generator, limits or TranslationLimits(), clock=lambda: 100.0)
    return asyncio.run(pipeline.translate(request))


def test_texts_come_back_in_order_with_all_their_whitespace(echo: EchoGenerator) -> None:
    texts = ("  Good morning.  How are you today?\r\n\r\n", "", " \n", "Where is the dog?")
    result = _translate(echo, _request(*texts))
    assert [translation.text for translation in result.translations] == list(texts)


def test_all_sentences_of_a_request_are_submitted_at_once_longest_first(echo: EchoGenerator) -> None:
    _translate(echo, _request("Tea. The lazy dog jumps.", "I would like tea."))
    [batch] = echo.batches
    lengths = [len(request.source) for request in batch]
    assert len(lengths) == 3
    assert lengths == sorted(lengths, reverse=True)
    assert {request.timings.arrived for request in batch} == {100.0}


def test_nothing_is_submitted_where_there_is_nothing_to_translate(echo: EchoGenerator) -> None:
    result = _translate(echo, _request("", " \n ", "---", "…"))
    assert [translation.text for translation in result.translations] == ["", " \n ", "---", "…"]
    assert echo.batches == []
    assert result.translations[0].source_tokens == result.translations[0].target_tokens == 0
    assert result.translations[0].finish_reason is FinishReason.STOP


def test_sentences_require_the_glossary_terms_that_they_have(echo: EchoGenerator) -> None:
    glossary = Glossary({"tea": "Tee", "water": "Wasser"})
    request = replace(
        _request("I would like tea. Where is it? Water and tea, please."),
        glossary=glossary,
        options=DecodingOptions(beam_size=1),
    )
    _translate(echo, request)
    [batch] = echo.batches
    asked = sorted((len(each.params.required_terms), each.params.beam_size) for each in batch)
    assert asked == [(0, 1), (1, 4), (2, 4)]


def test_a_term_that_the_model_cannot_write_is_rejected(echo: EchoGenerator) -> None:
    with pytest.raises(InvalidRequest, match="`glossary`: '茶' has characters that this model cannot write"):
        _translate(echo, replace(_request("Some tea."), glossary=Glossary({"tea": "茶"})))


def test_tokens_count_the_end_of_every_sentence(echo: EchoGenerator) -> None:
    result = _translate(echo, _request("Good morning. How are you today?"))
    lengths = [len(request.source) for request in echo.batches[0]]
    assert result.translations[0].source_tokens == sum(lengths)
    assert result.translations[0].target_tokens == sum(lengths)
    assert result.sentence_tokens == TokenCounts.of([(length, length) for length in lengths])


def test_one_sentence_that_was_cut_marks_the_whole_text(echo: EchoGenerator) -> None:
    echo.finish_reason = FinishReason.LENGTH
    [translation] = _translate(echo, _request("Good morning.")).translations
    assert translation.finish_reason is FinishReason.LENGTH
    assert translation.target_tokens == len(echo.batches[0][0].source) - 1


def test_a_sentence_longer_than_the_model_takes_is_divided_and_counted(echo: EchoGenerator) -> None:
    text = "the quick brown fox jumps over the lazy dog, and " * 20
    result = _translate(echo, _request(text))
    assert result.translations[0].text == text
    assert result.num_splits > 0
    assert max(len(request.source) for request in echo.batches[0]) <= MAX_TOKENS


def test_alternatives_join_the_hypotheses_of_equal_rank(echo: EchoGenerator) -> None:
    request = TranslationRequest(
        ("Good morning. Where is it?",), "en", "de", options=DecodingOptions(beam_size=4, num_hypotheses=3)
    )
    [translation] = _translate(echo, request).translations
    tokenizer = Pipeline(echo, TranslationLimits()).tokenizer
    first, second = (tokenizer.encode(sentence).tolist()[:-1] for sentence in ("Good morning.", "Where is it?"))
    assert [alternative.text for alternative in translation.alternatives] == [
        f"{tokenizer.decode(first[:-rank])} {tokenizer.decode(second[:-rank])}" for rank in (1, 2)
    ]
    assert [alternative.score for alternative in translation.alternatives] == pytest.approx([-2.0, -3.0])


def test_the_score_of_one_sentence_is_its_own_and_of_several_their_mean_by_tokens(echo_bundle: Bundle) -> None:
    class Scored(EchoGenerator):
        def _complete(self, request: Request) -> Completion:
            completion = super()._complete(request)
            [hypothesis] = completion.hypotheses
            scored = Hypothesis(hypothesis.token_ids, -1.0, -float(len(request.source)), hypothesis.finish_reason)
            return Completion(request, [scored], completion.finish_reason)

    [one, two] = _translate(Scored(echo_bundle), _request("Good morning.", "Good morning. Tea.")).translations
    assert one.score == -one.target_tokens
    tea = two.target_tokens - one.target_tokens
    assert two.score == pytest.approx(-(one.target_tokens**2 + tea**2) / two.target_tokens)


def test_a_text_without_words_has_no_score(echo: EchoGenerator) -> None:
    [translation] = _translate(echo, _request("")).translations
    assert math.isnan(translation.score)


def test_phases_are_the_longest_of_the_sentences(echo: EchoGenerator) -> None:
    phases = _translate(echo, _request("Good morning. Tea.")).phases
    assert phases.queue_seconds == pytest.approx(0.001)
    assert phases.encode_seconds == pytest.approx(0.002)
    assert phases.decode_seconds == pytest.approx(0.007)
    assert phases.time_to_first_token_seconds == pytest.approx(0.004)


def test_a_request_may_have_less_time_than_the_server_allows(echo: EchoGenerator) -> None:
    request = TranslationRequest(("Tea.",), "en", "de", timeout_seconds=0.5)
    _translate(echo, request, TranslationLimits(max_timeout_seconds=5.0))
    assert echo.batches[0][0].deadline == 100.5


def test_a_sentence_that_expired_fails_its_request_with_the_time_it_had(echo: EchoGenerator) -> None:
    echo.finish_reason = FinishReason.DEADLINE
    with pytest.raises(DeadlineExceeded, match=r"within 2\.5 seconds"):
        _translate(echo, _request("Tea."), TranslationLimits(max_timeout_seconds=2.5))


def test_markup_that_is_assembled_too_late_is_no_answer(echo: EchoGenerator) -> None:
    times = itertools.chain([0.0], itertools.repeat(3.0))
    pipeline = Pipeline(echo, TranslationLimits(), clock=lambda: next(times))
    request = replace(_request("<b>Good</b> morning."), format="html", timeout_seconds=2.5)
    with pytest.raises(DeadlineExceeded, match=r"within 2\.5 seconds"):
        asyncio.run(pipeline.translate(request))
    assert asyncio.run(pipeline.translate(request)).translations[0].text == "<b>Good</b> morning."


def test_a_sentence_the_engine_gave_up_is_an_error_and_no_empty_text(echo: EchoGenerator) -> None:
    echo.finish_reason = FinishReason.CANCELLED
    with pytest.raises(Draining):
        _translate(echo, _request("Tea."))


def test_a_failed_step_fails_the_request(echo_bundle: Bundle) -> None:
    class Failing(EchoGenerator):
        def _complete(self, request: Request) -> Completion:
            return Completion(request, [], FinishReason.CANCELLED, error=RuntimeError("a device fell off the bus"))

    with pytest.raises(EngineFailed) as caught:
        _translate(Failing(echo_bundle), _request("Tea."))
    assert isinstance(caught.value.__cause__, RuntimeError)


def test_cancelling_a_translation_cancels_its_sentences(echo: EchoGenerator) -> None:
    async def scenario() -> None:
        echo.gate, echo.entered = asyncio.Event(), asyncio.Event()
        task = asyncio.create_task(Pipeline(echo, TranslationLimits()).translate(_request("Good morning. Tea.")))
        await echo.entered.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(scenario())
    assert echo.num_cancelled == 2
