"""Plot of a run's log."""

from collections.abc import Sequence
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from model.training.run_folder import LogEntry


def draw_losses(log: Sequence[LogEntry], path: Path) -> None:
    """Write a PNG of training and validation loss over the updates, and BLEU on a second axis."""
    figure = Figure(figsize=(8, 4.5), layout="constrained")
    axes = figure.add_subplot()
    _draw(axes, log, "loss", "training, smoothed labels", "#9aa5b1")
    _draw(axes, log, "validation_loss", "validation", "#1f4e79")
    axes.set(xlabel="updates", ylabel="loss of a token")
    axes.grid(alpha=0.3)
    right = axes.twinx()
    _draw(right, log, "validation_bleu", "BLEU", "#b5651d")
    right.set_ylabel("BLEU")
    figure.legend(loc="outside upper center", ncols=3, frameon=False)
    figure.savefig(path, dpi=120)


def _draw(axes: Axes, log: Sequence[LogEntry], name: str, label: str, colour: str) -> None:
    entries = [entry for entry in log if name in entry]
    axes.plot([entry["step"] for entry in entries], [entry[name] for entry in entries], label=label, color=colour)
