"""Loading of bundles, with checks of the manifest and the files."""

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import ValidationError

from bundle.manifest import (
    FORMAT_NAME,
    FORMAT_VERSION,
    MANIFEST_FILE,
    REQUIRED_TOKENIZER_FILES,
    BundleConfig,
    BundleError,
    FileRecord,
    Shapes,
)
from bundle.model_card import ModelCard, read_card
from bundle.tensors import (
    DECODER_FILE,
    ENCODER_FILE,
    GRAPH_FILES,
    LIST_INPUTS,
    PART_FILES,
    SHAPES_METADATA,
    SHORTLIST_FILE,
    decoder_input_names,
)

_MAX_MANIFEST_BYTES = 16_000_000
_MAX_NAME_BYTES = 255  # of a file, in every file system
_MAX_LISTED, _MAX_LINE_CHARACTERS, _MAX_SHOWN_CHARACTERS = 20, 500, 60  # of an error


@dataclass(frozen=True, slots=True)
class Bundle:
    """A validated bundle on disk."""

    path: Path
    config: BundleConfig
    card: ModelCard = field(default_factory=ModelCard)

    def file(self, name: str) -> Path:
        """Return the path of a file of the bundle."""
        return self.path / name


def record_file(path: Path) -> FileRecord:
    """Return size and digest of a file on disk."""
    with path.open("rb") as stream:
        digest = hashlib.file_digest(stream, "sha256").hexdigest()
    return FileRecord(bytes=path.stat().st_size, sha256=digest)


def save_manifest(folder: Path, config: BundleConfig) -> Bundle:
    """Write or replace `bundle.json`. It must be the last file: a folder without it is not a bundle."""
    partial = folder / f"{MANIFEST_FILE}.partial"
    partial.write_text(config.model_dump_json(indent=2) + "\n", encoding="utf-8")
    partial.replace(folder / MANIFEST_FILE)
    return Bundle(folder, config)


def load_bundle(folder: Path, *, verify_digests: bool = True) -> Bundle:
    """Read and check a bundle.

    Raises `BundleError` for a folder that is damaged, truncated, of a newer format version, or not a bundle.
    """
    config = _read_manifest(folder)
    required = [
        *(GRAPH_FILES if config.has_decoder else (ENCODER_FILE,)),
        *REQUIRED_TOKENIZER_FILES[config.tokenizer.kind],
    ]
    required += PART_FILES if config.layout == "parts" else ()
    required += [SHORTLIST_FILE] if config.has_shortlist else []
    problems = [f"{name}: not listed in {MANIFEST_FILE}" for name in required if name not in config.files]
    for name, record in sorted(config.files.items()):
        problems += _check_file(folder, name, record, verify_digests)
    shapes = config.shapes
    expected = decoder_input_names(shapes.num_decoder_layers, config.layout, recurrent=shapes.is_recurrent)
    expected += LIST_INPUTS if config.has_shortlist else ()
    if config.has_decoder and (missing := sorted(set(expected) - set(config.decoder_inputs))):
        problems.append(f"{DECODER_FILE}: {MANIFEST_FILE} must list the inputs {', '.join(missing)}")
    problems += _wrong_tokens(config)
    if problems:
        raise BundleError(f"{folder} cannot be served: {_listed(problems)}")
    return Bundle(folder, config, read_card(folder, config.precision))


def check_unchanged(bundle: Bundle) -> None:
    """Raise `BundleError` unless the files on disk are those that were loaded."""
    problems = [
        problem
        for name, record in sorted(bundle.config.files.items())
        for problem in _check_file(bundle.path, name, record, verify_digest=True)
    ]
    if problems:
        raise BundleError(f"{bundle.path} has changed since it was loaded: {_listed(problems)}")


def check_graph(bundle: Bundle, file: str, metadata: Mapping[str, str]) -> None:
    """Raise `BundleError` unless the sizes in a graph's metadata equal those in `bundle.json`."""
    path = bundle.file(file)
    if SHAPES_METADATA not in metadata:
        raise BundleError(f"{path} has no metadata {SHAPES_METADATA}; export the bundle again")
    try:
        found = Shapes.model_validate_json(metadata[SHAPES_METADATA])
    except ValidationError as error:
        raise BundleError(f"{path}: {SHAPES_METADATA} is not valid: {_details(error)}") from error
    expected = bundle.config.shapes
    differing = [
        f"{name} is {getattr(found, name)}, {getattr(expected, name)} in {MANIFEST_FILE}"
        for name in Shapes.model_fields
        if getattr(found, name) != getattr(expected, name)
    ]
    if differing:
        raise BundleError(f"{path} contradicts its {MANIFEST_FILE}: " + "; ".join(differing))


def _wrong_tokens(config: BundleConfig) -> list[str]:
    """Return problems of special tokens outside the vocabularies, for which a graph would read beyond its weights."""
    shapes, tokens = config.shapes, config.special_tokens
    size = min(shapes.vocab_size, shapes.target_vocab_size)
    named = {"end_of_sequence": tokens.end_of_sequence, "unknown": tokens.unknown}
    problems = [f"{name} must be below {size}. Given: {token}" for name, token in named.items() if token >= size]
    of_target = (tokens.decoder_start, *tokens.suppressed)
    size = max(shapes.vocab_size, shapes.target_vocab_size)
    if wrong := [token for token in (tokens.padding, *of_target) if token >= size]:
        problems.append(f"special tokens must be below {size}. Given: {wrong[0]}")
    return problems


def _details(error: ValidationError) -> str:
    return _listed([f"{'.'.join(map(str, e['loc']))[:_MAX_SHOWN_CHARACTERS]}: {e['msg']}" for e in error.errors()])


def _listed(problems: Sequence[str]) -> str:
    """Return the first problems and the number of the others: a hostile bundle has any number of them."""
    others = [f"and {len(problems) - _MAX_LISTED} more"] if len(problems) > _MAX_LISTED else []
    return "; ".join([*(problem[:_MAX_LINE_CHARACTERS] for problem in problems[:_MAX_LISTED]), *others])


def _shown(value: object) -> str:
    """Return a value of a manifest, cut to fit a message."""
    return repr(value)[:_MAX_SHOWN_CHARACTERS]


def _read_manifest(folder: Path) -> BundleConfig:
    manifest = folder / MANIFEST_FILE
    if not folder.is_dir():
        raise BundleError(f"{folder} is not a folder; `kvasir export CHECKPOINT FOLDER` makes one")
    if not manifest.is_file():
        raise BundleError(f"{manifest} is missing; {folder} is not a Kvasir bundle, or its export did not finish")
    if irregular := sorted(path.name for path in folder.iterdir() if not (path.is_file() or path.is_dir())):
        # Opening a pipe waits for ever, and a broken link is a mistake.
        raise BundleError(f"{folder} cannot be served: {irregular[0]} is neither a file nor a folder")
    if (num_bytes := manifest.stat().st_size) > _MAX_MANIFEST_BYTES:
        raise BundleError(f"{manifest} may have {_MAX_MANIFEST_BYTES} bytes. It has {num_bytes}")
    try:
        content = json.loads(manifest.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise BundleError(f"{manifest} is not JSON: {error}") from error
    if not isinstance(content, dict) or content.get("format") != FORMAT_NAME:
        found = content.get("format") if isinstance(content, dict) else type(content).__name__
        raise BundleError(f"{manifest} describes {_shown(found)}, not {FORMAT_NAME!r}")
    version = content.get("format_version")
    if version != FORMAT_VERSION:
        remedy = "upgrade Kvasir" if isinstance(version, int) and version > FORMAT_VERSION else "export it again"
        raise BundleError(f"{manifest} must have format version {FORMAT_VERSION}. Given: {_shown(version)}; {remedy}")
    try:
        return BundleConfig.model_validate(content)
    except ValidationError as error:
        raise BundleError(f"{manifest} is not valid: {_details(error)}") from error


def _check_file(folder: Path, name: str, record: FileRecord, verify_digest: bool) -> list[str]:
    path = folder / name
    # A name from a file must not point outside its folder.
    if Path(name).name != name or len(os.fsencode(name)) > _MAX_NAME_BYTES:
        return [f"{name}: the files of a bundle must be in its folder"]
    if path.is_symlink() and path.resolve().parent != folder.resolve():
        return [f"{name}: a symbolic link that leads out of the bundle; copy the file"]
    if not path.is_file():
        return [f"{name}: missing"]
    if (size := path.stat().st_size) != record.bytes:
        return [f"{name}: {size} bytes on disk, {record.bytes} in {MANIFEST_FILE} (truncated or replaced)"]
    if verify_digest and record_file(path).sha256 != record.sha256:
        return [f"{name}: its SHA-256 differs from {MANIFEST_FILE} (damaged or replaced)"]
    return []
