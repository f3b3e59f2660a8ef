"""A model as a checkpoint describes it, in terms that no model family defines; without torch."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from model.config import TransformerConfig

if TYPE_CHECKING:
    from torch import Tensor


class CheckpointError(ValueError):
    """A checkpoint that cannot be read or contradicts its settings; the message names the file or the weight."""


@dataclass(frozen=True, slots=True)
class SourceTemplate:
    """Tokens around the text of a source: `before`, the text, `after`; None after it is the end-of-sequence token.

    A token of the source language, if the model has them, is the first token, or the last with `language_last`.
    """

    before: tuple[int, ...] = ()
    after: tuple[int, ...] | None = None
    language_last: bool = False


@dataclass(frozen=True, slots=True)
class TokenizerFiles:
    """Files of a tokenizer, by their names in a bundle, and the kind of tokenizer that reads them.

    `converted` are contents of files that the checkpoint has in another format.
    """

    kind: str
    files: Mapping[str, Path]
    template: SourceTemplate = SourceTemplate()
    converted: Mapping[str, bytes] = field(default_factory=dict)

    @property
    def target_vocabulary(self) -> dict[str, int]:
        """The converted vocabulary of the target; that of the source if there is one for both."""
        content = self.converted.get("target_vocab.json") or self.converted.get("vocab.json") or b"{}"
        vocabulary: dict[str, int] = json.loads(content)
        return vocabulary


@dataclass(frozen=True, slots=True)
class Languages:
    """Languages of a model: BCP 47 codes, as short as possible.

    Models select languages in different ways, and each of these is empty in the others. `source_prefix` maps a target
    language to the token with which a source begins, `prompts` to a text before the source's text, `first_tokens` to
    the first token of its outputs. `source_tokens` maps a source language to its token in the template. `aliases` maps
    the checkpoint's spelling of a language to its code.
    """

    source: tuple[str, ...]
    target: tuple[str, ...]
    source_prefix: Mapping[str, str] = field(default_factory=dict)
    prompts: Mapping[str, str] = field(default_factory=dict)
    first_tokens: Mapping[str, int] = field(default_factory=dict)
    source_tokens: Mapping[str, int] = field(default_factory=dict)
    aliases: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class GenerationTask:
    """A task of a model: a text before each input, and decoding options by their names in requests."""

    prefix: str = ""
    options: Mapping[str, bool | int | float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Generation(GenerationTask):
    """How a model generates texts that are not translations; `tasks` have names in requests."""

    tasks: Mapping[str, GenerationTask] = field(default_factory=dict)


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
    the precision of the checkpoint. `generation` is None in families that only translate. `shortlist` is a file of
    Marian's format (bundle.shortlist), and `unread_shortlists` are those in formats that are not read.
    """

    config: TransformerConfig
    weights: "Mapping[str, Tensor]"
    tokenizer: TokenizerFiles
    languages: Languages
    provenance: Provenance
    is_quantized: bool = False
    generation: Generation | None = None
    shortlist: Path | None = None
    unread_shortlists: tuple[Path, ...] = ()
