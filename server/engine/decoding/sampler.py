"""Drawing a token: temperature, the filters, and a random number that depends on nothing but seed, sample and place."""

import numpy as np
from numpy.typing import NDArray

from server.interface.request import Sampling

_HEAD = 256


def draw(logits: NDArray[np.float32], sampling: Sampling, sample: int, place: int) -> int:
    """The token that the `sample`-th sample of a request has at `place`, of `logits` [vocab].

    The random number comes from Philox, a generator that counts: its key is seed and sample, its counter the place
    (Salmon et al. 2011). So an answer can be had again, whatever was decoded beside it.
    """
    probabilities = token_probabilities(logits, sampling)
    key = np.array([sampling.seed, sample], np.uint64)
    number = np.random.Generator(np.random.Philox(key=key, counter=place)).random()
    reached = np.cumsum(probabilities)
    # Rounding may leave the sum a little off 1, and a token that is not possible must not be drawn.
    place_drawn = int(np.searchsorted(reached, number * reached[-1], side="right"))
    return min(place_drawn, int(np.flatnonzero(probabilities)[-1]))


def token_probabilities(logits: NDArray[np.float32], sampling: Sampling) -> NDArray[np.float64]:
    """What each token [vocab] is drawn with, after temperature, `top_k`, `top_p` and `min_p`, in this order."""
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
    """The most likely tokens that reach `top_p`: those before which less than that has been reached.

    Few do as a rule, so the few hundred most likely ones are tried before all are sorted. Of equals the larger id
    counts as more likely, as in Hugging Face.
    """
    head = np.arange(probabilities.size)
    if probabilities.size > _HEAD:
        head = np.sort(np.argpartition(probabilities, -_HEAD)[-_HEAD:])
        likelier = probabilities[head] > probabilities[head].min()  # equals of the last one may be missing
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
