"""Parallel text so simple that a model of a few thousand weights learns it in seconds: the words in reverse."""

import random
from collections.abc import Callable
from pathlib import Path

from model.training.settings import DataFile, TrainingSettings
from model.training.trainer import Progress, Trainer

WORDS = ("ant", "bee", "cat", "dog", "elk", "fox", "gnu", "hen")


def write_reversed(path: Path, num_pairs: int, seed: int, longest: int) -> Path:
    """One pair a line: words, TAB, the same words in reverse order."""
    choose = random.Random(seed)
    lines = []
    for _ in range(num_pairs):
        words = choose.choices(WORDS, k=choose.randint(1, longest))
        lines.append(f"{' '.join(words)}\t{' '.join(reversed(words))}\n")
    path.write_text("".join(lines), "utf-8")
    return path


def toy_settings(pairs: Path, /, **changed: object) -> TrainingSettings:
    """Settings of a run that takes a second."""
    settings: dict[str, object] = {
        "data": (DataFile(str(pairs)),),
        "source_language": "en",
        "target_language": "de",
        "vocab_size": 300,
        "d_model": 16,
        "num_heads": 2,
        "feed_forward_width": 32,
        "num_encoder_layers": 1,
        "num_decoder_layers": 1,
        "max_sentence_tokens": 64,
        "batch_tokens": 200,
        "max_steps": 12,
        "warmup_steps": 4,
        "log_every": 3,
        "snapshot_every": 3,
        "validate_every": 3,
        "averaged_snapshots": 2,
    }
    return TrainingSettings(**(settings | changed))  # type: ignore[arg-type]


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
