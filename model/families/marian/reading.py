"""Marian checkpoints in Hugging Face's format, as OPUS-MT models are published (Tiedemann and Thottingal 2020)."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from model.checkpoints.hugging_face_files import CONFIG_FILE, Settings, find_checkpoint, read_settings, read_weights
from model.checkpoints.language_codes import language_code, language_tokens
from model.checkpoints.weights import copy_weights
from model.config import TransformerConfig
from model.families.marian.config import SOURCE_EMBEDDING, TARGET_EMBEDDING, marian_config
from model.transformer import Transformer

# Their name -> our name, for the parts of a weight's dotted name; a longer part stands before one it contains.
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
    ("model.encoder.embed_tokens", "encoder.embedding"),
    ("model.decoder.embed_tokens", "decoder.embedding"),
    ("model.encoder.layers", "encoder.layers"),
    ("model.decoder.layers", "decoder.layers"),
    ("lm_head", "output_projection"),
    ("final_logits_bias", "output_bias"),
)
SHARED_EMBEDDING = "model.shared.weight"
OUTPUT_PROJECTION = "lm_head.weight"
# Computed here, for any length.
POSITION_TABLES = ("model.encoder.embed_positions.weight", "model.decoder.embed_positions.weight")

TOKENIZER_FILES = ("source.spm", "target.spm", "vocab.json", "target_vocab.json")


@dataclass(frozen=True, slots=True)
class MarianCheckpoint:
    """A Marian model, ready to run, and what was found beside its weights.

    `tokenizer_files` holds those of TOKENIZER_FILES that are there. Languages are ISO 639-1 codes where there is one;
    `target_language_tokens` is empty unless the source text must begin with a token that names the target language.
    `source` is the folder's name, or the hub repository and its commit.
    """

    config: TransformerConfig
    model: Transformer
    tokenizer_files: Mapping[str, Path]
    source_languages: tuple[str, ...]
    target_languages: tuple[str, ...]
    target_language_tokens: Mapping[str, str]
    source: str
    weights_sha256: str


def load_marian(folder_or_hub_name: str | Path) -> MarianCheckpoint:
    """The Marian checkpoint in a folder, or on the hub if there is no such folder, in evaluation mode and float32.

    Raises CheckpointError, a ValueError, that names the file, setting or weights that are wrong.
    """
    folder = find_checkpoint(folder_or_hub_name)
    settings = read_settings(folder.path / CONFIG_FILE)
    generation = read_settings(folder.path / "generation_config.json", required=False)
    tokenizer = read_settings(folder.path / "tokenizer_config.json", required=False)
    weights = read_weights(folder.path)

    config = marian_config(settings, generation, weights.tensors)
    model = Transformer(config)
    copy_weights(model, weights.tensors, their_names(model), _ignored_names(config), folder.name)
    model.eval()

    tokenizer_files = {name: folder.path / name for name in TOKENIZER_FILES if (folder.path / name).is_file()}
    vocabulary = tokenizer_files.get("vocab.json")
    target_language_tokens = {} if vocabulary is None else language_tokens(read_settings(vocabulary).values)
    return MarianCheckpoint(
        config=config,
        model=model,
        tokenizer_files=tokenizer_files,
        source_languages=_languages(tokenizer, "source_lang"),
        target_languages=tuple(target_language_tokens) or _languages(tokenizer, "target_lang"),
        target_language_tokens=target_language_tokens,
        source=folder.name,
        weights_sha256=weights.sha256,
    )


def their_names(model: Transformer) -> dict[str, list[str]]:
    """For each of our parameters, what it may be called in a checkpoint; a tied weight has several names there."""
    config = model.config
    output_names = [OUTPUT_PROJECTION] if config.tie_output else []
    names: dict[str, list[str]] = {}
    for our_name, _ in model.named_parameters():
        their_name = our_name
        for theirs, ours in RENAMED_PARTS:
            their_name = their_name.replace(ours, theirs)
        names[our_name] = [their_name]
    if config.tie_embeddings:
        names["encoder.embedding.weight"] = [SHARED_EMBEDDING, SOURCE_EMBEDDING, TARGET_EMBEDDING, *output_names]
    else:
        names["decoder.embedding.weight"] = [TARGET_EMBEDDING, *output_names]
    return names


def _ignored_names(config: TransformerConfig) -> list[str]:
    # transformers 5 saves, but does not read, a shared embedding beside two that are not tied to it.
    unread = [] if config.tie_embeddings or config.target_vocab_size is not None else [SHARED_EMBEDDING]
    return [*POSITION_TABLES, *unread]


def _languages(tokenizer: Settings, name: str) -> tuple[str, ...]:
    written = tokenizer.text(name, "")
    return (language_code(written),) if written else ()
