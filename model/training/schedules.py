"""Learning rate schedules."""

import math

from model.training.settings import Schedule


def learning_rate(schedule: Schedule, step: int, highest: float, warmup_steps: int, max_steps: int) -> float:
    """Return the learning rate of update number `step`, counted from 1.

    It rises linearly to `highest` at `warmup_steps`. After that, "inverse-square-root" is
    highest * sqrt(warmup_steps / step) (Vaswani et al. 2017, section 5.3, scaled to its peak), and "cosine" falls along
    half a wave to 0 at `max_steps` (Loshchilov and Hutter 2017, arXiv:1608.03983, without restarts).
    """
    if step < warmup_steps:
        return highest * step / warmup_steps
    if schedule == "inverse-square-root":
        return highest * math.sqrt(max(warmup_steps, 1) / step)
    progress = min((step - warmup_steps) / max(max_steps - warmup_steps, 1), 1.0)
    return highest * 0.5 * (1.0 + math.cos(math.pi * progress))
