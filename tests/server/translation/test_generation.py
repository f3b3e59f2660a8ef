import asyncio
import time
from collections.abc import Mapping
from dataclasses import replace

import pytest

from bundle.loading import Bundle
from bundle.manifest import GenerationDescription, GenerationTask
from server.interface.decoding_options import DecodingOptions
from server.interface.errors import InvalidRequest, TextTooLong
from server.text.tokenizers.registry import open_tokenizer
from server.translation.generation import GenerationOutcome, GenerationRequest, Generator
from server.translation.limits import TranslationLimits
from server.translation.model_defaults import with_model_defaults
from server.translation.text_stream import TextDelta, TextStream
from tests.fakes.echo import MAX_TOKENS, EchoGenerator

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
