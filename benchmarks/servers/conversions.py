"""The checkpoint's weights in the formats of the other servers, converted once."""

import json
import shutil
import tempfile
from pathlib import Path

from benchmarks.engines.models import Conversions, Model, digest_of
from benchmarks.servers.process import ServerFailed
from benchmarks.workers.process import WorkerFailed


def ctranslate2_model(checkpoint: Path, folder: Path, quantization: str = "int8") -> Path:
    """Return the checkpoint as converted by CTranslate2's own converter. Raises `ServerFailed`."""
    try:
        return Conversions(folder).ctranslate2(Model(checkpoint.name, checkpoint, {}), quantization)
    except WorkerFailed as failure:
        raise ServerFailed(str(failure)) from failure


def argos_packages(checkpoint: Path, folder: Path, source: str, target: str) -> Path:
    """Return a folder of Argos packages that LibreTranslate loads without a network. Raises `ServerFailed`.

    There are two, because a server with fewer tries to download more. The reverse direction is not used.
    """
    packages = folder / f"argos-{source}-{target}-{digest_of(checkpoint)}"
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
    # Argos Translate does not append the end token that Marian's models need.
    config = json.loads(config_file.read_text("utf-8")) | {"add_source_eos": True}
    config_file.write_text(json.dumps(config), "utf-8")
    # A package has one tokenizer for both sides; different ones would go unnoticed.
    sides = [(checkpoint / f"{side}.spm").read_bytes() for side in ("source", "target")]
    if sides[0] != sides[1]:
        raise ServerFailed("the checkpoint must have one SentencePiece model for both sides, as an Argos package")
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
