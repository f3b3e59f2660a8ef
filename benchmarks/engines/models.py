"""Weights converted into every engine's own format, once.

Each conversion runs the engine's own command line in a separate process, so that the measuring process stays small and
imports no framework.
"""

import hashlib
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.paths import ROOT
from benchmarks.progress import log_progress
from benchmarks.workers.process import WorkerFailed


@dataclass(frozen=True, slots=True)
class Model:
    """An optional checkpoint, and given Kvasir bundles of it by precision."""

    name: str
    checkpoint: Path | None
    bundles: dict[str, Path]


class Conversions:
    """Folder of converted models. Every method returns the path of one or raises `WorkerFailed` with the reason."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def kvasir(self, model: Model, precision: str) -> Path:
        """Return a bundle. A changed exporter exports again."""
        if (given := model.bundles.get(precision)) is not None:
            return given
        checkpoint = checkpoint_of(model)
        name = f"{model.name}-kvasir-{precision}-{digest_of(checkpoint, ROOT / 'export', ROOT / 'model')}"
        return self._make(name, ["kvasir", "export", str(checkpoint)], ["--precision", precision, "--name", model.name])

    def ctranslate2(self, model: Model, precision: str) -> Path:
        """Return the output of CTranslate2's converter."""
        checkpoint = checkpoint_of(model)
        return self._make(
            f"{model.name}-ctranslate2-{precision}-{digest_of(checkpoint)}",
            ["ctranslate2.converters.transformers", "--model", str(checkpoint), "--output_dir"],
            ["--quantization", precision],
        )

    def optimum(self, model: Model, python: str) -> Path:
        """Return optimum's export: encoder and decoder graphs in float32."""
        checkpoint = checkpoint_of(model)
        command = ["optimum.exporters.onnx", "--task", "text2text-generation-with-past"]
        name = f"{model.name}-optimum-float32-{digest_of(checkpoint)}"
        return self._make(name, [*command, "--model", str(checkpoint)], [], python)

    def marian(self, model: Model) -> Path:
        """Return the checkpoint in Marian's own format."""
        checkpoint = checkpoint_of(model)
        name = f"{model.name}-marian-{digest_of(checkpoint)}"
        return self._make(name, ["kvasir", "export", str(checkpoint)], ["--to", "marian"])

    def opus_size(self) -> Path:
        """Return a random checkpoint of OPUS-MT's size."""
        return self._make(
            f"opus-size-{digest_of(ROOT / 'benchmarks' / 'engines' / 'endless_checkpoints.py')}",
            ["benchmarks.engines.endless_checkpoints", "opus-size"],
            [],
        )

    def endless(self, model: Model) -> Path:
        """Return a copy of the checkpoint that never ends a sentence."""
        checkpoint = checkpoint_of(model)
        name = f"{model.name}-endless-{digest_of(checkpoint)}"
        return self._make(name, ["benchmarks.engines.endless_checkpoints", "copy", str(checkpoint)], [])

    def _make(self, name: str, before: Sequence[str], after: Sequence[str], python: str = sys.executable) -> Path:
        """Run `python -m BEFORE... FOLDER AFTER...` unless the folder exists."""
        folder = self._folder / name
        if folder.is_dir():
            return folder
        log_progress(f"converting {name}")
        self._folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=self._folder) as temporary:
            draft = Path(temporary) / "made"
            command = [python, "-m", *before, str(draft), *after]
            made = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)  # noqa: S603 - ours
            if made.returncode:
                lines = [line for line in made.stderr.splitlines() if line.strip()]
                raise WorkerFailed(f"conversion: {lines[-1] if lines else f'exit code {made.returncode}'}")
            shutil.move(draft, folder)
        return folder


def checkpoint_of(model: Model) -> Path:
    """Return the folder of the original weights. Raises `WorkerFailed` if there is none."""
    if model.checkpoint is None:
        raise WorkerFailed("the original checkpoint is required; set --checkpoint")
    return model.checkpoint


def digest_of(*paths: Path) -> str:
    """Return a digest of these files and of the Python files, settings and weights in these folders."""
    digest = hashlib.sha256()
    for path in paths:
        suffixes = (".py", ".json", ".safetensors", ".bin", ".spm")
        files = [path] if path.is_file() else sorted(file for file in path.rglob("*") if file.suffix in suffixes)
        for file in files:
            with file.open("rb") as stream:
                digest.update(hashlib.file_digest(stream, "sha256").digest())
    return digest.hexdigest()[:10]
