"""Export of a bundle to a Marian checkpoint: in Hugging Face's layout, or in Marian's own with a recurrent decoder."""

import shutil
from collections.abc import Callable
from pathlib import Path

from bundle.loading import load_bundle
from bundle.manifest import BundleError
from export.checkpoint_checks import ExportError
from export.recovery.reading import read_bundle
from export.staging import require_empty, staged
from export.verification.verify import verify_bundle
from model.checkpoints.checkpoint import Checkpoint
from model.checkpoints.weights import build_model
from model.families.marian.hugging_face import require_marian, write_marian
from model.families.marian.npz_writing import require_marian_npz, write_marian_npz
from model.transformer import Transformer


def export_checkpoint(bundle_folder: Path, folder: Path, report: Callable[[str], None] = lambda _: None) -> None:
    """Write the model of a bundle as a checkpoint to `folder`, which must be empty or missing.

    `report` receives a line for each phase and for everything that the checkpoint lacks. Raises `ExportError`,
    `BundleError` or `CheckpointError`, each a `ValueError`, if the bundle cannot become a checkpoint; then nothing is
    written.
    """
    require_empty(folder)
    if not bundle_folder.is_dir():
        raise BundleError(f"{bundle_folder} is not a folder; only a bundle becomes a checkpoint")
    bundle = load_bundle(bundle_folder)
    report("reading the weights of the bundle")
    checkpoint = read_bundle(bundle_folder)
    try:
        (require_marian_npz if checkpoint.config.has_recurrent_decoder else require_marian)(checkpoint.config)
    except ValueError as error:
        raise ExportError(f"{bundle_folder}: {error}") from error
    model = build_model(checkpoint)
    _report_losses(bundle.config.precision, report)
    if bundle.config.layout == "step":
        report("comparing the checkpoint with the bundle")
        verify_bundle(bundle, model)
    else:
        report("a float16 bundle runs on a GPU only and is not compared with its checkpoint")
    if len(sources := checkpoint.languages.source) > 1:
        report(f"the checkpoint names one source language of {', '.join(sources)}; repeat --source in the next export")
    _write(checkpoint, model, folder, report)


def _report_losses(precision: str, report: Callable[[str], None]) -> None:
    if precision == "int8":
        report("the weights are int8 steps: of the float weights before the first export, their roundings remain")
    elif precision == "float16":
        report("the weights are float16: of the float32 weights before the first export, their roundings remain")


def _write(checkpoint: Checkpoint, model: Transformer, folder: Path, report: Callable[[str], None]) -> None:
    with staged(folder) as staging:
        if checkpoint.config.has_recurrent_decoder:
            write_marian_npz(checkpoint, staging, report)
            if checkpoint.shortlist is not None:
                shutil.copyfile(checkpoint.shortlist, staging / "lex.s2t.bin")
        else:
            source, target = (
                side[0] if side else "" for side in (checkpoint.languages.source, checkpoint.languages.target)
            )
            write_marian(model, staging, source, target)
            for name, path in checkpoint.tokenizer.files.items():
                shutil.copyfile(path, staging / name)
