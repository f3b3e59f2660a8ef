"""What training makes small."""

from torch import Tensor
from torch.nn import functional


def label_loss(logits: Tensor, labels: Tensor, padding: int, smoothing: float) -> Tensor:
    """Cross-entropy of `labels` [rows, target_len] under `logits` [rows, target_len, vocab], summed over all labels
    that are not `padding`.

    With label smoothing (Szegedy et al. 2016, arXiv:1512.00567): the label has the probability 1 - smoothing, and all
    tokens together, the label among them, the rest. In float32, whatever the logits are.
    """
    return functional.cross_entropy(
        logits.flatten(0, 1).float(),
        labels.flatten(),
        ignore_index=padding,
        label_smoothing=smoothing,
        reduction="sum",
    )
