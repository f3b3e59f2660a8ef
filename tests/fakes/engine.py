"""Runner over a table of next-token probabilities, with the interface of a real one.

`FakeRunner` keeps no state of a request outside the cache: it reads the source from the row's cross cache, and the
prefix from its self cache. So rows that are moved, shared or freed wrongly change answers.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bundle.loading import Bundle
from bundle.manifest import BundleConfig, Provenance, Shapes, SpecialTokens
from server.engine.decoding.search import SearchLimits
from server.engine.engine import Engine, EngineObserver, StreamUpdate
from server.engine.kv_cache import CacheShapes, CrossKeysValues, KVCache, RowIndices
from server.engine.model_runner import NO_ROWS, Candidates, ModelRunner, Prefill
from server.engine.scheduler import Scheduler, SchedulerLimits
from server.interface.request import Completion, Pooling, Request, SentenceParams, Timings, TokenIds
from server.interface.word_tokens import NO_WORDS, WordTokens
from tests.fakes.sentence_params import sentence_params

END = 0
START = 1000  # in no table's vocabulary, so that it can only come from the cache

Tokens = tuple[int, ...]
LogProbs = NDArray[np.float32]  # [vocab]
Table = Callable[[Tokens, Tokens], LogProbs]  # a source and a prefix without the start token to what may follow

# What the second of the two planes of a fake cache has more than the first.
_VALUE_OFFSET = 0.5


def spelled_out(probabilities: Mapping[Tokens, Sequence[float]]) -> Table:
    """Return a table equal for all sources: probabilities of all tokens after each prefix; missing prefixes end."""
    width = len(next(iter(probabilities.values())))
    only_the_end = [1.0] + [0.0] * (width - 1)

    def table(source: Tokens, prefix: Tokens) -> LogProbs:
        with np.errstate(divide="ignore"):
            log_probs: LogProbs = np.log(np.array(probabilities.get(prefix, only_the_end))).astype(np.float32)
        return log_probs

    return table


def random_table(seed: int, vocab: int, end_bias: float = 0.0) -> Table:
    """Return random log-probabilities for every source and prefix; `end_bias` is added to the logit of the end."""

    @cache
    def table(source: Tokens, prefix: Tokens) -> LogProbs:
        logits = np.random.default_rng([seed, *source, START, *prefix]).normal(scale=1.5, size=vocab)
        logits[END] += end_bias
        log_probs: LogProbs = (logits - np.log(np.exp(logits).sum())).astype(np.float32)
        return log_probs

    return table


def table_with_ties(seed: int, vocab: int) -> Table:
    """Return scores that are sums of quarters, exact in float32, so that many hypotheses are equal."""

    @cache
    def table(source: Tokens, prefix: Tokens) -> LogProbs:
        drawn = np.random.default_rng([seed, *source, START, *prefix]).integers(1, 5, vocab)
        return (-drawn / 4).astype(np.float32)

    return table


def copying_table(vocab: int) -> Table:
    """Return a table whose answer is almost surely the source; no beam ends before the source does."""

    def table(source: Tokens, prefix: Tokens) -> LogProbs:
        is_over = len(prefix) >= len(source) - 1
        log_probs = (-(20.0 if is_over else 8.0) - np.arange(vocab) / 4).astype(np.float32)
        log_probs[END] = -50.0
        log_probs[END if is_over else source[len(prefix)]] = -0.125
        return log_probs

    return table


def log_normalizer(source: Tokens, prefix: Tokens) -> float:
    """Return the difference of a fake row's logits and log-probabilities: halves, exact in float32."""
    return (sum(source) + sum(prefix)) % 5 / 2


def cross_query(prefix: Tokens) -> float:
    """Return the only number in a fake row's query of cross-attention; its keys are the tokens of its source."""
    return (sum(prefix) % 7 - 3) / 4


class FakeRunner:
    """Runner over a table. `encoded` [runs][sources], `decoded` [runs] (rows of each) and `num_logit_rows` [runs] are
    records of its calls.

    The next run raises `encode_error` or `decode_error`, if set.
    """

    start_token = START
    has_decoder = True
    token_lists = None
    attention_scale = 0.5

    def __init__(
        self,
        table: Table,
        max_rows: int = 16,
        max_source_tokens: int = 64,
        max_target_tokens: int = 64,
        *,
        prefills: bool = False,
    ) -> None:
        self._table = table
        self.prefill: Prefill | None = self._prefill if prefills else None
        self.cache = KVCache(CacheShapes(1, 1, 1, max_source_tokens, max_target_tokens), max_rows)
        # No answer may depend on memory that was not written.
        for memory in (self.cache.self_cache, self.cache.cross_cache, self.cache.last_cross):
            memory.fill(np.nan)
        self.encoded: list[list[Tokens]] = []
        self.decoded: list[int] = []
        self.num_logit_rows: list[int] = []
        self.encode_error: Exception | None = None
        self.decode_error: Exception | None = None
        self._last_answer: Candidates | None = None

    def embed(self, sources: Sequence[TokenIds], poolings: Sequence[Pooling]) -> list[NDArray[np.float32]]:
        """Return the number and the sum of the ids of each source."""
        self.encoded.append([tuple(source.tolist()) for source in sources])
        return [np.array([len(source), source.sum()], np.float32) for source in sources]

    def encode(self, sources: Sequence[TokenIds]) -> list[CrossKeysValues]:
        """Return the ids of each source as its keys."""
        if self.encode_error:
            error, self.encode_error = self.encode_error, None
            raise error
        self.encoded.append([tuple(source.tolist()) for source in sources])
        keys = [source.astype(np.float32).reshape(1, 1, -1, 1) for source in sources]
        return [np.concatenate([each, each + _VALUE_OFFSET]) for each in keys]

    def decode(
        self,
        num_rows: int,
        num_candidates: int,
        with_scores: bool,
        logit_rows: RowIndices = NO_ROWS,
        with_queries: bool = False,
    ) -> Candidates:
        """Append each row's previous token to its past and look up its continuations."""
        self.before_step()
        if self.decode_error:
            error, self.decode_error = self.decode_error, None
            raise error
        self.decoded.append(num_rows)
        self.num_logit_rows.append(logit_rows.size)
        if self._last_answer is not None:  # its arrays were valid until now
            self._last_answer.tokens.fill(-1)
            self._last_answer.log_probs.fill(np.nan)
            self._last_answer.logits.fill(np.nan)
        read = [self._read(row) for row in range(num_rows)]
        log_probs = np.stack([self._table(*each) for each in read])
        tokens = np.argsort(-log_probs, axis=1, kind="stable")[:, :num_candidates]
        scores = np.take_along_axis(log_probs, tokens, axis=1)
        normalizer = np.array([log_normalizer(*each) for each in read], np.float32)
        queries = np.array([[cross_query(prefix)] for _, prefix in read], np.float32)
        self.cache.past_lengths[:num_rows] += 1
        self._last_answer = Candidates(
            tokens,
            scores if with_scores else np.full_like(scores, np.nan),
            normalizer if with_scores else np.full_like(normalizer, np.nan),
            log_probs[logit_rows] + normalizer[logit_rows, None],
            (queries,) if with_queries else (),
        )
        return self._last_answer

    def _prefill(self, row: int, tokens: NDArray[np.int32], with_logits: bool, with_queries: bool) -> Candidates:
        """Look up the continuations after each token; those of rows without a request are not read."""
        assert tokens[0] == self.cache.previous_tokens[row] or self.cache.past_lengths[row]
        read = []
        for token in tokens.tolist():
            self.cache.previous_tokens[row] = token
            read.append(self._read(row))
            self.cache.past_lengths[row] += 1
        normalizer = np.array([log_normalizer(*each) for each in read], np.float32)
        logits = np.stack([self._table(*each) for each in read]) + normalizer[:, None]
        queries = np.array([[cross_query(prefix)] for _, prefix in read], np.float32)
        return Candidates(
            np.empty((len(read), 0), np.int64),
            np.empty((len(read), 0), np.float32),
            normalizer if with_logits else np.full_like(normalizer, np.nan),
            logits if with_logits else logits[:0],
            (queries,) if with_queries else (),
        )

    def before_step(self) -> None:
        """Do nothing; subclasses override it to act before every step."""

    def _read(self, row: int) -> tuple[Tokens, Tokens]:
        cache = self.cache
        past, source_len = int(cache.past_lengths[row]), int(cache.source_lengths[row])
        cache.self_cache[0, row, 0, past, 0] = cache.previous_tokens[row]
        cache.self_cache[1, row, 0, past, 0] = cache.previous_tokens[row] + _VALUE_OFFSET
        keys, values = cache.self_cache[:, row, 0, : past + 1, 0]
        source_keys, source_values = cache.cross_cache[:, row, 0, :source_len, 0]
        assert np.array_equal(values, keys + _VALUE_OFFSET), "keys and values of different rows"
        assert np.array_equal(source_values, source_keys + _VALUE_OFFSET), "cross keys and values of different rows"
        assert np.array_equal(cache.last_cross[:, row, 0, 0], cache.cross_cache[:, row, 0, source_len - 1, 0])
        assert keys[0] == START
        return tuple(source_keys.astype(int).tolist()), tuple(keys[1:].astype(int).tolist())


class FakeClock:
    """Clock that moves only when a test sets it."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        """The time."""
        return self.now


def request(source: Sequence[int], params: SentenceParams | None = None, deadline: float | None = None) -> Request:
    """Return a request that arrived at the start of the fake clock."""
    return Request(np.array(source, np.int32), params or sentence_params(max_new_tokens=16), Timings(100.0), deadline)


class DrivenEngine:
    """Engine over any runner, with its scheduler, and a test in place of its thread."""

    def __init__(
        self,
        runner: ModelRunner,
        end_token: int,
        forced_end: bool = False,
        observer: EngineObserver | None = None,
        words: WordTokens = NO_WORDS,
    ) -> None:
        self.runner = runner
        self.clock = FakeClock()
        max_rows, max_target_tokens = runner.cache.max_rows, runner.cache.shapes.max_target_tokens
        self.scheduler = Scheduler(SchedulerLimits(1, max_rows, 10_000, 10_000, max_rows_ahead=max_rows))
        limits = SearchLimits(max_rows, max_target_tokens, end_token, forced_end, words)
        self.engine = Engine(runner, self.scheduler, limits, self.clock, observer=observer)
        self.stream_updates: list[StreamUpdate] = []

    def step(self) -> list[Completion]:
        """Run one step and advance the clock by a second; `stream_updates` keeps what became final in it."""
        result = self.engine.step()
        self.stream_updates = result.stream_updates
        self.clock.now += 1
        return result.completions

    def run(self, requests: Sequence[Request]) -> list[Completion]:
        """Submit requests, step until all are complete, and return completions in their order."""
        self.scheduler.submit(requests)
        done: dict[Request, Completion] = {}
        while not all(each in done for each in requests):
            done.update((completion.request, completion) for completion in self.step())
        return [done[each] for each in requests]


class FakeEngine(DrivenEngine):
    """Engine over a table."""

    def __init__(
        self,
        table: Table,
        max_rows: int = 16,
        forced_end: bool = False,
        observer: EngineObserver | None = None,
        words: WordTokens = NO_WORDS,
        *,
        prefills: bool = False,
    ) -> None:
        self.runner: FakeRunner
        super().__init__(FakeRunner(table, max_rows, prefills=prefills), END, forced_end, observer, words)


def fake_bundle(vocab: int, max_target_tokens: int = 64) -> Bundle:
    """Return a bundle without files, for a table of `vocab` tokens."""
    return Bundle(
        Path("no-such-bundle"),
        BundleConfig(
            name="fake",
            source_languages=("en",),
            target_languages=("de",),
            precision="float32",
            shapes=Shapes(
                vocab_size=vocab,
                target_vocab_size=vocab,
                d_model=1,
                num_encoder_layers=1,
                num_decoder_layers=1,
                num_heads=1,
                head_dim=1,
                max_source_tokens=64,
                max_target_tokens=max_target_tokens,
            ),
            attention_scale=1.0,
            special_tokens=SpecialTokens(end_of_sequence=END, padding=1, decoder_start=START, unknown=2),
            encoder_inputs=(),
            encoder_outputs=(),
            decoder_inputs=(),
            decoder_outputs=(),
            provenance=Provenance(
                source="a table", family="fake", weights_sha256="", num_parameters=1, exporter="none"
            ),
            files={},
        ),
    )
