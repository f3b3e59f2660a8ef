"""Schema of `bundle.json`.

A bundle is a folder with ONNX graphs, the tokenizer's files and `bundle.json`, which describes them and contains the
SHA-256 of each. `load_bundle` rejects everything else, with the file and the reason.
"""

from collections.abc import Mapping
from typing import Annotated, Final, Literal

from pydantic import BaseModel, ConfigDict, Field

from bundle.tensors import HIDDEN_STATES, Layout, Precision

TokenizerKind = Literal["marian", "sentencepiece", "tokenizer_json", "moses_bpe", "bytes"]
"""`marian`: SentencePiece models of source and target, whose pieces a vocabulary numbers. `sentencepiece`: one model.

`tokenizer_json`: the format of the package `tokenizers`. `moses_bpe`: merges of subword-nmt within words of Moses'
tokenizer, which a vocabulary numbers. `bytes`: a token for each byte of UTF-8, without files.
"""

SOURCE_SENTENCEPIECE_FILE = "source.spm"
TARGET_SENTENCEPIECE_FILE = "target.spm"  # optional; without it the target has the SentencePiece model of the source
VOCABULARY_FILE = "vocab.json"
TOKENIZER_JSON_FILE = "tokenizer.json"
BPE_CODES_FILE = "bpe.model"
TARGET_VOCABULARY_FILE = "target_vocab.json"  # optional; without it the target has the vocabulary of the source

REQUIRED_TOKENIZER_FILES: Final[Mapping[TokenizerKind, tuple[str, ...]]] = {
    "marian": (SOURCE_SENTENCEPIECE_FILE, VOCABULARY_FILE),
    "sentencepiece": (SOURCE_SENTENCEPIECE_FILE, VOCABULARY_FILE),
    "tokenizer_json": (TOKENIZER_JSON_FILE,),
    "moses_bpe": (BPE_CODES_FILE, VOCABULARY_FILE),
    "bytes": (),
}


FORMAT_NAME: Final = "kvasir-bundle"
FORMAT_VERSION: Final = 4

MANIFEST_FILE = "bundle.json"
TokenId = Annotated[int, Field(ge=0)]
Count = Annotated[int, Field(gt=0)]


class BundleError(ValueError):
    """A folder that this version cannot serve as a bundle; the message names the file and the reason."""


class _Strict(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


def _is_none(value: object) -> bool:
    return value is None


def _is_false(value: bool) -> bool:
    return not value


def _is_zero(value: int) -> bool:
    return value == 0


def _is_empty(value: Mapping[str, object]) -> bool:
    return not value


class Shapes(_Strict):
    """Sizes for memory allocation. `max_*_tokens` include the end-of-sequence token.

    A model without a decoder has 0 decoder layers. `state_width` is the size of the state of a layer of a recurrent
    decoder, whose layers have no keys and values of earlier tokens; it is 0 in all others.
    """

    vocab_size: Count
    target_vocab_size: Count
    d_model: Count
    num_encoder_layers: Count
    num_decoder_layers: Annotated[int, Field(ge=0, le=1000)]  # names of their caches are made before a graph is read
    num_heads: Count
    head_dim: Count
    max_source_tokens: Count
    max_target_tokens: Count
    state_width: Annotated[int, Field(ge=0, exclude_if=_is_zero)] = 0

    @property
    def is_recurrent(self) -> bool:
        """Whether the decoder has states instead of keys and values of earlier tokens."""
        return self.state_width > 0


class SpecialTokens(_Strict):
    """Ids of special tokens. `suppressed` are never generated; `forced_first` begins every output, at no cost."""

    end_of_sequence: TokenId
    padding: TokenId
    decoder_start: TokenId
    unknown: TokenId
    suppressed: tuple[TokenId, ...] = ()
    forced_end: bool = False
    forced_first: Annotated[TokenId | None, Field(exclude_if=_is_none)] = None


class FileRecord(_Strict):
    """Size and SHA-256 of one file of the bundle."""

    bytes: int
    sha256: Annotated[str, Field(pattern="^[0-9a-f]{64}$")]


class Provenance(_Strict):
    """Origin of the weights, and the exporter of the bundle."""

    source: str
    family: str
    weights_sha256: str
    num_parameters: Count
    exporter: str


class TokenizerDescription(_Strict):
    """Description of the tokenizer, and the tokens around the text of a source.

    A source has the tokens `before`, the text, and `after`; None is the end-of-sequence token. `source_language_tokens`
    maps a source language to its token, which is first, or last with `source_language_last`. `prompts` maps a target
    language to a text before the source's text.
    """

    kind: TokenizerKind = "marian"
    before: tuple[TokenId, ...] = ()
    after: tuple[TokenId, ...] | None = None
    source_language_tokens: dict[str, TokenId] = {}
    source_language_last: bool = False
    prompts: dict[str, str] = {}


class GenerationTask(_Strict):
    """A task that the model was trained for: a text before each input, and decoding options."""

    prefix: str = ""
    options: dict[str, bool | int | float] = {}


class GenerationDescription(GenerationTask):
    """How a model generates texts other than translations.

    `prefix` and `options` apply unless a request names one of the `tasks` or values of its own. Options have the names
    of those in requests.
    """

    tasks: dict[str, GenerationTask] = {}


class QualityCalibration(_Strict):
    """Logistic regression from signals of a translated sentence to the probability that it is good.

    Each weight is for the signal of its name in `QualitySignals`. `usual_length_ratio` is subtracted from the signal
    `length_ratio`, whose absolute value is weighted.
    """

    bias: float
    log_probability: float
    source_tokens: float
    characters_per_token: float
    length_ratio: float
    usual_length_ratio: float


# Second attempts for translations that lack something; a bundle names those it needs.
Repair = Literal["numbers", "parts", "capitals"]


class SpanCopying(_Strict):
    """Kinds of spans that the model copies, measured once, and masks that stand for all others.

    `masks` are strings of the vocabulary that mean nothing, the most reliable first. `lost_signs` are characters of the
    vocabulary that the model drops or garbles, such as a currency sign.
    """

    copied: tuple[str, ...] = ()
    masks: tuple[str, ...] = ()
    lost_signs: tuple[str, ...] = ()


def _is_default(tokenizer: TokenizerDescription) -> bool:
    # Left out of `bundle.json`, so that releases without this field can read the bundle.
    return tokenizer == TokenizerDescription()


class BundleConfig(_Strict):
    """Content of `bundle.json`.

    `target_language_tokens` maps a target language to the token with which a source sentence begins, in models with
    several target languages; it is empty in all others. `first_language_tokens` maps a target language to the token
    with which its outputs begin, at no cost. `language_aliases` maps other spellings of languages to those of the
    bundle. `attention_scale` is the factor of the products of queries and
    keys in the decoder's cross-attention. `generation` is None for a model that only translates; a model without
    languages does not translate. `quality` has a calibration for each pair of languages that was calibrated, under
    names such as `en-de`; `repairs` has those that gain for each of these pairs. `copying` is None before it was
    measured. With `has_shortlist`, a file lists the tokens that translations of a source may have
    (bundle.shortlist), and the decoder has inputs for lists.

    In layout `step` one graph computes a whole decoder step. In layout `parts`, which can be captured as CUDA graphs,
    decoder.onnx is followed by choose.onnx (state of the next step) or rank.onnx (scores); move.onnx moves rows.
    """

    format: Literal["kvasir-bundle"] = FORMAT_NAME
    format_version: Literal[4] = FORMAT_VERSION
    name: Annotated[str, Field(min_length=1)]
    source_languages: tuple[str, ...]
    target_languages: tuple[str, ...]
    target_language_tokens: dict[str, str] = {}
    first_language_tokens: Annotated[dict[str, TokenId], Field(exclude_if=_is_empty)] = {}
    language_aliases: Annotated[dict[str, str], Field(exclude_if=_is_empty)] = {}
    tokenizer: Annotated[TokenizerDescription, Field(exclude_if=_is_default)] = TokenizerDescription()
    precision: Precision
    layout: Layout = "step"
    shapes: Shapes
    attention_scale: Annotated[float, Field(gt=0)]
    special_tokens: SpecialTokens
    generation: Annotated[GenerationDescription | None, Field(exclude_if=_is_none)] = None
    quality: Annotated[dict[str, QualityCalibration], Field(exclude_if=_is_empty)] = {}
    copying: Annotated[SpanCopying | None, Field(exclude_if=_is_none)] = None
    repairs: Annotated[dict[str, tuple[Repair, ...]], Field(exclude_if=_is_empty)] = {}
    has_shortlist: Annotated[bool, Field(exclude_if=_is_false)] = False
    encoder_inputs: tuple[str, ...]
    encoder_outputs: tuple[str, ...]
    decoder_inputs: tuple[str, ...]
    decoder_outputs: tuple[str, ...]
    provenance: Provenance
    files: dict[str, FileRecord]

    @property
    def translates(self) -> bool:
        """Whether the model translates between languages."""
        return bool(self.source_languages and self.target_languages)

    @property
    def embeds(self) -> bool:
        """Whether the encoder graph returns hidden states."""
        return HIDDEN_STATES in self.encoder_outputs

    @property
    def has_decoder(self) -> bool:
        """Whether the bundle has a decoder graph."""
        return self.shapes.num_decoder_layers > 0
