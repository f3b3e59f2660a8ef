"""A model as a checkpoint describes it, in terms that no model family defines."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from torch import Tensor

from model.config import TransformerConfig


@dataclass(frozen=True, slots=True)
class TokenizerFiles:
    """Files of a tokenizer, by their names in a bundle, and the kind of tokenizer that reads them."""

    kind: str
    files: Mapping[str, Path]


@dataclass(frozen=True, slots=True)
class Languages:
    """Languages of a model: BCP 47 codes, as short as possible.

    `source_prefix` maps a target language to the token with which a source begins; it is empty in models that do not
    select the target language this way.
    """

    source: tuple[str, ...]
    target: tuple[str, ...]
    source_prefix: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Provenance:
    """Origin of a checkpoint. `source` is the folder's name, or the hub repository and its commit."""

    source: str
    family: str
    weights_sha256: str


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A checkpoint after its family's reader.

    `weights` has one tensor for each parameter of `Transformer(config)`, by the parameter's name and of its shape, in
    the precision of the checkpoint.
    """

    config: TransformerConfig
    weights: Mapping[str, Tensor]
    tokenizer: TokenizerFiles
    languages: Languages
    provenance: Provenance
