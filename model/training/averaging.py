"""Averaging of snapshots: better than each of them while the learning rate is above 0."""

from collections.abc import Sequence
from pathlib import Path

import torch
from safetensors.torch import load_file
from torch import Tensor


def average_weights(snapshots: Sequence[Path]) -> dict[str, Tensor]:
    """Return each weight's mean over the snapshots (Vaswani et al. 2017, section 6.1), float32, summed in float64."""
    if not snapshots:
        raise ValueError("there are no snapshots to average")
    sums: dict[str, Tensor] = {}
    for path in snapshots:
        for name, tensor in load_file(path).items():
            wide = tensor.to(torch.float64)
            sums[name] = sums[name] + wide if name in sums else wide
    return {name: (total / len(snapshots)).to(torch.float32) for name, total in sums.items()}
