"""The training loss."""

from torch import Tensor
from torch.nn import functional


def label_loss(logits: Tensor, labels: Tensor, padding: int, smoothing: float) -> Tensor:
    """Return the cross-entropy of `labels` [rows, target_len] under `logits` [rows, target_len, vocab].

    It is the sum over all labels except `padding`, in float32. With label smoothing (Szegedy et al. 2016,
    arXiv:1512.00567), the label has the probability 1 - smoothing, and all tokens, the label included, share the rest.
    """
    return functional.cross_entropy(
        logits.flatten(0, 1).float(),
        labels.flatten(),
        ignore_index=padding,
        label_smoothing=smoothing,
        reduction="sum",
    )


def label_losses(logits: Tensor, labels: Tensor, padding: int) -> Tensor:
    """Return the cross-entropy of each label [rows, target_len] without smoothing, 0 at `padding`, in float32."""
    flat = functional.cross_entropy(
        logits.flatten(0, 1).float(), labels.flatten(), ignore_index=padding, reduction="none"
    )
    return flat.view_as(labels)
