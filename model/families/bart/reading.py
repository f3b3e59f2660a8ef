"""Checkpoints of BART, mBART, M2M100 (NLLB-200 included) and Pegasus in Hugging Face's format."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from model.checkpoints.checkpoint import Checkpoint, Provenance, SourceTemplate
from model.checkpoints.errors import CheckpointError
from model.checkpoints.hugging_face_files import CheckpointFolder, read_weights
from model.checkpoints.weights import parameter_shapes, select_weights
from model.families.bart.languages import (
    ReadLanguages,
    mbart_languages,
    no_languages,
    prefix_tokens,
    translation_languages,
)
from model.families.bart_settings import DEFAULTS, BartArchitecture, bart_config
from model.families.bart_weights import ignored_names, stored_names
from model.families.generation_settings import GenerationSettings
from model.families.generation_tasks import read_generation
from model.families.tokenizer_reading import PieceNumbers, read_tokenizer

# Of fairseq: four tokens before the pieces of a SentencePiece model, which begins with three of its own.
_FAIRSEQ = PieceNumbers({"<s>": 0, "<pad>": 1, "</s>": 2, "<unk>": 3}, offset=1)
_PEGASUS = PieceNumbers({"<pad>": 0, "</s>": 1, "<mask_1>": 2, "<mask_2>": 3}, offset=103)


@dataclass(frozen=True, slots=True)
class BartFamily:
    """Reader of the checkpoints of one family: a `Family`."""

    name: str
    model_type: str
    architecture: BartArchitecture
    numbers: PieceNumbers
    languages: ReadLanguages
    defaults: Mapping[str, object]
    """Defaults of the class in transformers that differ from those of BART."""
    begins_with_bos: bool = False
    offset_follows_padding: bool = False
    generates: bool = False

    def matches(self, config: Mapping[str, object]) -> bool:
        """Return whether config.json names this family."""
        return config.get("model_type") == self.model_type

    def read(self, folder: CheckpointFolder) -> Checkpoint:
        """Read the checkpoint in a folder. Raises `CheckpointError` that names the file, setting or weights."""
        settings = GenerationSettings.read(folder.path, {**DEFAULTS, **self.defaults})
        stored = read_weights(folder.path)
        architecture = self.architecture
        if self.offset_follows_padding:
            architecture = replace(architecture, position_offset=settings.padding + 1)
        config = bart_config(settings, architecture, stored.tensors)
        shapes = parameter_shapes(config)
        weights = select_weights(
            shapes, stored.tensors, stored_names(config, shapes), ignored_names(config), folder.name
        )
        template = SourceTemplate((settings.token("bos_token_id"),)) if self.begins_with_bos else SourceTemplate()
        languages, template = self.languages(folder, settings, template)
        tokenizer = read_tokenizer(folder, template, self.numbers, prefix_tokens(folder, languages))
        if languages.source_prefix and tokenizer.kind != "sentencepiece":
            raise CheckpointError(f"{folder.name}: the tokenizer of SMaLL-100 is a SentencePiece model and vocab.json")
        return Checkpoint(
            config=config,
            weights=weights,
            tokenizer=tokenizer,
            languages=languages,
            provenance=Provenance(folder.name, self.name, stored.sha256),
            generation=read_generation(settings, lambda _: False) if self.generates else None,
        )


_LEARNED = BartArchitecture(embedding_norm=True, positions="learned", position_offset=2)

BART = BartFamily(
    "bart",
    "bart",
    _LEARNED,
    PieceNumbers({}),
    no_languages("BartTokenizer", "RobertaTokenizer"),
    {"decoder_start_token_id": 2},
    begins_with_bos=True,
    generates=True,
)
MBART = BartFamily("mbart", "mbart", replace(_LEARNED, pre_norm=True, final_norm=True), _FAIRSEQ, mbart_languages, {})
M2M100 = BartFamily(
    "m2m100",
    "m2m_100",
    BartArchitecture(pre_norm=True, final_norm=True, sinusoid_layout="halves_inclusive", output_bias=False),
    _FAIRSEQ,
    translation_languages,
    {
        "vocab_size": 128112,
        "activation_function": "relu",
        "scale_embedding": True,
        "attention_dropout": 0.1,
        "decoder_start_token_id": 2,
    },
    offset_follows_padding=True,
)
PEGASUS = BartFamily(
    "pegasus",
    "pegasus",
    BartArchitecture(pre_norm=True, final_norm=True, reads_position_tables=True),
    _PEGASUS,
    no_languages("PegasusTokenizer"),
    {"pad_token_id": 0, "bos_token_id": None, "eos_token_id": 1},
    generates=True,
)
