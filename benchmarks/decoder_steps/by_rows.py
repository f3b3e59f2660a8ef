"""Duration of a decoder step by number of rows, at the start and at the end of a generation.

    python -m benchmarks.decoder_steps.by_rows BUNDLE [--threads 1] [--repeat 5]

Every row generates the maximum number of tokens, ignoring the end of sequence, so that the last step attends to a full
cache. Repetitions of the row counts are interleaved; the table has medians over steps and repetitions. Times are
processor times of the calling thread: other load lengthens them less, and those of other threads are missing.
"""

import time
from pathlib import Path
from statistics import median
from typing import Annotated

import numpy as np
import typer

from bundle.loading import load_bundle
from server.engine.runners.onnx import OnnxRunner, OnnxSessions

SOURCE_LEN = 20
WINDOW = 32


def main(
    bundle_folder: Annotated[Path, typer.Argument(metavar="BUNDLE")],
    threads: int = 1,
    rows: Annotated[list[int], typer.Option(help="numbers of rows")] = [1, 8, 32, 64],  # noqa: B006 - Typer copies it
    repeat: int = 5,
) -> None:
    """Print milliseconds per step of the first and last 32 steps of a full-length generation, and their ratio."""
    bundle = load_bundle(bundle_folder)
    runner = OnnxRunner(OnnxSessions.open(bundle, threads), max(rows), 4096)
    num_steps = bundle.config.shapes.max_target_tokens
    first: dict[int, list[float]] = {count: [] for count in rows}
    last: dict[int, list[float]] = {count: [] for count in rows}
    for _ in range(repeat):
        for count in rows:
            seconds = _generate(runner, count, num_steps, bundle.config.shapes.vocab_size)
            first[count].append(median(seconds[:WINDOW]))
            last[count].append(median(seconds[-WINDOW:]))
    print(f"{bundle.config.name} {bundle.config.precision}, {threads} threads, {num_steps} steps, {repeat} repetitions")
    print(f"| rows | first {WINDOW} steps, ms | last {WINDOW} steps, ms | ratio |\n|---|---|---|---|")
    for count in rows:
        begin, end = median(first[count]) * 1e3, median(last[count]) * 1e3
        ratio = median(late / early for early, late in zip(first[count], last[count], strict=True))
        print(f"| {count} | {begin:.2f} | {end:.2f} | {ratio:.2f} |")


def _generate(runner: OnnxRunner, num_rows: int, num_steps: int, vocab_size: int) -> list[float]:
    """Return processor seconds of each step."""
    random = np.random.default_rng(num_rows)
    sources = [random.integers(1, vocab_size - 1, SOURCE_LEN).astype(np.int32) for _ in range(num_rows)]
    rows = np.array(
        [runner.cache.begin(row, cross, runner.start_token) for row, cross in enumerate(runner.encode(sources))]
    )
    seconds = []
    for _ in range(num_steps):
        start = time.thread_time()
        candidates = runner.decode(num_rows, 1, with_scores=False)
        seconds.append(time.thread_time() - start)
        runner.cache.previous_tokens[:num_rows] = candidates.tokens[:, 0]
    runner.cache.release(rows)
    return seconds


if __name__ == "__main__":
    typer.run(main)
