"""Embeddings, generated texts and scores: the model reads the tokens of the text as it was sent, bit by bit."""

import asyncio
import time
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bundle.loading import Bundle
from bundle.manifest import GenerationDescription
from server.interface.decoding_options import DecodingOptions
from server.interface.request import Completion, FinishReason, Hypothesis, Request
from server.text.tokenizers.registry import open_tokenizer
from server.translation.limits import TranslationLimits
from server.translation.pipeline import Pipeline
from server.translation.types import TranslationRequest
from server.translation.whole_texts import (
    Embedder,
    EmbeddingRequest,
    GenerationRequest,
    Generator,
    Scorer,
    ScoreRequest,
)
from tests.fakes.echo import EchoGenerator, make_bundle
from tests.fakes.rule_engine import byte_bundle

LIMITS = TranslationLimits()
_ODD = (
    "10 mL",
    "20,– today",
    "−5",
    "Leser*innen",
    "z. B.",
    "a\u00adb",
    "\u200f12",
    "“x”",
    " a  b ",
    "{x}",
    "USA",
    "ﬁ½",
    "\ud800",
)
TEXTS = st.one_of(
    st.sampled_from(_ODD), st.text(max_size=20), st.text(st.characters(categories=["Cs", "So", "Zs"]), max_size=5)
)


class Recording(EchoGenerator):
    """Answers any request, and keeps what it was sent."""

    def _complete(self, request: Request) -> Completion:
        done = super()._complete(request)
        target = list(request.params.forced_target[:-1])
        answer = Hypothesis(target, -1.0, -1.0, FinishReason.STOP, embedding=np.ones(2, np.float32))
        return replace(done, hypotheses=[answer])


@pytest.fixture(scope="module", params=["sentencepiece", "bytes"])
def bundle(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    made = byte_bundle() if request.param == "bytes" else make_bundle(tmp_path_factory.mktemp("pieces"))
    shapes = made.config.shapes.model_copy(update={"max_source_tokens": 500, "max_target_tokens": 500})
    described = {"shapes": shapes, "generation": GenerationDescription()}
    return replace(made, config=made.config.model_copy(update=described))


@settings(deadline=None, max_examples=40)
@given(st.lists(TEXTS, min_size=1, max_size=4), TEXTS)
def test_tokens_are_those_of_the_text_as_it_was_sent(bundle: Bundle, texts: list[str], prefix: str) -> None:
    tokenizer = open_tokenizer(bundle)

    def read(engine: Recording) -> list[list[int]]:
        return sorted(each.source.tolist() for batch in engine.batches for each in batch)

    def tokens(prefix: str, source: str = "", target: str = "") -> list[list[int]]:
        return sorted(tokenizer.encode(prefix + text, target, source).tolist() for text in texts)

    embedding, generating, scoring = Recording(bundle), Recording(bundle), Recording(bundle)
    parts = (LIMITS, tokenizer, time.monotonic)
    asyncio.run(Embedder(embedding, *parts).embed(EmbeddingRequest(tuple(texts), prefix=prefix)))
    assert read(embedding) == tokens(prefix)
    asyncio.run(Generator(generating, *parts).generate(GenerationRequest(tuple(texts), prefix=prefix)))
    assert read(generating) == tokens(prefix)
    targets = tuple(reversed(texts))
    asyncio.run(Scorer(scoring, *parts).score(ScoreRequest(tuple(texts), targets, "en", "de")))
    assert read(scoring) == tokens("", "en", "de")
    forced = sorted(each.params.forced_target for batch in scoring.batches for each in batch)
    assert forced == sorted((*tokenizer.encode_target(text), tokenizer.end_token) for text in targets)


@pytest.mark.parametrize("options", [{}, {"return_scores": True}, {"split": False}])
@pytest.mark.parametrize(
    "text", ["10 mL of z. B. −5 °C", "WHERE IS IT", "Leser*innen im Café", "Title Case Of All Words"]
)
def test_a_translated_sentence_is_read_as_it_was_sent(bundle: Bundle, text: str, options: dict[str, object]) -> None:
    engine = EchoGenerator(bundle)
    tokenizer = open_tokenizer(bundle)
    if not set(text) <= tokenizer.known_characters:
        text = "".join(each for each in text if each in tokenizer.known_characters)
    request = TranslationRequest((text,), "en", "de", DecodingOptions.given(options))
    asyncio.run(Pipeline(engine, LIMITS).translate(request))
    [[sent]] = engine.batches
    assert sent.source.tolist() == tokenizer.encode(text, "de", "en").tolist()
