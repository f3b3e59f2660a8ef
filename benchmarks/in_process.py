"""Kvasir's engine without server or threads; it decodes on the calling thread."""

import time
from collections.abc import Sequence

from bundle.loading import Bundle
from bundle.manifest import REQUIRED_TOKENIZER_FILES
from server.engine.decoding.search import SearchLimits
from server.engine.engine import Engine
from server.engine.model_runner import ModelRunner
from server.engine.runners.onnx import OnnxRunner, OnnxSessions
from server.engine.scheduler import Scheduler, SchedulerLimits
from server.interface.request import Completion, Request, SentenceParams, Timings, TokenIds
from server.interface.word_tokens import NO_WORDS, WordTokens
from server.text.tokenizers.registry import word_tokens_of


class InProcessEngine:
    """An engine over a bundle, with `max_rows` rows and `max_encoder_tokens` padded source tokens per encoder run."""

    def __init__(self, bundle: Bundle, threads: int = 1, max_rows: int = 64, max_encoder_tokens: int = 512) -> None:
        runner = OnnxRunner(OnnxSessions.open(bundle, threads), max_rows, max_encoder_tokens)
        self._open(bundle, runner, max_encoder_tokens, _word_tokens(bundle))

    @classmethod
    def over(cls, runner: ModelRunner, bundle: Bundle, max_encoder_tokens: int = 1 << 20) -> "InProcessEngine":
        """Return an engine over any runner of this bundle, which needs no tokenizer."""
        engine = cls.__new__(cls)
        engine._open(bundle, runner, max_encoder_tokens, NO_WORDS)
        return engine

    def _open(self, bundle: Bundle, runner: ModelRunner, max_encoder_tokens: int, words: WordTokens) -> None:
        max_rows = runner.cache.max_rows
        self._scheduler = Scheduler(
            SchedulerLimits(1, max_rows, max_encoder_tokens, max_waiting=2**31, max_rows_ahead=max_rows)
        )
        self._engine = Engine(
            runner,
            self._scheduler,
            SearchLimits.of(bundle.config, max_rows, words),
            time.monotonic,
        )

    def decode(self, sources: Sequence[TokenIds], params: SentenceParams) -> list[Completion]:
        """Decode all sources together, the longest first; return completions in the order of `sources`."""
        return self.decode_each(sources, [params] * len(sources))

    def decode_each(self, sources: Sequence[TokenIds], params: Sequence[SentenceParams]) -> list[Completion]:
        """Decode all sources together, each with its own parameters; return completions in their order."""
        now = time.monotonic()
        requests = [Request(source, each, Timings(now)) for source, each in zip(sources, params, strict=True)]
        self._scheduler.submit(sorted(requests, key=lambda request: -len(request.source)))
        completions: dict[Request, Completion] = {}
        while len(completions) < len(requests):
            for completion in self._engine.step().completions:
                if completion.error is not None:
                    raise completion.error
                completions[completion.request] = completion
        return [completions[request] for request in requests]


def _word_tokens(bundle: Bundle) -> WordTokens:
    """Return the tokens as parts of words; none for a model without a tokenizer, made for measurements."""
    required = REQUIRED_TOKENIZER_FILES[bundle.config.tokenizer.kind]
    has_tokenizer = all(bundle.file(name).exists() for name in required)
    return word_tokens_of(bundle) if has_tokenizer else NO_WORDS
