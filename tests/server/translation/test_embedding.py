import asyncio
import time
from dataclasses import replace

import numpy as np
import pytest

from bundle.loading import Bundle
from server.interface.errors import InvalidRequest, TextTooLong
from server.interface.request import Completion, FinishReason, Hypothesis, Request
from server.text.tokenizers.registry import open_tokenizer
from server.translation.embedding import Embedder, EmbeddingRequest, EmbeddingResult
from server.translation.limits import TranslationLimits
from tests.fakes.echo import MAX_TOKENS, EchoGenerator


class Pooling(EchoGenerator):
    """Embeds a source as its number of tokens beside a zero."""

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


def test_a_long_text_loses_its_end_if_it_may(echo_bundle: Bundle) -> None:
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
