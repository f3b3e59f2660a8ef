"""Which source tokens a target token looks at: the weights of cross-attention, worked out beside the graph.

The graph's fused attention keeps its weights to itself. What it asks with and the keys it asks are there, so the rows
that want the weights get them here, and nobody else pays for a matrix of probabilities.
"""

import numpy as np
from numpy.typing import NDArray


def attention_weights(queries: NDArray[np.floating], keys: NDArray[np.float32], scale: float) -> NDArray[np.float32]:
    """softmax(queries keys^T * scale) of one row: [heads * head_dim] and [heads, source_len, head_dim] to
    [heads, source_len], each head's weights summing to 1.
    """
    num_heads, _, head_dim = keys.shape
    asked = queries.astype(np.float32).reshape(num_heads, head_dim, 1)
    products = (keys @ asked)[..., 0] * np.float32(scale)
    weights: NDArray[np.float32] = np.exp(products - products.max(axis=-1, keepdims=True))
    weights /= weights.sum(axis=-1, keepdims=True)
    return weights


def coverage(attention: NDArray[np.float32]) -> float:
    """How much of the source was left without attention: 0 for nothing, else negative.

    The sum over source tokens of log(min(attention they got from all target tokens, 1)), Wu et al. 2016,
    arXiv:1609.08144, equation 14 without its factor. `attention` [num_tokens, source_len]; the end-of-sequence token
    is one of them, and a source token without any attention counts nothing, as in CTranslate2.
    """
    received = attention.sum(axis=0)
    return float(np.log(np.minimum(received[received > 0], 1)).sum())
