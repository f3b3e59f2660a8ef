"""Sampling of a token: temperature, filters, and a random number that depends on seed, sample and position only."""

import numpy as np
from numpy.typing import NDArray

from server.interface.request import Sampling

_HEAD = 256


def draw(logits: NDArray[np.float32], sampling: Sampling, sample: int, position: int) -> int:
    """Return the token at `position` in the `sample`-th sample of a request, drawn from `logits` [vocab].

    The random number comes from Philox, a counter-based generator (Salmon et al. 2011): its key is seed and sample, its
    counter the position. So an answer is reproducible, whatever was decoded in the same batch.
    """
    probabilities = token_probabilities(logits, sampling)
    key = np.array([sampling.seed, sample], np.uint64)
    number = np.random.Generator(np.random.Philox(key=key, counter=position)).random()
    reached = np.cumsum(probabilities)
    # Rounding may leave the sum a little off 1, and a token of probability 0 must not be drawn.
    token = int(np.searchsorted(reached, number * reached[-1], side="right"))
    return min(token, int(np.flatnonzero(probabilities)[-1]))


def token_probabilities(logits: NDArray[np.float32], sampling: Sampling) -> NDArray[np.float64]:
    """Return the probability of each token [vocab] after temperature, `top_k`, `top_p` and `min_p`, in this order."""
    scores = logits.astype(np.float64) / sampling.temperature
    if 0 < sampling.top_k < scores.size:
        scores[scores < np.partition(scores, -sampling.top_k)[-sampling.top_k]] = -np.inf
    probabilities = _softmax(scores)
    if sampling.top_p < 1.0:
        scores[~_nucleus(probabilities, sampling.top_p)] = -np.inf
        probabilities = _softmax(scores)
    if sampling.min_p > 0.0:
        scores[probabilities < sampling.min_p * probabilities.max()] = -np.inf
        probabilities = _softmax(scores)
    return probabilities


def _nucleus(probabilities: NDArray[np.float64], top_p: float) -> NDArray[np.bool_]:
    """Return which tokens belong to the smallest set of most likely tokens that reaches `top_p`.

    The set is usually small, so a few hundred most likely tokens are tried before all are sorted. Of equal tokens the
    larger id counts as more likely, as in Hugging Face.
    """
    head = np.arange(probabilities.size)
    if probabilities.size > _HEAD:
        head = np.sort(np.argpartition(probabilities, -_HEAD)[-_HEAD:])
        likelier = probabilities[head] > probabilities[head].min()  # tokens equal to the last one may be missing
        if probabilities[head[likelier]].sum() < top_p:
            head = np.arange(probabilities.size)
    descending = head[np.argsort(probabilities[head], kind="stable")[::-1]]
    reached_before = np.cumsum(probabilities[descending]) - probabilities[descending]
    is_kept = np.zeros(probabilities.size, np.bool_)
    is_kept[descending[reached_before < top_p]] = True
    return is_kept


def _softmax(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    weights: NDArray[np.float64] = np.exp(scores - scores.max())
    weights /= weights.sum()
    return weights
