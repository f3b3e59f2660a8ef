import asyncio
import time
from dataclasses import replace

import pytest

from bundle.loading import Bundle
from server.interface.decoding_options import DetailOptions
from server.interface.errors import InvalidRequest, TextTooLong
from server.interface.request import Completion, FinishReason, Hypothesis, Request
from server.text.tokenizers.registry import open_tokenizer
from server.translation.limits import TranslationLimits
from server.translation.scoring import Scorer, ScoreRequest, ScoreResult
from tests.fakes.echo import MAX_TOKENS, EchoGenerator


class Forcing(EchoGenerator):
    """Scores a translation by its number of tokens."""

    def _complete(self, request: Request) -> Completion:
        done = super()._complete(request)
        length = len(request.params.forced_target)
        hypothesis = Hypothesis(list(request.params.forced_target[:-1]), -float(length), -0.5, FinishReason.STOP)
        return replace(done, hypotheses=[hypothesis])


def _score(engine: EchoGenerator, limits: TranslationLimits, **changes: object) -> ScoreResult:
    scorer = Scorer(engine, limits, open_tokenizer(engine.bundle), time.monotonic)
    request = replace(ScoreRequest(("Where is it?", "Tea."), ("Wo ist es?", "Tee."), "en", "de"), **changes)  # type: ignore[arg-type]  # fields
    return asyncio.run(scorer.score(request))


def test_each_translation_is_forced_with_its_end(echo_bundle: Bundle) -> None:
    engine = Forcing(echo_bundle)
    tokenizer = open_tokenizer(echo_bundle)
    result = _score(engine, TranslationLimits())
    targets = [(*tokenizer.encode_target(text), tokenizer.end_token) for text in ("Wo ist es?", "Tee.")]
    assert [each.num_tokens for each in result.scores] == list(map(len, targets))
    assert [each.log_probability for each in result.scores] == [-float(len(target)) for target in targets]
    assert {each.score for each in result.scores} == {-0.5}
    assert not any(each.details for each in result.scores)
    [sent] = engine.batches
    assert {each.params.forced_target for each in sent} == set(targets)
    assert all(each.params.options.return_scores for each in sent)
    assert result.sentence_tokens.num_sentences == 2


def test_a_forced_first_token_is_part_of_the_translation(echo_bundle: Bundle) -> None:
    special = echo_bundle.config.special_tokens.model_copy(update={"forced_first": 7})
    bundle = replace(echo_bundle, config=echo_bundle.config.model_copy(update={"special_tokens": special}))
    engine = Forcing(bundle)
    plain, forced = _score(Forcing(echo_bundle), TranslationLimits()), _score(engine, TranslationLimits())
    assert [each.num_tokens for each in forced.scores] == [each.num_tokens + 1 for each in plain.scores]
    assert {(each.params.first_token, each.params.forced_target[0]) for each in engine.batches[0]} == {(7, 7)}


def test_pairs_that_are_none_and_texts_that_are_too_long_are_rejected(echo_bundle: Bundle) -> None:
    engine = Forcing(echo_bundle)
    limits = TranslationLimits(max_texts=2, max_text_characters=30)
    with pytest.raises(InvalidRequest, match=r"one entry for each text. Given: 1 for 2 texts"):
        _score(engine, limits, translations=("a",))
    with pytest.raises(InvalidRequest, match=r"at most 2 texts. Given: 3"):
        _score(engine, limits, texts=("a", "b", "c"), translations=("a", "b", "c"))
    with pytest.raises(TextTooLong, match=r"at most 30 characters. Given: 31"):
        _score(engine, limits, texts=("a" * 15, ""), translations=("b" * 16, ""))
    _score(engine, limits, texts=("a" * 7, ""), translations=("b" * 7, ""))
    long = "ж" + "tea " * MAX_TOKENS
    with pytest.raises(TextTooLong, match=rf"text 1 must have at most {MAX_TOKENS} tokens with this model"):
        _score(engine, TranslationLimits(), texts=("a", long))
    with pytest.raises(TextTooLong, match=rf"translation 0 must have at most {MAX_TOKENS} tokens with this model"):
        _score(engine, TranslationLimits(), translations=(long, "a"))
    with pytest.raises(InvalidRequest, match="`alignment_layer` must be from -1 to 0"):
        _score(engine, TranslationLimits(), options=DetailOptions(return_attention=True, alignment_layer=3))
    assert len(engine.batches) == 1


def test_attention_is_recorded_where_alignments_are_returned(echo_bundle: Bundle) -> None:
    for options in (DetailOptions(return_attention=True), DetailOptions(return_alignments=True)):
        engine = Forcing(echo_bundle, error=TextTooLong("ended here"))
        with pytest.raises(TextTooLong):
            _score(engine, TranslationLimits(), options=options)
        assert all(each.params.return_attention for each in engine.batches[0])
