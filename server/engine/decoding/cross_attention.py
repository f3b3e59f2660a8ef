"""Weights of cross-attention, computed beside the graph.

The graph's fused attention does not return its weights. Its queries and keys are available, so the weights are computed
here for the rows that need them, and other rows do not pay for a matrix of probabilities.
"""

import numpy as np
from numpy.typing import NDArray

from server.interface.request import SentenceParams


def attention_weights(queries: NDArray[np.floating], keys: NDArray[np.float32], scale: float) -> NDArray[np.float32]:
    """Return softmax(queries keys^T * scale) of one row, [heads, source_len]; the weights of each head sum to 1.

    `queries` [heads * head_dim], `keys` [heads, source_len, head_dim].
    """
    num_heads, _, head_dim = keys.shape
    per_head = queries.astype(np.float32).reshape(num_heads, head_dim, 1)
    products = (keys @ per_head)[..., 0] * np.float32(scale)
    weights: NDArray[np.float32] = np.exp(products - products.max(axis=-1, keepdims=True))
    weights /= weights.sum(axis=-1, keepdims=True)
    return weights


class CrossAttention:
    """Attention of one request's target tokens to its source, in one decoder layer, averaged over heads."""

    def __init__(self, params: SentenceParams, scale: float) -> None:
        self.layer = params.alignment_layer
        self._heads = list(params.options.alignment_heads)
        self._scale = scale
        self._keys = np.empty((0, 0, 0), np.float32)

    @property
    def source_len(self) -> int:
        """Number of source tokens, known once the keys are."""
        return self._keys.shape[1]

    def set_keys(self, keys: NDArray[np.float32]) -> None:
        """Keep the source's keys [heads, source_len, head_dim] of the layer."""
        self._keys = keys

    def weights(self, queries: NDArray[np.floating]) -> NDArray[np.float32]:
        """Return the mean weights [source_len] of the selected heads for the queries [heads * head_dim] of one row."""
        weights = attention_weights(queries, self._keys, self._scale)
        mean: NDArray[np.float32] = (weights[self._heads] if self._heads else weights).mean(axis=0)
        return mean
