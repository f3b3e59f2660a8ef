"""Marian checkpoints in Hugging Face's format, as OPUS-MT models are published (Tiedemann and Thottingal 2020)."""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path

from safetensors.torch import save_file
from torch import Tensor

from model.atomic_files import replacing
from model.checkpoints.checkpoint import Checkpoint, Languages, Provenance, TokenizerFiles
from model.checkpoints.hugging_face_files import CONFIG_FILE, CheckpointFolder, read_settings, read_weights
from model.checkpoints.language_codes import language_code
from model.checkpoints.weights import parameter_shapes, select_weights
from model.config import TransformerConfig
from model.families.bart import DEFAULTS as _OF_BART
from model.families.bart import SHARED_EMBEDDING, BartArchitecture, bart_config, ignored_names, stored_names
from model.families.generation import GenerationSettings
from model.transformer import Transformer

TOKENIZER_FILES = ("source.spm", "target.spm", "vocab.json", "target_vocab.json")
_DEFAULTS: Mapping[str, object] = {
    **_OF_BART,
    "vocab_size": 58101,
    "pad_token_id": 58100,
    "bos_token_id": None,
    "eos_token_id": 0,
}
"""Defaults of the class in transformers."""
WEIGHTS_FILE = "model.safetensors"
# transformers has other names for these.
_ACTIVATIONS = {"gelu_tanh": "gelu_new"}


class Marian:
    """Reader of Marian checkpoints: a `Family`."""

    name = "marian"

    def matches(self, config: Mapping[str, object]) -> bool:
        """Return whether config.json names this family or no family."""
        return config.get("model_type") in ("marian", None)

    def read(self, folder: CheckpointFolder) -> Checkpoint:
        """Read the checkpoint in a folder. Raises `CheckpointError` that names the file, setting or weights."""
        stored = read_weights(folder.path)

        config = marian_config(GenerationSettings.read(folder.path, _DEFAULTS), stored.tensors)
        shapes = parameter_shapes(config)
        weights = select_weights(
            shapes, stored.tensors, folder.name, stored_names(config, shapes), ignored_names(config)
        )
        files = {name: folder.path / name for name in TOKENIZER_FILES if (folder.path / name).is_file()}
        vocabulary = files.get("vocab.json")
        prefixes = {} if vocabulary is None else language_tokens(read_settings(vocabulary).values)
        return Checkpoint(
            config=config,
            weights=weights,
            tokenizer=TokenizerFiles("marian", files),
            languages=Languages((), tuple(prefixes), source_prefix=prefixes),
            provenance=Provenance(folder.name, self.name, stored.sha256),
        )


def marian_config(settings: GenerationSettings, tensors: Mapping[str, Tensor]) -> TransformerConfig:
    """Return the configuration of a checkpoint. Raises `CheckpointError` that names the file and the setting.

    `norm_placement`, `final_norm` and `embedding_norm` are settings of Kvasir's: published checkpoints have none.
    transformers computes post-norm models only, whatever `normalize_before` and its relatives say.
    """
    config = settings.config
    placement = config.text("norm_placement", "post")
    if placement not in ("post", "pre"):
        config.reject("norm_placement", "must be post or pre")
    architecture = BartArchitecture(
        pre_norm=placement == "pre",
        final_norm=config.boolean("final_norm", False),
        embedding_norm=config.boolean("embedding_norm", False),
        reads_position_tables=True,
    )
    return bart_config(settings, architecture, tensors)


def language_tokens(vocabulary: Iterable[str]) -> dict[str, str]:
    """Return the token `>>code<<` of each target language, by language code.

    The result is empty for a model with one target language. If two tokens belong to one macro-language, the first in
    order gets its code and the second keeps the narrower code.
    """
    tokens: dict[str, str] = {}
    for token in vocabulary:
        if not (token.startswith(">>") and token.endswith("<<") and len(token) > 4):
            continue
        written = token[2:-2]
        for code in (language_code(written), language_code(written, macro_language=False), written):
            if code not in tokens:
                tokens[code] = token
                break
    return tokens


def write_marian(model: Transformer, folder: Path, source_language: str, target_language: str) -> None:
    """Write settings and weights into a folder, without the files of the tokenizer.

    Raises ValueError if the format cannot represent the model, OSError if a file cannot be written.
    """
    config = model.config
    require_marian(config)
    parameters = dict(model.named_parameters())
    names = stored_names(config, parameters)
    weights: dict[str, Tensor] = {}
    for parameter, weight in parameters.items():
        name = (
            SHARED_EMBEDDING
            if parameter == "encoder.embedding.weight" and config.tie_embeddings
            else names[parameter][0]
        )
        tensor = weight.detach().float().cpu().contiguous()
        weights[name] = tensor[None] if parameter == "output_bias" else tensor
    folder.mkdir(parents=True, exist_ok=True)
    with replacing(folder / WEIGHTS_FILE) as file:
        save_file(weights, file, metadata={"format": "pt"})
    _write_json(folder / CONFIG_FILE, _model_settings(config))
    _write_json(folder / "generation_config.json", _generation_settings(config))
    _write_json(folder / "tokenizer_config.json", _tokenizer_settings(config, source_language, target_language))


def require_marian(config: TransformerConfig) -> None:
    """Raise ValueError with every property of a model that the format cannot represent."""
    supported = {
        "decoder": "self_attention",
        "norm": "layer",
        "relative_buckets": 0,
        "gated": False,
        "biases": True,
        "attention_scale": None,
        "output_scale": 1.0,
        "forced_first_token_id": None,
        "positions": "sinusoidal",
        "sinusoid_layout": "halves",
        "position_offset": 0,
        "layer_norm_epsilon": 1e-5,
        "tie_output": True,
        "output_bias": True,
        "head_dim": None,
    }
    wrong = [
        f"`{name}` must be {value!r}. Given: {getattr(config, name)!r}"
        for name, value in supported.items()
        if getattr(config, name) != value
    ]
    if wrong:
        raise ValueError("a Marian checkpoint cannot represent the model: " + "; ".join(wrong))


def _model_settings(config: TransformerConfig) -> dict[str, object]:
    encoder, decoder = config.encoder_shape, config.decoder_shape
    return {
        "activation_dropout": config.activation_dropout,
        "activation_function": _ACTIVATIONS.get(config.activation, config.activation),
        **_norms(config),
        "architectures": ["MarianMTModel"],
        "attention_dropout": config.attention_dropout,
        "bos_token_id": config.eos_token_id if config.bos_token_id is None else config.bos_token_id,
        "d_model": config.d_model,
        "decoder_attention_heads": decoder.num_heads,
        "decoder_ffn_dim": decoder.feed_forward_width,
        "decoder_layerdrop": 0.0,
        "decoder_layers": decoder.num_layers,
        "decoder_start_token_id": config.decoder_start_token_id,
        "decoder_vocab_size": decoder.vocab_size,
        "dropout": config.dropout,
        "dtype": "float32",
        "encoder_attention_heads": encoder.num_heads,
        "encoder_ffn_dim": encoder.feed_forward_width,
        "encoder_layerdrop": 0.0,
        "encoder_layers": encoder.num_layers,
        "eos_token_id": config.eos_token_id,
        "forced_eos_token_id": config.eos_token_id if config.forced_eos else None,
        "init_std": 0.02,
        "is_decoder": False,
        "is_encoder_decoder": True,
        "max_position_embeddings": config.max_source_tokens,
        "model_type": "marian",
        "pad_token_id": config.pad_token_id,
        "scale_embedding": config.scale_embedding,
        "share_encoder_decoder_embeddings": config.tie_embeddings,
        "static_position_embeddings": True,
        "tie_word_embeddings": True,
        "use_cache": True,
        "vocab_size": config.vocab_size,
    }


def _norms(config: TransformerConfig) -> dict[str, object]:
    """Return the settings of norms that differ from a published checkpoint's; transformers ignores them."""
    settings = {
        "norm_placement": (config.norm_placement, "post"),
        "final_norm": (config.final_norm, False),
        "embedding_norm": (config.embedding_norm, False),
    }
    return {name: value for name, (value, usual) in settings.items() if value != usual}


def _generation_settings(config: TransformerConfig) -> dict[str, object]:
    return {
        "bad_words_ids": [[token] for token in config.suppressed_token_ids],
        "bos_token_id": config.eos_token_id if config.bos_token_id is None else config.bos_token_id,
        "decoder_start_token_id": config.decoder_start_token_id,
        "eos_token_id": config.eos_token_id,
        "forced_eos_token_id": config.eos_token_id if config.forced_eos else None,
        "max_length": config.max_target_tokens,
        "num_beams": 4,
        "pad_token_id": config.pad_token_id,
        "use_cache": True,
    }


def _tokenizer_settings(config: TransformerConfig, source_language: str, target_language: str) -> dict[str, object]:
    return {
        "source_lang": source_language,
        "target_lang": target_language,
        "model_max_length": config.max_source_tokens,
        "separate_vocabs": not config.tie_embeddings,
        "tokenizer_class": "MarianTokenizer",
        "eos_token": "</s>",
        "unk_token": "<unk>",
        "pad_token": "<pad>",
    }


def _write_json(path: Path, values: dict[str, object]) -> None:
    path.write_text(json.dumps(values, indent=2) + "\n", "utf-8")
