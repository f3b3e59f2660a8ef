"""Protocol of a model runner: encode sources, decode one step; and the outputs of a step."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from server.engine.kv_cache import CrossKeysValues, KVCache, RowIndices
from server.engine.shortlist import TokenLists
from server.interface.request import Pooling, TokenIds


@dataclass(frozen=True, slots=True)
class Candidates:
    """Outputs of a decoder step: the best continuations of every row, best first.

    `tokens` [rows, num_candidates]; `log_probs` [rows, num_candidates] under the softmax over the whole vocabulary,
    NaN in a step without scores. `logits` [logit_rows, vocab] are of the requested rows, in their order, -inf where the
    model suppresses a token; a log-probability is a logit minus the row's `log_normalizer` [rows]. `cross_queries`
    [rows, heads * head_dim], one for each layer, are empty unless requested. `addresses`, if known, are those of
    `tokens` and `log_probs`, which are then C-contiguous.
    """

    tokens: NDArray[np.int64]
    log_probs: NDArray[np.float32]
    log_normalizer: NDArray[np.float32]
    logits: NDArray[np.float32]
    cross_queries: tuple[NDArray[np.floating], ...] = ()
    addresses: tuple[int, int] | None = None


NO_ROWS: RowIndices = np.empty(0, np.intp)


class NotFinite(Exception):
    """A decoder step without usable logits: its weights or its cache are damaged, and every later answer is garbage."""


def check_finite(logits: NDArray[np.floating]) -> None:
    """Raise `NotFinite` if the best candidate of a row [rows, num_candidates] has a logit that is not finite.

    A search would take a token all the same: one that means nothing.
    """
    is_finite = np.isfinite(logits[:, 0])
    if np.count_nonzero(is_finite) != len(is_finite):  # `all` takes twice as long
        rows = np.flatnonzero(~is_finite)
        raise NotFinite(f"the logits of {rows.size} of {len(logits)} rows are not finite")


class Prefill(Protocol):
    """Runs a row over several tokens at once, of a forced beginning."""

    def __call__(self, row: int, tokens: NDArray[np.int32], with_logits: bool, with_queries: bool) -> Candidates:
        """Run a row over `tokens`, as many steps would with each as the previous token, and with the same bits.

        There are at most as many tokens as the cache has rows. Returns candidates with one row for each token, valid
        until the next call: whole rows of logits with their normalizers, and the queries of cross-attention, as far as
        they are requested. Adds the tokens to the row's past; the caller sets its previous token.
        """
        ...


class ModelRunner(Protocol):
    """Runs a model for one engine. The engine assigns rows to requests; the runner computes."""

    cache: KVCache
    start_token: int
    """The `previous_tokens` of a row before its first step."""
    has_decoder: bool
    """False if the model only embeds."""
    attention_scale: float
    """Factor of the products of cross-attention's queries and keys."""

    @property
    def prefill(self) -> Prefill | None:
        """Run of several tokens of a row at once. None if every token needs a step of its own."""
        ...

    @property
    def token_lists(self) -> TokenLists | None:
        """Lists of a bundle with a shortlist. None if rows always have all tokens."""
        ...

    def encode(self, sources: Sequence[TokenIds]) -> list[CrossKeysValues]:
        """Return the encoded sentences, in their order, for `KVCache.write_source`."""
        ...

    def embed(self, sources: Sequence[TokenIds], poolings: Sequence[Pooling]) -> list[NDArray[np.float32]]:
        """Return the embedding [d_model] of each source. Only for bundles whose encoder returns hidden states."""
        ...

    def decode(
        self,
        num_rows: int,
        num_candidates: int,
        with_scores: bool,
        logit_rows: RowIndices = NO_ROWS,
        with_queries: bool = False,
    ) -> Candidates:
        """Decode one token in each of the first `num_rows` rows. The arrays are valid until the next call.

        Whole rows of logits are returned for `logit_rows` only, and the queries of cross-attention on request. Reads
        `previous_tokens`, `past_lengths` and `source_lengths` of the cache, and adds one position to the past.
        """
        ...


@dataclass(slots=True)
class StepOutputs:
    """Outputs of the runner for one step. `logit_rows`, sorted, are the rows that `candidates.logits` has."""

    candidates: Candidates
    logit_rows: RowIndices


@dataclass(slots=True)
class RequestRows:
    """Outputs of one step for the beams of one request.

    `tokens` and `log_probs` [beams, num_candidates] are the candidates of the graph, `log_normalizer` [beams].
    `step_logits` [logit_rows, vocab] are those of the whole step, of which `logit_places` [beams] belong to this
    request, and `queries` [beams, heads * head_dim] those of the alignment layer; None unless requested.
    """

    tokens: NDArray[np.int64]
    log_probs: NDArray[np.float32]
    log_normalizer: NDArray[np.float32]
    step_logits: NDArray[np.float32] | None
    logit_places: RowIndices
    queries: NDArray[np.floating] | None

    @property
    def logits(self) -> NDArray[np.float32] | None:
        """A copy of whole rows of logits [beams, vocab]; None unless requested."""
        return None if self.step_logits is None else self.step_logits[self.logit_places]

    def log_probs_of(self, tokens: NDArray[np.int64]) -> NDArray[np.float32]:
        """Return the log-probabilities [beams, tokens] of some tokens of the vocabulary. Logits were requested."""
        assert self.step_logits is not None
        logits: NDArray[np.float32] = self.step_logits[self.logit_places[:, None], tokens]
        return logits - self.log_normalizer[:, None]
