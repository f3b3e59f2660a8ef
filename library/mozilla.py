"""Mozilla's registry of translation models: `models.json`, or the records of Remote Settings; choice and download."""

import hashlib
import json
import re
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from model.checkpoints.archives import PACKED, unpacked
from model.checkpoints.checkpoint import CheckpointError
from model.checkpoints.download import Progress, RemoteFile, download
from server.text.language_tags import match_language

REGISTRY_URL: Final = (
    "https://storage.googleapis.com/moz-fx-translations-data--303e-prod-translations-data/db/models.json"
)
LICENCE: Final = "MPL-2.0"
TIERS: Final = ("base", "base-memory", "tiny")
"""Sizes of models, best first."""

METADATA_FILE: Final = "metadata.json"
_MAX_FILE_BYTES: Final = 2_000_000_000
_DIGEST: Final = re.compile(r"[0-9a-f]{64}")
# Files of a model. A model without a shortlist, or without a quality model, is complete.
_KINDS: Final = {
    "model": "model",
    "lexicalShortlist": "lex",
    "vocab": "vocab",
    "srcVocab": "srcvocab",
    "trgVocab": "trgvocab",
}


@dataclass(frozen=True, slots=True)
class RegistryFile:
    """A file by its name in the folder of a model. Size and SHA-256 are those of the content, uncompressed."""

    kind: str
    name: str
    remote: RemoteFile
    size: int | None
    sha256: str | None


@dataclass(frozen=True, slots=True)
class RegistryModel:
    """A model of the registry."""

    source: str
    target: str
    tier: str
    version: str
    is_release: bool
    files: tuple[RegistryFile, ...]
    bleu: float | None = None

    @property
    def is_complete(self) -> bool:
        """Whether the weights and the vocabularies are listed."""
        kinds = {file.kind for file in self.files}
        return "model" in kinds and ("vocab" in kinds or {"srcvocab", "trgvocab"} <= kinds)


def parse_registry(content: object, base: str) -> list[RegistryModel]:
    """Return the complete models of a registry. Raises `CheckpointError` for another content.

    `base` is the address, or the local folder, below which the files are; `models.json` can name its own.
    """
    if isinstance(content, Mapping) and isinstance(content.get("models"), Mapping):
        listed = content["models"].values()
        entries = [entry for group in listed if isinstance(group, list) for entry in group]
        own_base = _below(base, named) if isinstance(named := content.get("baseUrl"), str) else base
        found = [_of_entry(entry, own_base) for entry in entries]
    elif isinstance(content, Mapping) and isinstance(content.get("data"), list):
        found = _of_records(content["data"], base)
    else:
        raise CheckpointError("the registry must have `models`, or `data` with records of Remote Settings")
    return [model for model in found if model is not None and model.is_complete]


def choose_model(models: Sequence[RegistryModel], source: str, target: str, tier: str | None = None) -> RegistryModel:
    """Return the best released model of a pair: the best tier, then the newest version. Raises `CheckpointError`."""
    pair = models_of_pair(models, source, target)
    if not pair:
        targets = sorted({model.target for model in models if match_language(source, [model.source])})
        listed = f"Available from {source}: {' '.join(targets)}" if targets else f"No model translates from {source}"
        raise CheckpointError(f"the registry has no model for {source}-{target}. {listed}")
    pair = [model for model in pair if model.is_release] or pair
    tiers = sorted({model.tier for model in pair}, key=TIERS.index)
    if tier is not None and tier not in tiers:
        raise CheckpointError(f"`tier` must be one of {', '.join(tiers)} for {source}-{target}. Given: {tier}")
    return max((model for model in pair if model.tier == (tier or tiers[0])), key=lambda model: _age(model.version))


def models_of_pair(models: Sequence[RegistryModel], source: str, target: str) -> list[RegistryModel]:
    """Return the models that translate from `source` to `target`; languages match as in requests to the server."""
    found = [
        model for model in models if match_language(source, [model.source]) and match_language(target, [model.target])
    ]
    source_tag = match_language(source, [model.source for model in found])
    found = [model for model in found if model.source == source_tag]
    target_tag = match_language(target, [model.target for model in found])
    return [model for model in found if model.target == target_tag]


def fetch_model(model: RegistryModel, folder: Path, progress: Progress) -> None:
    """Download the files of a model into a folder, uncompressed and checked, with Mozilla's `metadata.json`.

    Files that are there already are checked and kept. Raises `CheckpointError` for a file with another size or hash.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for file in model.files:
        path = folder / file.name
        if path.is_file() and file.sha256 and not _problem(path, file):
            continue
        packed = fetch_file(file.remote, folder / Path(file.remote.url.partition("?")[0]).name, progress)
        if packed != path:
            _unpack(packed, path, file)
        if problem := _problem(path, file):
            path.unlink()
            raise CheckpointError(f"{file.name}: {problem}; the file is deleted")
    metadata: dict[str, object] = {
        "architecture": model.tier,
        "sourceLanguage": model.source,
        "targetLanguage": model.target,
        "version": model.version,
        "license": LICENCE,
    }
    if model.bleu is not None:
        metadata["flores"] = {"bleu": model.bleu}
    (folder / METADATA_FILE).write_text(json.dumps(metadata, indent=2) + "\n", "utf-8")


@dataclass(frozen=True, slots=True)
class Metadata:
    """Licence and quality of a model, if its `metadata.json` has them."""

    licence: str | None = None
    bleu: float | None = None


def read_metadata(folder: Path) -> Metadata:
    """Return the metadata of a model in a folder of Mozilla's; empty without them."""
    try:
        content = json.loads((folder / METADATA_FILE).read_text("utf-8"))
    except (OSError, ValueError, RecursionError):
        return Metadata()
    if not isinstance(content, Mapping):
        return Metadata()
    licence = content.get("license")
    return Metadata(licence if isinstance(licence, str) else None, _bleu(content))


def _bleu(entry: Mapping[str, object]) -> float | None:
    """Return the quality on FLORES: `flores` in `metadata.json`, one of the `metrics` in `models.json`."""
    metrics = entry.get("metrics")
    flores = entry.get("flores") or (metrics.get("flores200-plus") if isinstance(metrics, Mapping) else None)
    bleu = flores.get("bleu") if isinstance(flores, Mapping) else None
    return float(bleu) if isinstance(bleu, int | float) and not isinstance(bleu, bool) and 0 <= bleu <= 100 else None


def _of_entry(entry: object, base: str) -> RegistryModel | None:
    """Return a model of `models.json`, or None for an entry without languages, tier or files."""
    if not isinstance(entry, Mapping) or not isinstance(entry.get("files"), Mapping):
        return None
    source, target, tier = (entry.get(name) for name in ("sourceLanguage", "targetLanguage", "architecture"))
    if not isinstance(source, str) or not isinstance(target, str) or tier not in TIERS:
        return None
    files = []
    for name, kind in _KINDS.items():
        listed = entry["files"].get(name)
        if isinstance(listed, Mapping) and isinstance(listed.get("path"), str):
            url = _below(base, listed["path"])
            size, digest = _size(listed.get("uncompressedSize")), _digest(listed.get("uncompressedHash"))
            files.append(RegistryFile(kind, _file_name(listed["path"]), RemoteFile(url), size, digest))
    return RegistryModel(
        source,
        target,
        str(tier),
        str(entry.get("version") or ""),
        str(entry.get("releaseStatus", "Release")).lower().startswith("release"),
        tuple(files),
        _bleu(entry),
    )


def _of_records(records: Sequence[object], base: str) -> list[RegistryModel | None]:
    """Return the models whose files are single records of Remote Settings."""
    models: dict[tuple[str, str, str, str], RegistryModel] = {}
    for record in records:
        attachment = record.get("attachment") if isinstance(record, Mapping) else None
        if not isinstance(record, Mapping) or not isinstance(attachment, Mapping):
            continue
        # Older records name the languages differently and have no tier.
        source = record.get("sourceLanguage", record.get("fromLang"))
        target = record.get("targetLanguage", record.get("toLang"))
        tier, kind, name = record.get("architecture", "tiny"), record.get("fileType"), record.get("name")
        location = attachment.get("location")
        texts = (source, target, kind, name, location)
        if not all(isinstance(text, str) for text in texts) or tier not in TIERS or kind not in _KINDS.values():
            continue
        remote = RemoteFile(
            _below(base, str(location)),
            _size(attachment.get("size")),
            _digest(attachment.get("hash")),
        )
        is_packed = str(attachment.get("filename", location)).endswith(PACKED)
        size = _size(record.get("decompressedSize")) if is_packed else remote.size
        digest = _digest(record.get("decompressedHash")) if is_packed else remote.sha256
        file = RegistryFile(str(kind), _file_name(str(name)), remote, size, digest)
        key = (str(source), str(target), str(tier), str(record.get("version") or ""))
        # Filters select channels of Firefox, or systems: a release for Android only is one.
        is_release = "env.channel" not in str(record.get("filter_expression"))
        model = models.get(key) or RegistryModel(*key, is_release, ())
        # Of several shortlists the first one is taken.
        if all(other.kind != file.kind for other in model.files):
            model = replace(model, files=(*model.files, file))
        models[key] = model
    return list(models.values())


def _below(base: str, location: str) -> str:
    """Return the address of a location below a base, unless the location is an address."""
    return location if location.startswith(("http://", "https://")) else f"{base.rstrip('/')}/{location.lstrip('/')}"


def fetch_file(file: RemoteFile, path: Path, progress: Progress) -> Path:
    """Download a file, or copy it from the folder of a local registry. Raises `CheckpointError`."""
    if "://" in file.url:
        return download(file, path, progress)
    if ".." in Path(file.url).parts:
        raise CheckpointError(f"the registry names a file outside its folder: {file.url}")
    try:
        return Path(shutil.copyfile(file.url, path))
    except OSError as error:
        raise CheckpointError(f"{file.url}: {error.strerror}; files are next to a local registry") from error


def _file_name(path: str) -> str:
    name = re.sub(r"\.(gz|zst)$", "", path.replace("\\", "/").rpartition("/")[2])
    if not re.fullmatch(r"[\w][\w.\-]*", name):
        raise CheckpointError(f"the registry has an unusable file name: {path!r}")
    return name


def _size(value: object) -> int | None:
    """Return a size, None if the registry names none. Another value is an error: it would turn off a check."""
    if value is None or (type(value) is int and 0 <= value <= _MAX_FILE_BYTES):
        return value
    raise CheckpointError(f"the registry has an unusable size: {value!r:.80}")


def _digest(value: object) -> str | None:
    """Return a SHA-256, None if the registry names none."""
    if value is None:
        return None
    if isinstance(value, str) and _DIGEST.fullmatch(value.lower()):
        return value.lower()
    raise CheckpointError(f"the registry has an unusable SHA-256: {value!r:.80}")


def _age(version: str) -> tuple[int, ...]:
    """Return what orders versions: 3.0a2 precedes 3.0, and 3.9 precedes 3.10."""
    parts = re.findall(r"\d{1,9}|[ab]", version)
    return (*({"a": -2, "b": -1}.get(part) or int(part) for part in parts), 0)


def _unpack(packed: Path, path: Path, file: RegistryFile) -> None:
    """Write the content of a compressed file, at most as many bytes as it must have, and delete the file."""
    limit = file.size if file.size is not None else _MAX_FILE_BYTES
    num_bytes = 0
    partial = path.with_name(path.name + ".unpacked")
    try:
        with partial.open("wb") as sink:
            for block in unpacked(packed):
                num_bytes += len(block)
                if num_bytes > limit:
                    raise ValueError(f"{packed.name} must contain at most {limit} bytes")
                sink.write(block)
        partial.replace(path)
    except ValueError as error:
        raise CheckpointError(f"{error}; it is deleted") from error
    finally:
        partial.unlink(missing_ok=True)
        packed.unlink()


def _problem(path: Path, file: RegistryFile) -> str:
    size = path.stat().st_size
    if file.size is not None and size != file.size:
        return f"it must have {file.size} bytes. Given: {size}"
    if file.sha256 is not None:
        with path.open("rb") as stream:
            digest = hashlib.file_digest(stream, "sha256").hexdigest()
        if digest != file.sha256:
            return f"its SHA-256 must be {file.sha256}. Given: {digest}"
    return ""
