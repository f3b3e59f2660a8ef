"""Marian checkpoints in Hugging Face's format, as OPUS-MT models are published (Tiedemann and Thottingal 2020)."""

from collections.abc import Iterable, Mapping

from model.checkpoints.checkpoint import Checkpoint, Languages, Provenance, TokenizerFiles
from model.checkpoints.hugging_face_files import CONFIG_FILE, CheckpointFolder, Settings, read_settings, read_weights
from model.checkpoints.language_codes import language_code
from model.checkpoints.weights import parameter_shapes, select_weights
from model.config import TransformerConfig
from model.families.marian.config import SOURCE_EMBEDDING, TARGET_EMBEDDING, marian_config
from model.families.marian.language_tokens import language_tokens

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
    ("model.encoder.embed_tokens", "encoder.embedding"),
    ("model.decoder.embed_tokens", "decoder.embedding"),
    ("model.encoder.layers", "encoder.layers"),
    ("model.decoder.layers", "decoder.layers"),
    ("lm_head", "output_projection"),
    ("final_logits_bias", "output_bias"),
)
SHARED_EMBEDDING = "model.shared.weight"
OUTPUT_PROJECTION = "lm_head.weight"
# Not read: positions are computed, for any length.
POSITION_TABLES = ("model.encoder.embed_positions.weight", "model.decoder.embed_positions.weight")

TOKENIZER_FILES = ("source.spm", "target.spm", "vocab.json", "target_vocab.json")


class Marian:
    """Reader of Marian checkpoints: a `Family`."""

    name = "marian"

    def matches(self, config: Mapping[str, object]) -> bool:
        """Return whether config.json names this family or no family."""
        return config.get("model_type") in ("marian", None)

    def read(self, folder: CheckpointFolder) -> Checkpoint:
        """Read the checkpoint in a folder. Raises `CheckpointError` that names the file, setting or weights."""
        settings = read_settings(folder.path / CONFIG_FILE)
        generation = read_settings(folder.path / "generation_config.json", required=False)
        tokenizer = read_settings(folder.path / "tokenizer_config.json", required=False)
        stored = read_weights(folder.path)

        config = marian_config(settings, generation, stored.tensors)
        shapes = parameter_shapes(config)
        weights = select_weights(
            shapes, stored.tensors, marian_names(config, shapes), _ignored_names(config), folder.name
        )
        files = {name: folder.path / name for name in TOKENIZER_FILES if (folder.path / name).is_file()}
        vocabulary = files.get("vocab.json")
        prefixes = {} if vocabulary is None else language_tokens(read_settings(vocabulary).values)
        return Checkpoint(
            config=config,
            weights=weights,
            tokenizer=TokenizerFiles("marian", files),
            languages=Languages(
                source=_languages(tokenizer, "source_lang"),
                target=tuple(prefixes) or _languages(tokenizer, "target_lang"),
                source_prefix=prefixes,
            ),
            provenance=Provenance(folder.name, self.name, stored.sha256),
        )


def marian_names(config: TransformerConfig, parameters: Iterable[str]) -> dict[str, list[str]]:
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
        names["decoder.embedding.weight"] = [TARGET_EMBEDDING, *output_names]
    return names


def _ignored_names(config: TransformerConfig) -> list[str]:
    # transformers 5 saves, but does not read, a shared embedding beside two that are not tied to it.
    unread = [] if config.tie_embeddings or config.target_vocab_size is not None else [SHARED_EMBEDDING]
    return [*POSITION_TABLES, *unread]


def _languages(tokenizer: Settings, name: str) -> tuple[str, ...]:
    written = tokenizer.text(name, "")
    return (language_code(written),) if written else ()
