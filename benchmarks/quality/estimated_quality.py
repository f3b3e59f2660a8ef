"""Estimated quality compared with chrF, on lines that did not calibrate: ROC, calibration error, and a plot of both.

    python -m benchmarks.quality.estimated_quality BUNDLE --data FILE.tsv --data ... [--swap-columns] [--beam-size 4]
        [--target de] [--plot FILE.png]

Each line of a file is a source, a tab and a reference; --swap-columns exchanges them. Lines with even numbers are
measured: `kvasir calibrate` gets the others. A translation is good if its chrF is 40 or more. The calibration error is
the mean of |estimated - actual| over ten bins of equal width, weighted by their lines. Exits with 1 if a file has an
area under the ROC curve below 0.75, or a calibration error above 0.07.
"""

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated

import matplotlib as mpl
import numpy as np
import typer
from matplotlib.figure import Figure
from numpy.typing import NDArray
from sacrebleu.metrics import CHRF
from sklearn.metrics import roc_auc_score, roc_curve

from benchmarks.workloads import read_lines, target_language
from bundle.loading import load_bundle
from server.interface.decoding_options import DecodingOptions
from server.translation.limits import TranslationLimits
from server.translation.pipeline import Pipeline
from server.translation.types import Translation, TranslationRequest
from server.workers.pool import EnginePool, PoolOptions

mpl.use("Agg")  # files, no window

_GOOD = 40.0
_BINS = 10
_MIN_AREA, _MAX_ERROR = 0.75, 0.07
_ENTROPY_TOKENS = 5
_INK, _MUTED = "#1f4e79", "#9aa5b1"

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]


def _is_good(translations: Sequence[Translation], references: Sequence[str]) -> Flags:
    chrf = CHRF()
    pairs = zip(translations, references, strict=True)
    return np.array([chrf.sentence_score(done.text, [reference]).score >= _GOOD for done, reference in pairs])


def calibration_error(estimated: Floats, is_good: Flags) -> float:
    """Return the expected calibration error, 0 to 1."""
    return float(sum(share * abs(mean - actual) for mean, actual, share in _bins(estimated, is_good)))


def _bins(estimated: Floats, is_good: Flags) -> list[tuple[float, float, float]]:
    """Return the mean estimate, the share of good lines and the share of all lines of each bin that has any."""
    bins = np.minimum((estimated * _BINS).astype(int), _BINS - 1)
    return [
        (float(estimated[chosen].mean()), float(is_good[chosen].mean()), float(chosen.mean()))
        for index in range(_BINS)
        if (chosen := bins == index).any()
    ]


def _draw(measured: Mapping[str, tuple[Floats, Flags]], file: Path) -> None:
    """Draw the share of good translations over the estimated quality, and the ROC curves."""
    figure = Figure(figsize=(8, 4), layout="constrained")
    reliability, roc = figure.subplots(1, 2)
    for (name, (estimated, is_good)), style in zip(measured.items(), ("-", "--", ":", "-."), strict=False):
        points = np.array(_bins(estimated, is_good))
        reliability.plot(points[:, 0], points[:, 1], style, color=_INK, marker="o", markersize=3, label=name)
        false_alarms, found, _ = roc_curve(is_good, estimated)
        roc.plot(false_alarms, found, style, color=_INK, label=f"{name}: {roc_auc_score(is_good, estimated):.2f}")
    for axes, labels in (
        (reliability, ("estimated quality", f"share with chrF of {_GOOD:g} or more")),
        (roc, ("false positive rate", "true positive rate")),
    ):
        axes.plot([0, 1], [0, 1], color=_MUTED, linewidth=1)
        axes.set(xlabel=labels[0], ylabel=labels[1], xlim=(0, 1), ylim=(0, 1), aspect="equal")
        axes.spines[["top", "right"]].set_visible(False)
        axes.legend(frameon=False, fontsize=8)
    figure.savefig(file, dpi=80)


def main(
    bundle_folder: Annotated[Path, typer.Argument(metavar="BUNDLE")],
    data: Annotated[list[Path], typer.Option(metavar="FILE.tsv")],
    swap_columns: Annotated[bool, typer.Option("--swap-columns", help="read sources from the second column")] = False,
    beam_size: int = 4,
    target: Annotated[str | None, typer.Option(help="target language, for a bundle with several")] = None,
    plot: Annotated[Path | None, typer.Option(metavar="FILE.png", help="picture to write")] = None,
) -> None:
    """Print the figures of each file and of all lines, as a Markdown table."""
    bundle = load_bundle(bundle_folder)
    source, language = bundle.config.source_languages[0], target_language(bundle, target)
    files = {}
    for file in data:
        lines = [line.split("\t")[:2] for line in read_lines(file, None)]
        files[file.stem] = [pair[::-1] if swap_columns else pair for pair in lines]
    pool = EnginePool.open(bundle, PoolOptions(replicas=1, threads_per_replica=1, max_waiting=1 << 20))
    measured: dict[str, tuple[Floats, Flags]] = {}
    try:
        pipeline = Pipeline(pool, TranslationLimits())
        options = DecodingOptions(beam_size=beam_size, return_quality=True)
        for name, pairs in files.items():
            texts, references = zip(*pairs[1::2], strict=True)
            request = TranslationRequest(texts, source, language, options)
            done = asyncio.run(pipeline.translate(request)).translations
            has_quality = np.array([each.quality is not None for each in done])
            estimated = np.array([each.quality or 0.0 for each in done])
            measured[name] = (estimated[has_quality], _is_good(done, references)[has_quality])
        if len(files) > 1:
            parts = list(measured.values())
            measured["all"] = (np.concatenate([part[0] for part in parts]), np.concatenate([part[1] for part in parts]))
        print("| lines | number | good | mean quality | area under the ROC curve | calibration error |")
        print("|---|---|---|---|---|---|")
        is_met = True
        for name, (estimated, is_good) in measured.items():
            area, error = roc_auc_score(is_good, estimated), calibration_error(estimated, is_good)
            is_met = is_met and area >= _MIN_AREA and error <= _MAX_ERROR
            shares = f"{100 * is_good.mean():.1f} % | {estimated.mean():.2f}"
            print(f"| {name} | {len(is_good)} | {shares} | {area:.3f} | {error:.3f} |")
    finally:
        pool.close()
    if plot is not None:
        _draw(measured, plot)
    raise typer.Exit(0 if is_met else 1)


if __name__ == "__main__":
    typer.run(main)
