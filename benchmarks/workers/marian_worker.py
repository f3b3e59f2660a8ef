"""Marian, from its Python package: `python -m benchmarks.workers.marian_worker FOLDER ...`.

Marian fixes search and batches when it loads, so a job must request exactly those.
"""

import json
from collections.abc import Sequence
from pathlib import Path

import pymarian
import typer

from benchmarks.workers.protocol import Job, serve


def main(folder: Path, threads: int = 1, beam_size: int = 1, length_penalty: float = 1.0, batch_size: int = 32) -> None:
    """Load model.npz and vocab.yml and answer jobs."""
    vocabulary = folder / "vocab.yml"
    options = {
        "models": folder / "model.npz",
        "vocabs": f"{vocabulary} {vocabulary}",
        "cpu-threads": threads,
        "beam-size": beam_size,
        "normalize": length_penalty,
        "mini-batch": batch_size,
        "maxi-batch": 1000,
        "maxi-batch-sort": "src",
    }
    arguments = " ".join(f"--{name} {setting}" for name, setting in options.items())
    translator = pymarian.Translator(f"{arguments} --quiet --quiet-translation")
    entries = [line.rsplit(": ", 1) for line in vocabulary.read_text("utf-8").splitlines()]
    ids: dict[str, int] = {json.loads(token): int(index) for token, index in entries}
    tokens = {index: token for token, index in ids.items()}

    def decode(job: Job) -> Sequence[Sequence[int]]:
        assert (job.beam_size, job.batch_size) == (beam_size, batch_size), "fixed when the model was loaded"
        # Marian adds the end of the sequence itself, and reads tokens as words if the vocabulary is a plain list.
        lines = [" ".join(tokens[index] for index in source[:-1]) for source in job.sources]
        return [[ids[token] for token in line.split()] for line in translator.translate(lines)]

    serve(decode, ["pymarian"])


if __name__ == "__main__":
    typer.run(main)
