"""Shares of the processor's speed that a decoder step, an encoder run and `kvasir translate` reach.

    python -m benchmarks.roofline [BUNDLE ...] [--data LINES.txt] [--limit 2000]

Times are processor times of one core, the best of several runs. "Products" are the int8 multiply-adds of all matrix
products, as a share of what the core can do with both factors in registers; attention and everything else count as no
work. "Weights" are the bytes of all matrices, as a share of what the core can read from its third-level cache.
"""

import io
import resource
import time
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from benchmarks.machine import describe_machine
from benchmarks.paths import DEFAULT_BUNDLE, SENTENCES
from benchmarks.roofline.peaks import Peaks, measured_peaks
from benchmarks.roofline.work import multiply_adds_per_token
from benchmarks.workloads import read_lines
from bundle.loading import Bundle, load_bundle
from server.cli.offline_options import OfflineOptions
from server.cli.translate.lines import translate_file
from server.engine.runners.onnx import OnnxRunner, OnnxSessions
from server.interface.decoding_options import DecodingOptions

SOURCE_LEN = 20
NUM_STEPS = 24
REPETITIONS = 5
GIGA = 1e9


def main(
    bundles: Annotated[list[Path], typer.Argument(metavar="BUNDLE")] = [DEFAULT_BUNDLE],  # noqa: B006 - Typer copies it
    data: Annotated[Path, typer.Option(help="text, one sentence a line, for kvasir translate")] = SENTENCES,
    limit: Annotated[int, typer.Option(min=1, help="maximum number of lines")] = 2000,
    rows: Annotated[list[int], typer.Option(min=1)] = [1, 8, 32, 64, 128],  # noqa: B006 - the same
) -> None:
    """Print the limits of this processor and the shares that each bundle reaches."""
    machine = describe_machine()
    print(f"{machine.cpu}, load before {machine.load_before}\n")
    peaks = measured_peaks()
    print(f"| one core, {peaks.instructions} | int8 multiply-adds, billions/s |\n|---|---|")
    for place, speed in {"both factors in registers": peaks.registers, **peaks.by_level}.items():
        print(f"| {place} | {speed / GIGA:.0f} |")
    lines = [line.split("\t")[0] for line in read_lines(data, limit)]
    for folder in bundles:
        _print_shares(load_bundle(folder), rows, lines, peaks)


def _print_shares(bundle: Bundle, rows: list[int], lines: list[str], peaks: Peaks) -> None:
    per_source, per_row = multiply_adds_per_token(bundle)
    runner = OnnxRunner(OnnxSessions.open(bundle, 1), max(rows), max(rows) * SOURCE_LEN)
    print(f"\n| {bundle.config.name} | rows | ms | products | weights |\n|---|---|---|---|---|")
    for count in rows:
        encode, step = _best_seconds(runner, count, bundle.config.shapes.vocab_size)
        for name, seconds, work, weights in (
            ("decoder step", step, per_row * count, per_row),
            ("encoder run", encode, per_source * count * SOURCE_LEN, per_source),
        ):
            products, read = work / seconds / peaks.registers, weights / seconds / peaks.by_level["L3 cache"]
            print(f"| {name} | {count} | {seconds * 1e3:.2f} | {products:.0%} | {read:.0%} |")
    for beam_size in (1, 4):
        print(_translation(bundle, lines, beam_size, per_source, per_row, peaks))


def _best_seconds(runner: OnnxRunner, num_rows: int, vocab_size: int) -> tuple[float, float]:
    """Return the processor seconds of an encoder run, and of a decoder step at a length of `NUM_STEPS` or less."""
    random = np.random.default_rng(num_rows)
    sources = [random.integers(3, vocab_size - 1, SOURCE_LEN).astype(np.int32) for _ in range(num_rows)]
    encode, step = [], []
    for _ in range(REPETITIONS):
        start = time.process_time()
        encoded = runner.encode(sources)
        encode.append(time.process_time() - start)
        rows = np.array([runner.cache.begin(row, cross, runner.start_token) for row, cross in enumerate(encoded)])
        start = time.process_time()
        for _ in range(NUM_STEPS):
            candidates = runner.decode(num_rows, 1, with_scores=False)
            runner.cache.previous_tokens[:num_rows] = candidates.tokens[:, 0]
        step.append((time.process_time() - start) / NUM_STEPS)
        runner.cache.release(rows)
    return min(encode), min(step)


def _translation(bundle: Bundle, lines: list[str], beam_size: int, per_source: int, per_row: int, peaks: Peaks) -> str:
    """Return a row for `kvasir translate` with one engine, from the first line to the last."""
    options = OfflineOptions(threads=1, cache_sentences=0, decoding=DecodingOptions(beam_size=beam_size))
    text = io.BytesIO("".join(f"{line}\n" for line in lines).encode())
    usage = resource.getrusage(resource.RUSAGE_SELF)
    stats = translate_file([bundle], text, io.BytesIO(), options)
    spent = resource.getrusage(resource.RUSAGE_SELF)
    processor = spent.ru_utime + spent.ru_stime - usage.ru_utime - usage.ru_stime
    work = per_source * stats.source_tokens + per_row * stats.rows
    share = work / processor / peaks.registers
    name = f"kvasir translate, beam size {beam_size}, {len(lines)} lines, loading included"
    return f"| {name} | {stats.rows_per_step:.0f} | {processor * 1e3:.0f} | {share:.0%} | |"


if __name__ == "__main__":
    typer.run(main)
