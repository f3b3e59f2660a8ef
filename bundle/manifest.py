"""The contract between export and server: what a bundle is, torch-free.

A bundle is a folder: two ONNX graphs, the tokenizer's files and `bundle.json`, which describes them and carries the
SHA-256 of each. `load_bundle` refuses anything that is not exactly that, naming the file and the reason.
"""

from typing import Annotated, Final, Literal

from pydantic import BaseModel, ConfigDict, Field

from bundle.tensors import Layout, Precision
from bundle.tokenizer_files import TokenizerKind

FORMAT_NAME: Final = "kvasir-bundle"
FORMAT_VERSION: Final = 4

MANIFEST_FILE = "bundle.json"
TokenId = Annotated[int, Field(ge=0)]
Count = Annotated[int, Field(gt=0)]


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


class TokenizerDescription(_Strict):
    """How text becomes tokens."""

    kind: TokenizerKind = "marian"


def _is_default(tokenizer: TokenizerDescription) -> bool:
    # Left out of `bundle.json`, so that releases without this field can read the bundle.
    return tokenizer == TokenizerDescription()


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
    tokenizer: Annotated[TokenizerDescription, Field(exclude_if=_is_default)] = TokenizerDescription()
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
