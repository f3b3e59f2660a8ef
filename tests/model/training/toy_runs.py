"""Trainings of a few seconds, and what they left."""

from collections.abc import Callable
from pathlib import Path

from model.training.settings import TrainingSettings
from model.training.trainer import Progress, Trainer


def no_report(_: Progress) -> None:
    """Ignore the progress."""


def train(settings: TrainingSettings, folder: Path, is_stopped: Callable[[], bool] = lambda: False) -> Trainer:
    """Run it to its end, or until it is stopped."""
    trainer = Trainer(settings, folder)
    trainer.run(no_report, is_stopped)
    return trainer


def without_times(trainer: Trainer) -> list[dict[str, float]]:
    """The log, but for what no two runs have in common."""
    entries = trainer.run_folder.log()
    times = {"time", "seconds", "labels_per_second"}
    return [{name: entry[name] for name in entry if name not in times} for entry in entries]


def stop_after(calls: int) -> Callable[[], bool]:
    """Says so when it has been asked so often."""
    left = iter(range(calls))
    return lambda: next(left, None) is None
