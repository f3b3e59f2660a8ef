"""The checkpoint's weights in the formats of the peers, converted once and kept."""

import hashlib
import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.servers.process import ROOT, ServerFailed

_WEIGHTS = (".json", ".safetensors", ".bin", ".spm")


def ctranslate2_model(checkpoint: Path, folder: Path, quantization: str = "int8") -> Path:
    """What CTranslate2's own converter makes of the checkpoint, in `folder`. Raises `ServerFailed`."""
    model = folder / f"ctranslate2-{quantization}-{_digest(checkpoint)}"
    if model.is_dir():
        return model
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder) as draft_folder:
        draft = Path(draft_folder) / "model"
        options = ("--model", str(checkpoint), "--output_dir", str(draft), "--quantization", quantization)
        command = [sys.executable, "-m", "ctranslate2.converters.transformers", *options]
        made = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)  # noqa: S603 - ours
        if made.returncode:
            lines = [line for line in made.stderr.splitlines() if line.strip()]
            raise ServerFailed(f"conversion: {lines[-1] if lines else f'exit code {made.returncode}'}")
        shutil.move(draft, model)
    return model


def argos_packages(checkpoint: Path, folder: Path, source: str, target: str) -> Path:
    """A folder of Argos packages that LibreTranslate loads without a network. Raises `ServerFailed`.

    There are two, because a server that finds fewer wants to download more; nobody asks the one that goes back.
    """
    packages = folder / f"argos-{source}-{target}-{_digest(checkpoint)}"
    if packages.is_dir():
        return packages
    model = ctranslate2_model(checkpoint, folder)
    with tempfile.TemporaryDirectory(dir=folder) as draft_folder:
        draft = Path(draft_folder) / "packages"
        for one, other in ((source, target), (target, source)):
            _write_package(draft / f"{one}_{other}", checkpoint, model, one, other)
        shutil.move(draft, packages)
    return packages


def _write_package(package: Path, checkpoint: Path, model: Path, source: str, target: str) -> None:
    from benchmarks.servers.sentence_ends import write_model

    shutil.copytree(model, package / "model")
    config_file = package / "model" / "config.json"
    # Argos Translate does not end its sources, as Marian's models want it.
    config = json.loads(config_file.read_text("utf-8")) | {"add_source_eos": True}
    config_file.write_text(json.dumps(config), "utf-8")
    # One tokenizer for both sides, and the checkpoint's is one: checked, because nothing else would notice.
    sides = [(checkpoint / f"{side}.spm").read_bytes() for side in ("source", "target")]
    if sides[0] != sides[1]:
        raise ServerFailed("an Argos package has one SentencePiece model, and this checkpoint has two")
    (package / "sentencepiece.model").write_bytes(sides[0])
    write_model(package / "minisbd" / f"{source}.onnx", source)
    metadata = {
        "package_version": "1.0",
        "argos_version": "1.0",
        "from_code": source,
        "from_name": source,
        "to_code": target,
        "to_name": target,
        "links": [],
    }
    (package / "metadata.json").write_text(json.dumps(metadata), "utf-8")


def _digest(checkpoint: Path) -> str:
    """Changes with the files of the checkpoint."""
    digest = hashlib.sha256()
    for path in sorted(checkpoint.iterdir()):
        if path.suffix in _WEIGHTS:
            with path.open("rb") as stream:
                digest.update(hashlib.file_digest(stream, "sha256").digest())
    return digest.hexdigest()[:10]
