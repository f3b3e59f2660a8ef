"""Files of a checkpoint in Hugging Face's layout, from a folder or the hub: settings and weights."""

import atexit
import hashlib
import json
import pickle
import struct
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor

from model.checkpoints.archives import extract, is_archive, require_files
from model.checkpoints.checkpoint import CheckpointError
from model.checkpoints.hub import download_model
from model.temporary_folders import temporary_folder

CONFIG_FILE = "config.json"
# In order of preference. safetensors comes first: it cannot contain code.
WEIGHT_FILES = ("model.safetensors", "pytorch_model.bin")
INDEX_SUFFIX = ".index.json"


# `torch.load` raises all of these for damaged files.
UNREADABLE = (
    *(OSError, EOFError, RuntimeError, ValueError, LookupError, TypeError, AttributeError, AssertionError, MemoryError),
    *(struct.error, pickle.UnpicklingError, SafetensorError, zipfile.BadZipFile),
)


@dataclass(frozen=True, slots=True)
class CheckpointFolder:
    """A checkpoint on disk. `name` is its origin without a local path; `file` is the chosen one of several files."""

    path: Path
    name: str
    file: str | None = None


@dataclass(frozen=True, slots=True)
class Weights:
    """Tensors by their names in the checkpoint, and the SHA-256 of the files in the order of reading."""

    tensors: dict[str, Tensor]
    sha256: str


class Settings:
    """Settings from a JSON object. Access checks the type; `CheckpointError` names file and setting."""

    def __init__(self, file_name: str, values: dict[str, object]) -> None:
        self.file_name = file_name
        self.values = values

    def integer(self, name: str, default: int | None = None) -> int:
        """Return a whole number; `default` if the setting is absent or null. Without a default it is required."""
        value = self.values.get(name)
        if value is None and default is not None:
            return default
        if isinstance(value, bool) or not isinstance(value, int):
            self.reject(name, "must be a whole number")
        return value

    def optional_integer(self, name: str) -> int | None:
        """Return a whole number, or None if the setting is absent or null."""
        return None if self.values.get(name) is None else self.integer(name)

    def number(self, name: str, default: float) -> float:
        """Return a number; `default` if the setting is absent or null."""
        value = self.values.get(name)
        if value is None:
            return default
        if isinstance(value, bool) or not isinstance(value, int | float) or abs(value) > sys.float_info.max:
            self.reject(name, "must be a number")
        return float(value)

    def boolean(self, name: str, default: bool) -> bool:
        """Return true or false; `default` if the setting is absent or null."""
        value = self.values.get(name)
        if value is None:
            return default
        if not isinstance(value, bool):
            self.reject(name, "must be true or false")
        return value

    def text(self, name: str, default: str) -> str:
        """Return a string; `default` if the setting is absent or null."""
        value = self.values.get(name)
        if value is None:
            return default
        if not isinstance(value, str):
            self.reject(name, "must be a string")
        return value

    def reject(self, name: str, requirement: str) -> NoReturn:
        """Raise a `CheckpointError` with the setting, the requirement and the value."""
        # Options of a pickled checkpoint can be tensors, of which JSON knows nothing.
        value = json.dumps(self.values[name], default=str) if name in self.values else "absent"
        raise CheckpointError(f"{self.file_name}: `{name}` {requirement}. Given: {value}")


@contextmanager
def errors_of(file_name: str) -> Iterator[None]:
    """Raise the ValueError of a configuration as a `CheckpointError` that names the file."""
    try:
        yield
    except CheckpointError:
        raise
    except ValueError as error:
        raise CheckpointError(f"{file_name}: {error}") from error


def find_checkpoint(
    folder_or_hub_name: str | Path | CheckpointFolder, report: Callable[[str], None] = lambda _: None
) -> CheckpointFolder:
    """Return the folder of that name, an archive extracted, or a download of the hub repository of that name.

    `report` receives a line before a download.
    """
    if isinstance(folder_or_hub_name, CheckpointFolder):
        return folder_or_hub_name
    if not str(folder_or_hub_name):  # otherwise the working directory
        raise CheckpointError("the name of the checkpoint is empty; name a folder, a file or a model of the hub")
    path = Path(folder_or_hub_name)
    require_files(path)
    if path.is_dir() and not is_archive(path):
        return CheckpointFolder(path, path.resolve().name)
    if path.is_file() and path.suffix == ".pt":
        return CheckpointFolder(path.parent, path.stem, path.name)
    if path.exists() and is_archive(path):
        until_exit = ExitStack()
        atexit.register(until_exit.close)
        folder = until_exit.enter_context(temporary_folder(Path(tempfile.gettempdir()), "kvasir-checkpoint-"))
        try:
            return CheckpointFolder(extract(path, folder / "extracted"), path.name.partition(".")[0])
        except ValueError as error:
            raise CheckpointError(str(error)) from error
    if path.is_file():
        raise CheckpointError(
            f"{path} must be an archive (.zip, .tar.gz, .argosmodel) or a .pt file of OpenNMT-py or fairseq; "
            f"of other checkpoints, name the folder: {path.parent}"
        )
    model = download_model(str(folder_or_hub_name), report)
    return CheckpointFolder(model.path, f"{model.name}@{model.commit}")


def read_settings(path: Path, *, required: bool = True) -> Settings:
    """Return the settings in a JSON file; none if the file is missing and not required."""
    if not required and not path.is_file():
        return Settings(path.name, {})
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        problem = f"{path} is missing, so {path.parent} is not a checkpoint"
        if (path.parent / "bundle.json").is_file():
            problem = (
                f"{path.parent} is a bundle; `kvasir export {path.parent} FOLDER --to checkpoint` makes a checkpoint"
            )
        raise CheckpointError(problem) from None
    except (OSError, ValueError, RecursionError) as error:
        raise CheckpointError(f"{path}: not readable as JSON: {error}") from error
    if not isinstance(values, dict):
        raise CheckpointError(f"{path} must contain a JSON object. Given: {type(values).__name__}")
    return Settings(path.name, values)


def is_hugging_face(folder: Path) -> bool:
    """Return whether a folder has a checkpoint in this layout, possibly next to files of its training."""
    if not (folder / CONFIG_FILE).is_file():
        return False
    has_weights = any((folder / f"{name}{end}").is_file() for name in WEIGHT_FILES for end in ("", INDEX_SUFFIX))
    return has_weights or "model_type" in read_settings(folder / CONFIG_FILE).values


def read_weights(folder: Path) -> Weights:
    """Return all weights of a checkpoint on the CPU, from one file or from the shards of an index."""
    paths = _weight_paths(folder)
    tensors: dict[str, Tensor] = {}
    digest = hashlib.sha256()
    for path in paths:
        if not path.is_file():
            raise CheckpointError(f"{path} is missing; the index of shards lists it")
        tensors.update(read_weight_file(path))
        with path.open("rb") as stream:
            while block := stream.read(1 << 20):
                digest.update(block)
    return Weights(tensors, digest.hexdigest())


def _weight_paths(folder: Path) -> list[Path]:
    for name in WEIGHT_FILES:
        if (folder / name).is_file():
            return [folder / name]
        if (folder / (name + INDEX_SUFFIX)).is_file():
            return _shard_paths(folder / (name + INDEX_SUFFIX))
    looked_for = ", ".join([*WEIGHT_FILES, *(name + INDEX_SUFFIX for name in WEIGHT_FILES)])
    raise CheckpointError(f"{folder} has no weights; expected one of {looked_for}")


def _shard_paths(index: Path) -> list[Path]:
    settings = read_settings(index)
    weight_map = settings.values.get("weight_map")
    if not isinstance(weight_map, dict) or not weight_map:
        settings.reject("weight_map", "must be an object of weight names and file names")
    shards = sorted({str(shard) for shard in weight_map.values()})
    for shard in shards:
        # A name from a file must not point outside its folder.
        if Path(shard).name != shard:
            raise CheckpointError(f"{index}: the shard {shard!r} is not a file of the same folder")
    return [index.parent / shard for shard in shards]


def read_weight_file(path: Path) -> dict[str, Tensor]:
    """Return the tensors of one file. Raises `CheckpointError` for a file that contains anything else."""
    require_files(path)
    try:
        if path.suffix == ".safetensors":
            return load_file(path)
        content = torch.load(path, map_location="cpu", weights_only=True)
    except UNREADABLE as error:
        raise CheckpointError(
            f"{path}: not readable as weights (damaged, truncated or another format): {reason_of(error)}"
        ) from error
    if not isinstance(content, dict) or not all(isinstance(tensor, Tensor) for tensor in content.values()):
        raise CheckpointError(f"{path} must contain weights by name")
    return {str(name): tensor for name, tensor in content.items()}


def reason_of(error: Exception) -> str:
    """Return the finding in an error of `torch.load`, whose message also advises to load the file unchecked."""
    lines = [line.strip() for line in str(error).splitlines()]
    return next((line for line in lines if "GLOBAL" in line or "Unsupported" in line), lines[0] if lines else "")
