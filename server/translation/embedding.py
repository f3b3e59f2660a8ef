"""Embeddings of texts: hidden states of the encoder, pooled; batched with all other requests."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from server.interface.engine_client import EngineClient
from server.interface.interruption import checkpoint
from server.interface.request import Completion, Pooling, Request, SentenceParams
from server.text.tokenizers.tokenizer import Tokenizer
from server.translation.deadline import Deadline
from server.translation.limits import TranslationLimits
from server.translation.sentence_encoder import RequestBuilder
from server.translation.source_length import SourceLength
from server.translation.submission import Submission
from server.translation.types import Phases, TranslationRequest
from server.translation.worker_threads import runner_for


@dataclass(frozen=True, slots=True)
class EmbeddingRequest:
    """Texts to embed, each with `prefix` before it. With `truncate`, a text that is too long loses its end."""

    texts: tuple[str, ...]
    pooling: Pooling = "mean"
    normalize: bool = True
    prefix: str = ""
    truncate: bool = False
    timeout_seconds: float | None = None
    bypass_cache: bool = False

    @property
    def num_characters(self) -> int:
        """The number of characters that the model reads."""
        return sum(map(len, self.texts)) + len(self.prefix) * len(self.texts)


@dataclass(frozen=True, slots=True)
class EmbeddingResult:
    """Embeddings [d_model] and numbers of source tokens in the order of the texts; the truncated texts by index."""

    embeddings: list[NDArray[np.float32]]
    num_tokens: list[int]
    truncated: frozenset[int]
    phases: Phases


class Embedder:
    """Embeds texts with one model. `embed` may run many times at once on one event loop."""

    def __init__(
        self, engine: EngineClient, limits: TranslationLimits, tokenizer: Tokenizer, clock: Callable[[], float]
    ) -> None:
        self._engine = engine
        self._limits = limits
        self._tokenizer = tokenizer
        self._clock = clock
        self._length = SourceLength(engine.bundle.config)

    async def embed(self, request: EmbeddingRequest) -> EmbeddingResult:
        """Embed all texts. Raises `InvalidRequest` or `TextTooLong`, and the errors of `EngineClient.generate`."""
        arrived = self._clock()
        sized = TranslationRequest(
            (*request.texts, request.prefix) if request.prefix else request.texts,
            "",
            "",
            timeout_seconds=request.timeout_seconds,
        )
        self._limits.check_size(TranslationRequest(request.texts, "", ""))
        self._limits.check_characters(sized)
        deadline = Deadline.of(self._limits.deadline(sized, arrived), arrived, self._clock)
        run = runner_for(request.num_characters, True, deadline)
        requests, truncated = await run(self._requests, request, deadline)
        submission = Submission(self._engine, deadline, arrived)
        completions = await submission.submit(requests)
        embeddings = await run(_embeddings, [completions[each.id] for each in requests], request.normalize)
        return EmbeddingResult(embeddings, [len(each.source) for each in requests], truncated, submission.phases)

    def _requests(self, request: EmbeddingRequest, deadline: Deadline) -> tuple[list[Request], frozenset[int]]:
        params = SentenceParams(pooling=request.pooling)
        builder = RequestBuilder(self._tokenizer, "", "", deadline.at, cacheable=not request.bypass_cache)
        requests, truncated = [], set()
        for index, text in enumerate(request.texts):
            checkpoint()
            tokens = builder.tokens(request.prefix + text)
            source = self._length.fitted(index, tokens, truncate=request.truncate)
            if len(source) < len(tokens):
                truncated.add(index)
            requests.append(builder.request(source, params))
        return requests, frozenset(truncated)


def _embeddings(completions: Iterable[Completion], normalize: bool) -> list[NDArray[np.float32]]:
    found = []
    for completion in completions:
        embedding = completion.hypotheses[0].embedding
        assert embedding is not None, "a request with `pooling` has an embedding"
        length = np.linalg.norm(embedding) if normalize else 0.0
        found.append(embedding / length if length > 0 else embedding)
    return found
