"""The contract between export and server: what a bundle is, torch-free.

A bundle is a folder: two ONNX graphs, the tokenizer's files and `bundle.json`, which describes them and carries the
SHA-256 of each. `load_bundle` refuses anything that is not exactly that, naming the file and the reason.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

FORMAT_NAME: Final = "kvasir-bundle"
FORMAT_VERSION: Final = 4

MANIFEST_FILE = "bundle.json"
ENCODER_FILE = "encoder.onnx"
DECODER_FILE = "decoder.onnx"
CHOOSE_FILE = "choose.onnx"
RANK_FILE = "rank.onnx"
MOVE_FILE = "move.onnx"
SOURCE_SENTENCEPIECE_FILE = "source.spm"
TARGET_SENTENCEPIECE_FILE = "target.spm"
VOCABULARY_FILE = "vocab.json"
TARGET_VOCABULARY_FILE = "target_vocab.json"
REQUIRED_FILES = (
    ENCODER_FILE,
    DECODER_FILE,
    SOURCE_SENTENCEPIECE_FILE,
    TARGET_SENTENCEPIECE_FILE,
    VOCABULARY_FILE,
)
PART_FILES = (CHOOSE_FILE, RANK_FILE, MOVE_FILE)  # in bundles of layout "parts" only
# Tensor names of the two graphs. `{layer}` counts from 0; the caches are bound as input and output of the same memory.
SOURCE_TOKENS = "source_tokens"  # int32 [rows, source_len], any token where the row has ended
SOURCE_LENGTHS = "source_lengths"  # int32 [rows]
CROSS_KEYS_VALUES = "cross_keys_values"  # [2 * layers, rows, heads, source_len, head_dim], keys at even places
PREVIOUS_TOKENS = "previous_tokens"  # int32 [rows]
PAST_LENGTHS = "past_lengths"  # int32 [rows]: how many positions of the row's self cache are valid
NUM_CANDIDATES = "num_candidates"  # int64 [1]
WITH_SCORES = "with_scores"  # bool [1]: whether `log_normalizer` is wanted, which reads the whole vocabulary again
LOGIT_ROWS = "logit_rows"  # int64 [logit_rows]: rows whose whole distribution is wanted; usually there are none
SELF_KEYS = "self_keys_{layer}"  # [rows, heads, max_target_tokens, head_dim], in place; int8 in an int8 bundle
SELF_VALUES = "self_values_{layer}"
CROSS_KEYS = "cross_keys_{layer}"  # [rows, heads, max_source_tokens, head_dim], read only
CROSS_VALUES = "cross_values_{layer}"
LAST_CROSS_KEY = "last_cross_key_{layer}"  # [rows, 1, heads * head_dim]: the last source position's, never int8
LAST_CROSS_VALUE = "last_cross_value_{layer}"
LOGITS = "logits"  # float32 [logit_rows, target_vocab_size], of the rows named; -inf for suppressed tokens
CROSS_QUERIES = "cross_queries_{layer}"  # [rows, 1, heads * head_dim], before any scale; for those who want alignments
PRESENT = "present_"  # prefix of the outputs that share the memory of the four caches above
CANDIDATE_TOKENS = "candidate_tokens"  # int64 [rows, num_candidates], best first; meaningless where the logit is -inf
CANDIDATE_LOGITS = "candidate_logits"  # float32 [rows, num_candidates]
LOG_NORMALIZER = "log_normalizer"  # float32 [rows]: log-probability = logit - log_normalizer; NaN without scores

STEP_LOGITS = "step_logits"  # from here on of layout "parts": [rows, padded vocab], -inf for suppressed and padding
SUPPRESSED_LOGITS = "suppressed_logits"  # float32 [rows, suppressed tokens], where a model has any
SOURCE_WIDTH = "source_width"  # int32 scalar, an input of the encoder: source_len
NEXT_TOKENS = "next_tokens"  # int32 [rows]: the best token of each row
NEXT_LENGTHS = "next_lengths"  # int32 [rows]: past lengths with that token, never beyond the cache
# Of move.onnx, `side` being "from" or "to"; planes are whatever is moved, eight bytes a word.
MOVE_ROWS = "{side}_rows"  # int64 [moves]
MOVE_POSITIONS = "{side}_positions"  # int64 [moves, positions]
MOVE_LENGTH = "{side}_length"  # int64 [1]: positions that a row has room for
MOVE_PLANE = "{side}_{plane}"  # int64 [rows * heads * length, words]
MOVED_PLANE = "moved_{plane}"  # shares the memory of the plane moved to
NUM_RANKED = 16  # candidates of each row: what the widest beam needs

# What an int8 bundle's cached keys and values are multiplied by. They are the model's own but for factors that queries
# and the output projection take back; see export.key_value_ranges.
INT8_CACHE_STEP = 1 / 127

SHAPES_METADATA = "kvasir.shapes"  # each graph carries the `Shapes` it was exported with, as JSON, under this key

Precision = Literal["float32", "int8", "float16"]
Layout = Literal["step", "parts"]
TokenId = Annotated[int, Field(ge=0)]
Count = Annotated[int, Field(gt=0)]


def item_size(precision: Precision) -> int:
    """Bytes of one number of a cache."""
    return {"float32": 4, "float16": 2, "int8": 1}[precision]


class BundleError(ValueError):
    """A folder that is not a bundle this version can serve; the message names the file and the reason."""


class _Strict(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Shapes(_Strict):
    """Sizes the server allocates by. `max_*_tokens` count the end-of-sequence token."""

    vocab_size: Count
    target_vocab_size: Count
    d_model: Count
    num_encoder_layers: Count
    num_decoder_layers: Count
    num_heads: Count
    head_dim: Count
    max_source_tokens: Count
    max_target_tokens: Count


class SpecialTokens(_Strict):
    """Token ids with a meaning. `suppressed` are never generated."""

    end_of_sequence: TokenId
    padding: TokenId
    decoder_start: TokenId
    unknown: TokenId
    suppressed: tuple[TokenId, ...] = ()
    forced_end: bool = False


class FileRecord(_Strict):
    """Size and SHA-256 of one file of the bundle."""

    bytes: int
    sha256: Annotated[str, Field(pattern="^[0-9a-f]{64}$")]


class Provenance(_Strict):
    """Where the weights came from and what made the bundle."""

    source: str
    family: str
    weights_sha256: str
    num_parameters: Count
    exporter: str


class BundleConfig(_Strict):
    """Everything `bundle.json` says.

    `target_language_tokens` maps a target language to the piece a source sentence must begin with, in models that
    translate into several; it is empty in all others. `attention_scale` is what the products of queries and keys
    are multiplied by in the decoder's cross-attention.

    In layout `step` one graph does all of a decoder step. In layout `parts`, which CUDA graphs can be captured of, it
    is decoder.onnx and then choose.onnx (the next step's state) or rank.onnx (scores); move.onnx moves rows.
    """

    format: Literal["kvasir-bundle"] = FORMAT_NAME
    format_version: Literal[4] = FORMAT_VERSION
    name: Annotated[str, Field(min_length=1)]
    source_languages: tuple[str, ...]
    target_languages: tuple[str, ...]
    target_language_tokens: dict[str, str] = {}
    precision: Precision
    layout: Layout = "step"
    shapes: Shapes
    attention_scale: Annotated[float, Field(gt=0)]
    special_tokens: SpecialTokens
    encoder_inputs: tuple[str, ...]
    encoder_outputs: tuple[str, ...]
    decoder_inputs: tuple[str, ...]
    decoder_outputs: tuple[str, ...]
    provenance: Provenance
    files: dict[str, FileRecord]


@dataclass(frozen=True, slots=True)
class Bundle:
    """A validated bundle on disk."""

    path: Path
    config: BundleConfig

    def file(self, name: str) -> Path:
        """The path of one of the bundle's files."""
        return self.path / name


def cache_names(layer: int) -> tuple[str, str, str, str]:
    """The four caches of a decoder layer, in the order the graph takes and returns them."""
    return (
        SELF_KEYS.format(layer=layer),
        SELF_VALUES.format(layer=layer),
        CROSS_KEYS.format(layer=layer),
        CROSS_VALUES.format(layer=layer),
    )


def decoder_input_names(num_layers: int, layout: Layout = "step") -> tuple[str, ...]:
    """Inputs of the decoder graph, in order."""
    names = [PREVIOUS_TOKENS, PAST_LENGTHS, SOURCE_LENGTHS]
    names += [NUM_CANDIDATES, LOGIT_ROWS, WITH_SCORES] if layout == "step" else []
    for layer in range(num_layers):
        names += [*cache_names(layer), LAST_CROSS_KEY.format(layer=layer), LAST_CROSS_VALUE.format(layer=layer)]
    return tuple(names)


def decoder_output_names(num_layers: int, layout: Layout = "step", *, has_suppressed: bool = False) -> tuple[str, ...]:
    """Outputs of the decoder graph, in order."""
    names = [CANDIDATE_LOGITS, CANDIDATE_TOKENS]
    names += [LOG_NORMALIZER, LOGITS] if layout == "step" else [STEP_LOGITS, SUPPRESSED_LOGITS][: 1 + has_suppressed]
    for layer in range(num_layers):
        names += [PRESENT + name for name in cache_names(layer)]
        names.append(CROSS_QUERIES.format(layer=layer))
    return tuple(names)


def record_file(path: Path) -> FileRecord:
    """Size and digest of a file as they stand on disk."""
    with path.open("rb") as stream:
        digest = hashlib.file_digest(stream, "sha256").hexdigest()
    return FileRecord(bytes=path.stat().st_size, sha256=digest)


def save_manifest(folder: Path, config: BundleConfig) -> Bundle:
    """Write `bundle.json`, the last file of a bundle: a folder without it is not a bundle."""
    text = config.model_dump_json(indent=2)
    (folder / MANIFEST_FILE).write_text(text + "\n", encoding="utf-8")
    return Bundle(folder, config)


def load_bundle(folder: Path, *, verify_digests: bool = True) -> Bundle:
    """Read and check a bundle.

    Raises `BundleError` for a folder that is damaged, truncated, from a newer version, or not a bundle at all.
    """
    config = _read_manifest(folder)
    required = REQUIRED_FILES + (PART_FILES if config.layout == "parts" else ())
    problems = [f"{name}: not listed in {MANIFEST_FILE}" for name in required if name not in config.files]
    for name, record in sorted(config.files.items()):
        problems += _check_file(folder, name, record, verify_digests)
    expected = decoder_input_names(config.shapes.num_decoder_layers, config.layout)
    if missing := sorted(set(expected) - set(config.decoder_inputs)):
        problems.append(f"{DECODER_FILE}: {MANIFEST_FILE} lists no inputs {', '.join(missing)}")
    if problems:
        raise BundleError(f"{folder} cannot be served: " + "; ".join(problems))
    return Bundle(folder, config)


def check_graph(bundle: Bundle, file: str, metadata: Mapping[str, str]) -> None:
    """Raise `BundleError` unless a graph, by what its metadata says, has the sizes that `bundle.json` says."""
    path = bundle.file(file)
    if SHAPES_METADATA not in metadata:
        raise BundleError(f"{path} does not say what its sizes are ({SHAPES_METADATA}): export it again")
    try:
        found = Shapes.model_validate_json(metadata[SHAPES_METADATA])
    except ValidationError as error:
        raise BundleError(f"{path}: {SHAPES_METADATA} is not valid: {_details(error)}") from error
    expected = bundle.config.shapes.model_dump()
    differing = [
        f"{name} is {size}, {expected[name]} in {MANIFEST_FILE}"
        for name, size in found.model_dump().items()
        if size != expected[name]
    ]
    if differing:
        raise BundleError(f"{path} does not fit its {MANIFEST_FILE}: " + "; ".join(differing))


def _details(error: ValidationError) -> str:
    return "; ".join(f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors())


def _read_manifest(folder: Path) -> BundleConfig:
    manifest = folder / MANIFEST_FILE
    if not folder.is_dir():
        raise BundleError(f"{folder} is not a folder; `kvasir export CHECKPOINT {folder}` makes one")
    if not manifest.is_file():
        raise BundleError(f"{manifest} is missing, so {folder} is not a Kvasir bundle or its export did not finish")
    try:
        content = json.loads(manifest.read_text(encoding="utf-8"))
    except (UnicodeDecodeError, json.JSONDecodeError) as error:
        raise BundleError(f"{manifest} is not JSON: {error}") from error
    if not isinstance(content, dict) or content.get("format") != FORMAT_NAME:
        found = content.get("format") if isinstance(content, dict) else type(content).__name__
        raise BundleError(f"{manifest} describes {found!r}, not a {FORMAT_NAME!r}")
    version = content.get("format_version")
    if version != FORMAT_VERSION:
        way_out = "upgrade Kvasir" if isinstance(version, int) and version > FORMAT_VERSION else "export it again"
        raise BundleError(f"{manifest} has format version {version!r}; this Kvasir reads {FORMAT_VERSION}: {way_out}")
    try:
        return BundleConfig.model_validate(content)
    except ValidationError as error:
        raise BundleError(f"{manifest} is not valid: {_details(error)}") from error


def _check_file(folder: Path, name: str, record: FileRecord, verify_digest: bool) -> list[str]:
    path = folder / name
    # A name from a foreign file must not reach outside its folder.
    if Path(name).name != name:
        return [f"{name}: a bundle's files lie in its own folder"]
    if not path.is_file():
        return [f"{name}: missing"]
    if (size := path.stat().st_size) != record.bytes:
        return [f"{name}: {size} bytes on disk, {record.bytes} in {MANIFEST_FILE} (truncated or replaced)"]
    if verify_digest and record_file(path).sha256 != record.sha256:
        return [f"{name}: its SHA-256 differs from {MANIFEST_FILE} (damaged or replaced)"]
    return []
