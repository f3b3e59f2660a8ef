"""Checkpoints of BART, mBART, M2M100 (NLLB-200 and SMaLL-100 included) and Pegasus in Hugging Face's format.

Settings and names of weights are those of Marian and fairseq, too.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import torch
from torch import Tensor

from model.checkpoints.checkpoint import Checkpoint, CheckpointError, Languages, Provenance, SourceTemplate
from model.checkpoints.hugging_face_files import CheckpointFolder, errors_of, read_settings, read_weights
from model.checkpoints.weights import parameter_shapes, select_weights
from model.config import Activation, Positions, SinusoidLayout, TransformerConfig
from model.families.generation import GenerationSettings, read_generation
from model.families.tokenizers import (
    PieceNumbers,
    language_tokens,
    read_tokenizer,
    selected_by_prefixes,
    selected_by_tokens,
    template_of_class,
)
from model.positions import sinusoid_of

SHARED_EMBEDDING = "model.shared.weight"
SOURCE_EMBEDDING = "model.encoder.embed_tokens.weight"
TARGET_EMBEDDING = "model.decoder.embed_tokens.weight"
OUTPUT_PROJECTION = "lm_head.weight"
OUTPUT_BIAS = "final_logits_bias"

# (name in the checkpoint, our name) for parts of a weight's dotted name. A part precedes the parts that it contains.
RENAMED_PARTS = (
    ("self_attn_layer_norm", "self_attention_norm"),
    ("encoder_attn_layer_norm", "cross_attention_norm"),
    ("final_layer_norm", "feed_forward_norm"),
    ("self_attn", "self_attention"),
    ("encoder_attn", "cross_attention"),
    ("q_proj", "query_proj"),
    ("k_proj", "key_proj"),
    ("v_proj", "value_proj"),
    ("fc1", "feed_forward.inner_proj"),
    ("fc2", "feed_forward.outer_proj"),
    ("model.encoder.layernorm_embedding", "encoder.embedding_norm"),
    ("model.decoder.layernorm_embedding", "decoder.embedding_norm"),
    ("model.encoder.embed_tokens", "encoder.embedding"),
    ("model.decoder.embed_tokens", "decoder.embedding"),
    ("model.encoder.embed_positions", "encoder.positions"),
    ("model.decoder.embed_positions", "decoder.positions"),
    ("model.encoder.layer_norm", "encoder.final_norm"),
    ("model.decoder.layer_norm", "decoder.final_norm"),
    ("model.encoder.layers", "encoder.layers"),
    ("model.decoder.layers", "decoder.layers"),
    ("lm_head", "output_projection"),
    (OUTPUT_BIAS, "output_bias"),
)
POSITION_TABLES = tuple(f"model.{stack}.embed_positions.weight" for stack in ("encoder", "decoder"))
# Not read where positions are computed, for any length. transformers never reads the second of each stack.
_UNREAD_TABLES = (*POSITION_TABLES, *(f"{name}s" for name in POSITION_TABLES))
ACTIVATIONS: dict[str, Activation] = {
    "relu": "relu",
    "gelu": "gelu",
    "gelu_new": "gelu_tanh",
    "gelu_pytorch_tanh": "gelu_tanh",
    "silu": "silu",
    "swish": "silu",
}
DEFAULTS: Mapping[str, object] = {
    "vocab_size": 50265,
    "d_model": 1024,
    "encoder_layers": 12,
    "decoder_layers": 12,
    "encoder_attention_heads": 16,
    "decoder_attention_heads": 16,
    "encoder_ffn_dim": 4096,
    "decoder_ffn_dim": 4096,
    "max_position_embeddings": 1024,
    "activation_function": "gelu",
    "scale_embedding": False,
    "dropout": 0.1,
    "attention_dropout": 0.0,
    "pad_token_id": 1,
    "bos_token_id": 0,
    "eos_token_id": 2,
}
"""Defaults of BART's class in transformers; other families differ in some."""
# The epsilon of all LayerNorms in this family; no setting changes it.
_EPSILON = 1e-5
# Languages of M2M100, in the order of their tokens, which follow the vocabulary; no file of a checkpoint has to list
# them (Fan et al. 2021, arXiv:2010.11125).
_M2M100_LANGUAGES = (
    "af am ar ast az ba be bg bn br bs ca ceb cs cy da de el en es et fa ff fi fr fy ga gd gl gu ha he hi hr ht hu hy "
    "id ig ilo is it ja jv ka kk km kn ko lb lg ln lo lt lv mg mk ml mn mr ms my ne nl no ns oc or pa pl ps pt ro ru "
    "sd si sk sl so sq sr ss su sv sw ta th tl tn tr uk ur uz vi wo xh yi yo zh zu"
)
# The multilingual models of WMT 2021 have the same format.
_WMT21_LANGUAGES = "en ha is ja cs ru zh de"
_SMALL100_CODE, _SMALL100_LAYERS = "tokenization_small100.py", (12, 3)
_M2M100_CLASSES = ("", "M2M100Tokenizer", "NllbTokenizer", "PreTrainedTokenizer", "TokenizersBackend")

ReadLanguages = Callable[[CheckpointFolder, GenerationSettings, SourceTemplate], tuple[Languages, SourceTemplate]]
"""Returns the languages of a checkpoint and, from the family's template of sources, its own."""


def stored_names(config: TransformerConfig, parameters: Iterable[str]) -> dict[str, list[str]]:
    """Return the names that each parameter can have in a checkpoint; a tied weight has several."""
    output_names = [OUTPUT_PROJECTION] if config.tie_output else []
    names: dict[str, list[str]] = {}
    for parameter in parameters:
        name = parameter
        for theirs, ours in RENAMED_PARTS:
            name = name.replace(ours, theirs)
        names[parameter] = [name]
    if config.tie_embeddings:
        names["encoder.embedding.weight"] = [SHARED_EMBEDDING, SOURCE_EMBEDDING, TARGET_EMBEDDING, *output_names]
    else:
        names["encoder.embedding.weight"] = [SOURCE_EMBEDDING]
        names["decoder.embedding.weight"] = [TARGET_EMBEDDING, *output_names]
    return names


def ignored_names(config: TransformerConfig) -> list[str]:
    """Return names that are allowed in a checkpoint and not read."""
    tables = list(_UNREAD_TABLES) if config.positions == "sinusoidal" else []
    biases = [] if config.output_bias else [OUTPUT_BIAS]
    # transformers 5 saves, but does not read, a shared embedding alongside two that are not tied to it.
    unread = [] if config.tie_embeddings or config.target_vocab_size is not None else [SHARED_EMBEDDING]
    return [*tables, *biases, *unread]


@dataclass(frozen=True, slots=True)
class BartArchitecture:
    """Choices that are the same in all checkpoints of a family, so that no setting names them."""

    pre_norm: bool = False
    final_norm: bool = False
    embedding_norm: bool = False
    positions: Positions = "sinusoidal"
    sinusoid_layout: SinusoidLayout = "halves"
    position_offset: int = 0
    output_bias: bool = True
    reads_position_tables: bool = False
    """Whether stored tables count where positions are sinusoidal."""


def bart_config(
    settings: GenerationSettings, architecture: BartArchitecture, tensors: Mapping[str, Tensor]
) -> TransformerConfig:
    """Return the configuration of a checkpoint. Raises `CheckpointError` that names the file and the setting."""
    config = settings.config
    activation = config.text("activation_function", "gelu")
    if activation not in ACTIVATIONS:
        config.reject("activation_function", f"must be one of {', '.join(ACTIVATIONS)}")
    vocab_size = config.integer("vocab_size")
    one_vocabulary = config.boolean("share_encoder_decoder_embeddings", True)
    tie_output = config.boolean("tie_word_embeddings", True)
    max_tokens = config.integer("max_position_embeddings")
    with errors_of(config.file_name):
        return TransformerConfig(
            vocab_size=vocab_size,
            target_vocab_size=None if one_vocabulary else config.integer("decoder_vocab_size", vocab_size),
            d_model=config.integer("d_model"),
            num_heads=config.integer("encoder_attention_heads"),
            decoder_num_heads=config.integer("decoder_attention_heads"),
            feed_forward_width=config.integer("encoder_ffn_dim"),
            decoder_feed_forward_width=config.integer("decoder_ffn_dim"),
            num_encoder_layers=config.integer("encoder_layers"),
            num_decoder_layers=config.integer("decoder_layers"),
            dropout=config.number("dropout", 0.1),
            attention_dropout=config.number("attention_dropout", 0.0),
            activation_dropout=config.number("activation_dropout", 0.0),
            activation=ACTIVATIONS[activation],
            norm_placement="pre" if architecture.pre_norm else "post",
            final_norm=architecture.final_norm,
            layer_norm_epsilon=_EPSILON,
            embedding_norm=architecture.embedding_norm,
            positions=_positions(architecture, tensors),
            sinusoid_layout=architecture.sinusoid_layout,
            position_offset=architecture.position_offset,
            scale_embedding=config.boolean("scale_embedding", False),
            tie_embeddings=one_vocabulary and not _embeddings_differ(tie_output, tensors),
            tie_output=tie_output,
            output_bias=architecture.output_bias,
            max_source_tokens=max_tokens,
            max_target_tokens=max_tokens,
            **settings.tokens(),
        )


def _positions(architecture: BartArchitecture, tensors: Mapping[str, Tensor]) -> Positions:
    """Return the kind of positions: a stored table that is not the computed one counts as learned."""
    tables = [tensors[name] for name in POSITION_TABLES if name in tensors]
    if not architecture.reads_position_tables:
        return architecture.positions
    computed = architecture.sinusoid_layout, architecture.position_offset
    return "sinusoidal" if all(sinusoid_of(table) == computed for table in tables) else "learned"


def _embeddings_differ(tie_output: bool, tensors: Mapping[str, Tensor]) -> bool:
    # Without tie_word_embeddings, transformers 4 ties the two embeddings of one vocabulary and transformers 5 does not.
    # The settings are equal; only the weights differ.
    source, target = tensors.get(SOURCE_EMBEDDING), tensors.get(TARGET_EMBEDDING)
    return not tie_output and source is not None and target is not None and not torch.equal(source, target)


def no_languages(*classes: str) -> ReadLanguages:
    """Return a reader of families without tokens of languages, whose tokenizers have these classes."""

    def read(
        folder: CheckpointFolder, settings: GenerationSettings, template: SourceTemplate
    ) -> tuple[Languages, SourceTemplate]:
        return Languages((), ()), template_of_class(folder, template, classes)

    return read


def translation_languages(
    folder: CheckpointFolder, settings: GenerationSettings, template: SourceTemplate
) -> tuple[Languages, SourceTemplate]:
    """Return the languages of M2M100, NLLB-200 or SMaLL-100.

    In the first two, a token of the source language is before the text, or with NLLB's `legacy_behaviour` the last one,
    and the target's is the first one of the output. SMaLL-100 has the target's token before the text (Mohammadshahi et
    al. 2022, arXiv:2210.11621), and nothing in its settings is different but the class of its tokenizer.
    """
    tokens = language_tokens(folder)
    num_layers = settings.config.integer("encoder_layers"), settings.config.integer("decoder_layers")
    if not tokens and is_small100(folder.path, num_layers):
        return selected_by_prefixes(_m2m100_tokens(folder)), template
    tokenizer = read_settings(folder.path / "tokenizer_config.json", required=False)
    if tokenizer.text("tokenizer_class", "").removesuffix("Fast") not in _M2M100_CLASSES:
        tokenizer.reject("tokenizer_class", f"must be one of {', '.join(filter(None, _M2M100_CLASSES))}")
    # Only the tokenizer of NLLB-200 has the setting.
    if tokens and tokenizer.boolean("legacy_behaviour", False):
        template = replace(template, language_last=True)
    return selected_by_tokens(tokens or _m2m100_tokens(folder)), template


def is_small100(folder: Path, num_layers: tuple[int, int]) -> bool:
    """Return whether a model with M2M100's language tokens is SMaLL-100; `num_layers` are those of both stacks.

    Its weights and settings have M2M100's format, and its settings can name M2M100's tokenizer: only the class or the
    code of its own tokenizer tell them apart. Raises `CheckpointError` for a model of its shape with neither: read
    as M2M100 it would write fluent text in the wrong language.
    """
    name = read_settings(folder / "tokenizer_config.json", required=False).text("tokenizer_class", "")
    if name.lower().startswith("small100") or (folder / _SMALL100_CODE).is_file():
        return True
    if num_layers == _SMALL100_LAYERS:
        raise CheckpointError(
            f"{folder.name} has M2M100's language tokens and the 12 + 3 layers of SMaLL-100, whose sources begin with "
            f"the token of the target language; copy its {_SMALL100_CODE} into the folder"
        )
    return False


def mbart_languages(
    folder: CheckpointFolder, settings: GenerationSettings, template: SourceTemplate
) -> tuple[Languages, SourceTemplate]:
    """Return the languages of mBART-50, which are selected as in NLLB-200, or of mBART.

    In mBART, the token of the source language is the last one, and the token of the only target language starts the
    decoder.
    """
    tokens = language_tokens(folder)
    tokenizer = read_settings(folder.path / "tokenizer_config.json", required=False)
    if not tokens:
        return Languages((), ()), template_of_class(folder, template, ("MBartTokenizer", "MBart50Tokenizer"))
    if "50" in tokenizer.text("tokenizer_class", "") or len(tokens) > 25:
        return selected_by_tokens(tokens), template
    languages = selected_by_tokens(tokens, forces_target=False)
    start = settings.decoder_start
    target = tuple(code for code, id_ in languages.source_tokens.items() if id_ == start)
    source = tuple(code for code in languages.source if code not in target)
    return (
        Languages(source, target, source_tokens=languages.source_tokens, aliases=languages.aliases),
        SourceTemplate(template.before, template.after, language_last=True),
    )


def prefix_tokens(folder: CheckpointFolder, languages: Languages) -> dict[str, int]:
    """Return the tokens that begin a source in a target language: vocab.json lacks them, as those of M2M100."""
    return {f"__{written}__": id_ for written, id_ in _m2m100_tokens(folder).items()} if languages.source_prefix else {}


def _m2m100_tokens(folder: CheckpointFolder) -> dict[str, int]:
    """Return the tokens `__xx__` of M2M100 by `xx`: they follow the vocabulary, if there is one."""
    tokenizer = read_settings(folder.path / "tokenizer_config.json", required=False)
    known = {"m2m100": _M2M100_LANGUAGES, "wmt21": _WMT21_LANGUAGES}
    chosen = tokenizer.text("language_codes", "m2m100")
    if chosen not in known:
        tokenizer.reject("language_codes", f"must be one of {', '.join(known)}")
    path = folder.path / "vocab.json"
    if not path.is_file():
        return {}
    first = len(read_settings(path).values)
    return {language: first + index for index, language in enumerate(known[chosen].split())}


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
            shapes, stored.tensors, folder.name, stored_names(config, shapes), ignored_names(config)
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
