"""Filter of parallel text: pairs that a model finds least probable for their length are dropped.

The loss of short texts varies most, so pairs are compared with pairs of similar length only.
"""

from collections.abc import Callable, Sequence

import numpy as np
import torch
from numpy.typing import NDArray

from model.training.corpus import Corpus, token_batches
from model.training.validation import label_losses
from model.transformer import Transformer

Losses = NDArray[np.float64]

_BATCH_TOKENS = 8192


@torch.inference_mode()
def pair_losses(
    model: Transformer, corpus: Corpus, device: torch.device, report: Callable[[int], None] = lambda _: None
) -> Losses:
    """Return the mean loss of a target token for each pair. `report` receives the number of pairs after each batch."""
    losses = np.zeros(len(corpus.targets))
    everything = np.arange(len(losses))
    model.eval()
    num_done = 0
    for indices in token_batches(everything, corpus.sources.lengths, corpus.targets.lengths, _BATCH_TOKENS, 0, 0):
        batch = corpus.batch(indices, device)
        logits = model(batch.source, batch.source_mask, batch.target_inputs)
        sums = label_losses(logits, batch.labels, corpus.padding).sum(dim=1)
        losses[indices] = sums.double().cpu().numpy() / corpus.targets.lengths[indices]
        num_done += len(indices)
        report(num_done)
    return losses


def kept_pairs(losses: Losses, lengths: Sequence[int] | NDArray[np.int64], dropped_share: float) -> NDArray[np.bool_]:
    """Return which pairs to keep: all but the worst share among those whose lengths are within a factor of two."""
    kept = np.ones(len(losses), dtype=bool)
    classes = np.log2(np.maximum(np.asarray(lengths), 1)).astype(int)
    for each in np.unique(classes):
        members = np.flatnonzero(classes == each)
        num_dropped = round(dropped_share * len(members))
        if num_dropped:
            worst = members[np.argsort(losses[members], kind="stable")[-num_dropped:]]
            kept[worst] = False
    return kept
