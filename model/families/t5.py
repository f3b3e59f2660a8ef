"""Checkpoints of T5, mT5, Flan-T5, MADLAD-400 and ByT5 in Hugging Face's format (Raffel et al. 2020)."""

import re
from collections.abc import Iterable, Mapping

import torch
from torch import Tensor

from model.checkpoints.checkpoint import (
    Checkpoint,
    Languages,
    Provenance,
    SourceTemplate,
    TokenizerFiles,
)
from model.checkpoints.hugging_face_files import (
    CONFIG_FILE,
    CheckpointFolder,
    Settings,
    errors_of,
    read_settings,
    read_weights,
)
from model.checkpoints.language_codes import language_code
from model.checkpoints.weights import parameter_shapes, select_weights
from model.config import Activation, TransformerConfig
from model.families.generation import GenerationSettings, read_generation
from model.families.tokenizers import (
    SENTENCEPIECE_FILES,
    TARGET_TOKEN,
    TOKENIZER_JSON,
    PieceNumbers,
    read_tokenizer,
    selected_by_prompts,
    template_of_class,
)

_ACTIVATIONS: dict[str, Activation] = {
    "relu": "relu",
    "gelu": "gelu",
    "gelu_new": "gelu_tanh",
    "silu": "silu",
    "swish": "silu",
}
_OF_T5: Mapping[str, object] = {
    "vocab_size": 32128,
    "d_model": 512,
    "d_kv": 64,
    "d_ff": 2048,
    "num_layers": 6,
    "num_heads": 8,
    "feed_forward_proj": "relu",
    "pad_token_id": 0,
    "eos_token_id": 1,
}
_OF_MT5 = {"vocab_size": 250112, "d_ff": 1024, "num_layers": 8, "num_heads": 6, "feed_forward_proj": "gated-gelu"}
# Defaults of the classes in transformers.
_DEFAULTS = {"t5": _OF_T5, "mt5": {**_OF_T5, **_OF_MT5}}
_SHARED, _OUTPUT = "shared.weight", "lm_head.weight"
_EMBEDDINGS = ("encoder.embed_tokens.weight", "decoder.embed_tokens.weight")
# Saved by old versions and never used.
_UNUSED = ("decoder.block.0.layer.1.EncDecAttention.relative_attention_bias.weight",)
# The architecture has no limit; these are the lengths of the training.
_MAX_TOKENS, _MAX_BYTES = 512, 1024
_TASK = re.compile(r"translation_([a-z]{2,3})_to_([a-z]{2,3})")


class T5:
    """Reader of T5 checkpoints and their relatives: a `Family`."""

    name = "t5"

    def matches(self, config: Mapping[str, object]) -> bool:
        """Return whether config.json names T5 or mT5."""
        return config.get("model_type") in ("t5", "mt5")

    def read(self, folder: CheckpointFolder) -> Checkpoint:
        """Read the checkpoint in a folder. Raises `CheckpointError` that names the file, setting or weights."""
        model_type = read_settings(folder.path / CONFIG_FILE).text("model_type", "t5")
        settings = GenerationSettings.read(folder.path, _DEFAULTS[model_type])
        stored = read_weights(folder.path)
        tokenizer = read_t5_tokenizer(folder)
        config = t5_config(settings, stored.tensors, tokenizer)
        shapes = parameter_shapes(config)
        names = _stored_names(config, shapes)
        weights = select_weights(shapes, stored.tensors, folder.name, names, _UNUSED)
        return Checkpoint(
            config=config,
            weights=weights,
            tokenizer=tokenizer,
            languages=t5_languages(folder, settings.config),
            provenance=Provenance(folder.name, self.name, stored.sha256),
            generation=read_generation(settings, is_translation_task),
        )


def t5_config(
    settings: GenerationSettings, tensors: Mapping[str, Tensor], tokenizer: TokenizerFiles
) -> TransformerConfig:
    """Return the configuration of a checkpoint. Raises `CheckpointError` that names the file and the setting."""
    config = settings.config
    gated, activation = _feed_forward(config)
    tie_output = _OUTPUT not in tensors or (
        _SHARED in tensors
        and tensors[_OUTPUT].shape == tensors[_SHARED].shape
        and torch.equal(tensors[_OUTPUT], tensors[_SHARED])
    )
    d_model, num_heads = config.integer("d_model"), config.integer("num_heads")
    # Only the first T5 scales its hidden states before the tied output projection. Later versions have a setting that
    # unties it, and some of their checkpoints are tied all the same.
    is_t5 = config.text("model_type", "t5") == "t5"
    is_scaled = is_t5 and config.boolean("scale_decoder_outputs", config.boolean("tie_word_embeddings", True))
    max_tokens = config.integer("n_positions", _MAX_BYTES if tokenizer.kind == "bytes" else _MAX_TOKENS)
    with errors_of(config.file_name):
        return TransformerConfig(
            vocab_size=config.integer("vocab_size"),
            d_model=d_model,
            num_heads=num_heads,
            head_dim=config.integer("d_kv"),
            feed_forward_width=config.integer("d_ff"),
            num_encoder_layers=config.integer("num_layers"),
            num_decoder_layers=config.integer("num_decoder_layers", config.integer("num_layers")),
            dropout=config.number("dropout_rate", 0.1),
            attention_dropout=config.number("dropout_rate", 0.1),
            activation_dropout=config.number("dropout_rate", 0.1),
            activation=activation,
            gated=gated,
            biases=False,
            attention_scale=1.0,
            norm_placement="pre",
            norm="rms",
            final_norm=True,
            layer_norm_epsilon=config.number("layer_norm_epsilon", 1e-6),
            positions="none",
            relative_buckets=config.integer("relative_attention_num_buckets", 32),
            relative_max_distance=config.integer("relative_attention_max_distance", 128),
            scale_embedding=False,
            tie_embeddings=True,
            tie_output=tie_output,
            output_scale=float(d_model**-0.5) if is_scaled else 1.0,
            max_source_tokens=max_tokens,
            max_target_tokens=max_tokens,
            **settings.tokens(),
        )


def _feed_forward(config: Settings) -> tuple[bool, Activation]:
    """Return whether the feed-forward is gated, and its activation; settings of its parts take precedence."""
    written = config.text("feed_forward_proj", "relu")
    # This name has always stood for the approximation.
    of_both = "gelu_new" if written == "gated-gelu" else written.removeprefix("gated-")
    name = config.text("dense_act_fn", of_both)
    if name not in _ACTIVATIONS:
        owner = "dense_act_fn" if name != of_both else "feed_forward_proj"
        config.reject(owner, f"must be one of {', '.join(_ACTIVATIONS)}, in feed_forward_proj alone or after gated-")
    return config.boolean("is_gated_act", written.startswith("gated-")), _ACTIVATIONS[name]


def _stored_names(config: TransformerConfig, parameters: Iterable[str]) -> dict[str, list[str]]:
    names = {parameter: [_stored_name(parameter, gated=config.gated)] for parameter in parameters}
    output = [_OUTPUT] if config.tie_output else []
    return names | {"encoder.embedding.weight": [_SHARED, *_EMBEDDINGS, *output]}


def _stored_name(parameter: str, *, gated: bool) -> str:
    stack, _, rest = parameter.partition(".")
    if stack == "output_projection":
        return _OUTPUT
    if rest == "relative_bias.weight":
        return f"{stack}.block.0.layer.0.SelfAttention.relative_attention_bias.weight"
    if rest.startswith("final_norm"):
        return f"{stack}.final_layer_norm.weight"
    _, _, after = rest.partition("layers.")
    index, _, part = after.partition(".")
    feed_forward = 1 if stack == "encoder" else 2
    renamed = (
        ("self_attention_norm", "0.layer_norm"),
        ("cross_attention_norm", "1.layer_norm"),
        ("feed_forward_norm", f"{feed_forward}.layer_norm"),
        ("self_attention.", "0.SelfAttention."),
        ("cross_attention.", "1.EncDecAttention."),
        ("feed_forward.", f"{feed_forward}.DenseReluDense."),
        ("query_proj", "q"),
        ("key_proj", "k"),
        ("value_proj", "v"),
        ("out_proj", "o"),
        ("inner_proj", "wi_0" if gated else "wi"),
        ("gate_proj", "wi_1"),
        ("outer_proj", "wo"),
    )
    for ours, theirs in renamed:
        part = part.replace(ours, theirs)
    return f"{stack}.block.{index}.layer.{part}"


def read_t5_tokenizer(folder: CheckpointFolder) -> TokenizerFiles:
    """Return the tokenizer: SentencePiece in one of its formats, or bytes for ByT5."""
    settings = read_settings(folder.path / "tokenizer_config.json", required=False)
    has_pieces = any((folder.path / name).is_file() for name in (TOKENIZER_JSON, *SENTENCEPIECE_FILES))
    if settings.text("tokenizer_class", "").startswith("ByT5") and not has_pieces:
        return TokenizerFiles("bytes", {})
    template = template_of_class(folder, SourceTemplate(), ("T5Tokenizer", "ByT5Tokenizer"))
    return read_tokenizer(folder, template, PieceNumbers({}))


def t5_languages(folder: CheckpointFolder, config: Settings) -> Languages:
    """Return the languages of MADLAD-400's tokens, or those of the translation tasks in config.json."""
    if written := _target_tokens(folder):
        return selected_by_prompts(written)
    tasks = config.values.get("task_specific_params")
    prompts, sources = {}, []
    for name, task in tasks.items() if isinstance(tasks, dict) else ():
        found = _TASK.fullmatch(name)
        prefix = task.get("prefix") if isinstance(task, dict) else None
        if found and isinstance(prefix, str):
            sources.append(language_code(found[1]))
            prompts[language_code(found[2])] = prefix
    if len(set(sources)) == 1:
        return Languages((sources[0],), tuple(prompts), prompts=prompts)
    return Languages((), ())


def _entries(listed: object) -> list[object]:
    return listed if isinstance(listed, list) else []


def is_translation_task(name: str) -> bool:
    """Return whether a task in config.json translates between two languages."""
    return _TASK.fullmatch(name) is not None


def _target_tokens(folder: CheckpointFolder) -> list[str]:
    """Return the languages of all tokens `<2xx>` in tokenizer.json, in order."""
    path = folder.path / TOKENIZER_JSON
    if not path.is_file():
        return []
    values = read_settings(path).values
    model, added = values.get("model"), values.get("added_tokens")
    vocabulary = model.get("vocab") if isinstance(model, dict) else None
    pieces: list[object] = []
    for entry in (*_entries(vocabulary), *_entries(added)):
        match entry:
            case [piece, *_] | {"content": piece}:
                pieces.append(piece)
    found = (TARGET_TOKEN.fullmatch(piece) for piece in pieces if isinstance(piece, str))
    return list(dict.fromkeys(match[1] for match in found if match))
