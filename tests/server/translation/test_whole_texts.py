import asyncio
import time
from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pytest

from bundle.loading import Bundle
from bundle.manifest import GenerationDescription, GenerationTask
from server.interface.decoding_options import DecodingOptions, DetailOptions
from server.interface.errors import InvalidRequest, TextTooLong
from server.interface.request import Completion, FinishReason, Hypothesis, Request
from server.text.tokenizers.registry import open_tokenizer
from server.translation.engine_requests import with_model_defaults
from server.translation.limits import TranslationLimits
from server.translation.text_stream import TextDelta, TextStream
from server.translation.whole_texts import (
    Embedder,
    EmbeddingRequest,
    EmbeddingResult,
    GenerationOutcome,
    GenerationRequest,
    Generator,
    Scorer,
    ScoreRequest,
    ScoreResult,
)
from tests.fakes.echo import MAX_TOKENS, EchoGenerator


class Pooling(EchoGenerator):
    """Embeds a source as its number of tokens and a zero."""

    def _complete(self, request: Request) -> Completion:
        done = super()._complete(request)
        vector = np.array([0.0, len(request.source) - 1], np.float32)
        return replace(done, hypotheses=[Hypothesis([], 0.0, 0.0, FinishReason.STOP, embedding=vector)])


def _embed(
    engine: EchoGenerator, request: EmbeddingRequest, limits: TranslationLimits | None = None
) -> EmbeddingResult:
    embedder = Embedder(engine, limits or TranslationLimits(), open_tokenizer(engine.bundle), time.monotonic)
    return asyncio.run(embedder.embed(request))


def test_embeddings_have_the_length_one_unless_they_are_zero(echo_bundle: Bundle) -> None:
    result = _embed(Pooling(echo_bundle), EmbeddingRequest(("Good morning.", "")))
    assert [each.tolist() for each in result.embeddings] == [[0, 1], [0, 0]]
    raw = _embed(Pooling(echo_bundle), EmbeddingRequest(("Good morning.", ""), normalize=False))
    assert [each.tolist() for each in raw.embeddings] == [[0, raw.num_tokens[0] - 1], [0, 0]]
    assert raw.num_tokens[1] == 1
    assert raw.truncated == frozenset()


def test_requests_have_the_pooling_and_the_prefix(echo_bundle: Bundle) -> None:
    engine = Pooling(echo_bundle)
    tokenizer = open_tokenizer(echo_bundle)
    _embed(engine, EmbeddingRequest(("tea",), "first", prefix="good ", bypass_cache=True))
    [[request]] = engine.batches
    assert request.params.pooling == "first"
    assert request.source.tolist() == tokenizer.encode("good tea").tolist()
    assert not request.cacheable
    _embed(engine, EmbeddingRequest(("tea",)))
    assert engine.batches[1][0].cacheable


def test_a_long_text_to_embed_loses_its_end_if_it_may(echo_bundle: Bundle) -> None:
    long = "tea " * MAX_TOKENS
    with pytest.raises(TextTooLong, match=f"text 1 must have at most {MAX_TOKENS} tokens"):
        _embed(Pooling(echo_bundle), EmbeddingRequest(("tea", long)))
    result = _embed(Pooling(echo_bundle), EmbeddingRequest(("tea", long), truncate=True))
    assert result.truncated == {1}
    assert result.num_tokens[1] == MAX_TOKENS


def test_the_size_of_a_request_counts_its_prefix(echo_bundle: Bundle) -> None:
    limits = TranslationLimits(max_texts=2, max_text_characters=6)
    _embed(Pooling(echo_bundle), EmbeddingRequest(("tea", "tea")), limits)
    assert EmbeddingRequest(("tea", "te"), prefix="a ").num_characters == 9
    with pytest.raises(TextTooLong, match=r"at most 6 characters. Given: 7"):
        _embed(Pooling(echo_bundle), EmbeddingRequest(("tea", "tea"), prefix="a"), limits)
    with pytest.raises(InvalidRequest, match=r"at most 2 texts. Given: 3"):
        _embed(Pooling(echo_bundle), EmbeddingRequest(("a", "b", "c")), limits)


LIMITS = TranslationLimits(max_beam_size=6, default_beam_size=4)


@pytest.fixture
def engine(echo_bundle: Bundle) -> EchoGenerator:
    """A model with a prefix, and with a task of its own."""
    described = GenerationDescription(
        prefix="good ", tasks={"tea": GenerationTask(prefix="tea ", options={"beam_size": 2})}
    )
    return EchoGenerator(replace(echo_bundle, config=echo_bundle.config.model_copy(update={"generation": described})))


def _generate(engine: EchoGenerator, request: GenerationRequest, stream: TextStream | None = None) -> GenerationOutcome:
    generator = Generator(engine, LIMITS, open_tokenizer(engine.bundle), time.monotonic)
    return asyncio.run(generator.generate(request, stream))


@pytest.mark.parametrize(
    ("changes", "read", "beam_size"),
    [
        ({}, "good dog", 4),
        ({"prefix": "lazy "}, "lazy dog", 4),
        ({"prefix": ""}, "dog", 4),
        ({"task": "tea"}, "tea dog", 2),
        ({"task": "tea", "options": DecodingOptions(beam_size=3)}, "tea dog", 3),
    ],
)
def test_a_text_is_read_behind_the_prefix_of_its_task(
    engine: EchoGenerator, changes: Mapping[str, object], read: str, beam_size: int
) -> None:
    outcome = _generate(engine, replace(GenerationRequest(("dog",)), **changes))  # type: ignore[arg-type]  # fields
    [text] = outcome.result.translations
    assert text.text == read
    assert (text.alternatives, text.sentences) == ((), ())
    assert outcome.model == engine.bundle.config.name
    [[request]] = engine.batches
    assert request.params.beam_size == beam_size
    assert request.cacheable
    assert text.source_tokens == len(request.source)


def test_other_hypotheses_are_alternatives(engine: EchoGenerator) -> None:
    outcome = _generate(engine, GenerationRequest(("dog",), DecodingOptions(num_hypotheses=2), bypass_cache=True))
    [text] = outcome.result.translations
    [other] = text.alternatives
    assert (text.score, other.score) == (-1.0, -2.0)
    assert other.text != text.text
    assert not engine.batches[0][0].cacheable


def test_an_unknown_task_and_a_task_with_a_prefix_are_rejected(engine: EchoGenerator, echo_bundle: Bundle) -> None:
    with pytest.raises(InvalidRequest, match=r"one that the model names: tea. Given: coffee"):
        _generate(engine, GenerationRequest(("dog",), task="coffee"))
    with pytest.raises(InvalidRequest, match="`task` cannot be combined with `prefix`"):
        _generate(engine, GenerationRequest(("dog",), task="tea", prefix=""))


def test_a_long_text_loses_its_end_if_it_may(engine: EchoGenerator) -> None:
    long = "dog " * MAX_TOKENS
    with pytest.raises(TextTooLong, match=f"text 1 must have at most {MAX_TOKENS} tokens"):
        _generate(engine, GenerationRequest(("dog", long)))
    outcome = _generate(engine, GenerationRequest(("dog", long), truncate=True))
    assert outcome.truncated == {1}
    assert len(engine.batches[0]) == 2


def test_generated_texts_are_streamed(engine: EchoGenerator) -> None:
    stream = TextStream()
    _generate(engine, GenerationRequest(("dog", "tea")), stream)
    assert stream.take() == [TextDelta(0, "good dog"), TextDelta(1, "good tea")]


@pytest.mark.parametrize(
    ("options", "of_model", "expected"),
    [
        ({}, {}, {"max_new_tokens": MAX_TOKENS}),
        ({}, {"beam_size": 2}, {"beam_size": 2, "max_new_tokens": MAX_TOKENS}),
        ({}, {"beam_size": 7}, {"beam_size": 6, "max_new_tokens": MAX_TOKENS}),
        ({"num_hypotheses": 3}, {"beam_size": 2}, {"beam_size": 3, "num_hypotheses": 3, "max_new_tokens": MAX_TOKENS}),
        ({"beam_size": 3}, {"beam_size": 2}, {"beam_size": 3, "max_new_tokens": MAX_TOKENS}),
        ({"beam_size": 3}, {"temperature": 0.5, "top_k": 5}, {"beam_size": 3, "max_new_tokens": MAX_TOKENS}),
        ({"temperature": 0.7}, {"beam_size": 2}, {"temperature": 0.7, "max_new_tokens": MAX_TOKENS}),
        ({}, {"temperature": 0.5, "top_k": 5}, {"temperature": 0.5, "top_k": 5, "max_new_tokens": MAX_TOKENS}),
        ({}, {"max_new_tokens": 5}, {"max_new_tokens": 5}),
        ({}, {"max_new_tokens": MAX_TOKENS + 9}, {"max_new_tokens": MAX_TOKENS}),
        ({"max_new_tokens": 7}, {"max_new_tokens": 5}, {"max_new_tokens": 7}),
        ({"max_new_tokens": 4}, {"min_new_tokens": 4}, {"max_new_tokens": 4, "min_new_tokens": 3}),
        ({"max_new_tokens": 5}, {"min_new_tokens": 4}, {"max_new_tokens": 5, "min_new_tokens": 4}),
        ({}, {"unknown_option": 1, "beam_size": "x"}, {"max_new_tokens": MAX_TOKENS}),
        ({"beam_size": 1}, {"patience": 2.0}, {"beam_size": 1, "max_new_tokens": MAX_TOKENS}),
        ({}, {"patience": 2.0}, {"patience": 2.0, "max_new_tokens": MAX_TOKENS}),
    ],
)
def test_options_of_a_model_give_way_to_those_of_a_request(
    echo_bundle: Bundle, options: dict[str, object], of_model: dict[str, object], expected: dict[str, object]
) -> None:
    found = with_model_defaults(DecodingOptions.given(options), of_model, LIMITS, echo_bundle.config.shapes)
    assert found.changed() == expected


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
