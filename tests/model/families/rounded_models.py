"""int8 and float16 bundles of random models against their float32 bundles.

Each precision scores the answers of float32, token by token, so that one different token does not change the rest.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from benchmarks.in_process import InProcessEngine
from bundle import tensors as names
from bundle.loading import Bundle
from bundle.tensors import Precision
from export.exporter import describe_bundle, export_decoder, export_encoder
from export.graphs.parts_layout import export_parts
from model.checkpoints.checkpoint import Checkpoint
from model.checkpoints.weights import build_model
from model.families.registry import read_checkpoint
from server.engine.runners.registry import open_runners
from server.interface.decoding_options import DecodingOptions
from server.interface.request import SentenceParams, TokenIds

# Difference of the mean log-probability of the tokens of an answer: its mean over all answers, and its 95th percentile.
# Random weights are the worst case of int8: none of their channels is small.
BOUNDS: dict[Precision, tuple[float, float]] = {"float32": (1e-5, 1e-4), "float16": (0.01, 0.04), "int8": (0.2, 0.9)}
_MAX_ROWS, _MAX_ENCODER_TOKENS = 32, 512


@dataclass(frozen=True, slots=True)
class RoundingDifference:
    """Differences of scores between a precision and float32."""

    precision: Precision
    mean: float
    percentile_95: float

    @property
    def is_within_bounds(self) -> bool:
        """Whether both figures are within `BOUNDS`."""
        mean, percentile = BOUNDS[self.precision]
        return self.mean <= mean and self.percentile_95 <= percentile

    def __str__(self) -> str:
        mean, percentile = BOUNDS[self.precision]
        return (
            f"{self.precision:<8} scores of float32's answers: mean difference {self.mean:.4f} (at most {mean:g}), "
            f"95th percentile {self.percentile_95:.4f} (at most {percentile:g})"
        )


def export_graphs(checkpoint: Path | Checkpoint, folder: Path, precision: Precision) -> Bundle:
    """Return the graphs of a checkpoint without a tokenizer: enough of a bundle for an engine."""
    read = checkpoint if isinstance(checkpoint, Checkpoint) else read_checkpoint(checkpoint)
    model = build_model(read)
    folder.mkdir()
    if precision == "float16":
        export_parts(model, folder, torch.float16)
    else:
        export_encoder(model, folder / names.ENCODER_FILE, precision)
        export_decoder(model, folder / names.DECODER_FILE, precision)
    return Bundle(folder, describe_bundle(read, folder, precision, folder.name, read.config.pad_token_id))


def open_engine(bundle: Bundle) -> InProcessEngine:
    """Return an engine on the CPU for a bundle of either layout."""
    (runner,) = open_runners(
        bundle, "cpu", replicas=1, threads=1, max_rows=_MAX_ROWS, max_encoder_tokens=_MAX_ENCODER_TOKENS
    )
    return InProcessEngine.over(runner, bundle, _MAX_ENCODER_TOKENS)


def scores(bundle: Bundle, sources: Sequence[TokenIds], targets: Sequence[Sequence[int]]) -> list[float]:
    """Return the mean log-probability of the tokens of each target."""
    special = bundle.config.special_tokens
    params = [
        SentenceParams(
            DecodingOptions(return_scores=True),
            first_token=special.forced_first,
            forced_target=(*target, special.end_of_sequence)[: bundle.config.shapes.max_target_tokens],
        )
        for target in targets
    ]
    return [each.hypotheses[0].score for each in open_engine(bundle).decode_each(sources, params)]


def rounding_difference(
    exact: Bundle, rounded: Bundle, sources: Sequence[TokenIds], targets: Sequence[Sequence[int]]
) -> RoundingDifference:
    """Return how far the scores of a bundle are from those of the float32 bundle."""
    differences = np.abs(np.subtract(scores(exact, sources, targets), scores(rounded, sources, targets)))
    return RoundingDifference(
        rounded.config.precision, float(differences.mean()), float(np.percentile(differences, 95))
    )
