"""Loss of an int8 bundle against a checkpoint whose weights are int8 already."""

import numpy as np
from numpy.typing import NDArray

from export.int8.steps import quantize_in_pairs
from model.checkpoints.checkpoint import Checkpoint


def rounding_of_weights(checkpoint: Checkpoint) -> float:
    """Return the change of embeddings and weights of products in an int8 bundle: its RMS divided by theirs.

    The steps of both differ, because sums of the native operators must fit into 16 bits.
    """
    changes = squares = 0.0
    for name, tensor in checkpoint.weights.items():
        if name.endswith(("_proj.weight", ".embedding.weight")):
            weight: NDArray[np.float32] = tensor.float().numpy().T
            quantized, scales = quantize_in_pairs(weight)
            changes += float(np.square(quantized * scales - weight).sum())
            squares += float(np.square(weight).sum())
    return float(np.sqrt(changes / squares)) if squares else 0.0
