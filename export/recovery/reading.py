"""Kvasir's own bundles of Marian models: from the graphs back to a checkpoint."""

import hashlib
from collections.abc import Mapping
from pathlib import Path

import torch

from bundle.tensors import SHORTLIST_FILE
from export.recovery.graph_weights import GraphWeights
from export.recovery.marian_weights import embedding_scale, has_one_embedding, marian_weights
from model.checkpoints.archives import sha256_of
from model.checkpoints.checkpoint import Checkpoint, CheckpointError, Languages, Provenance, TokenizerFiles
from model.checkpoints.hugging_face_files import CheckpointFolder, Settings, errors_of, read_settings
from model.checkpoints.weights import parameter_shapes, select_weights
from model.config import Activation, SinusoidLayout, TransformerConfig
from model.families.marian.hugging_face import TOKENIZER_FILES
from model.families.marian.native import MarianNative
from model.positions import sinusoid_of

MANIFEST_FILE = "bundle.json"
FORMAT_VERSION = 4
_ATTENTIONS = ("GroupQueryAttention", "SourceAttention")
_NORMS = ("LayerNormalization", "LinearAddNormalization")


class KvasirBundle:
    """Reader of bundles of Marian models: a `FolderFormat`.

    int8 weights are read as the products of steps and scales that the graphs multiply with.
    """

    name = "bundle"

    def matches(self, folder: CheckpointFolder) -> bool:
        """Return whether a folder is a bundle."""
        return (folder.path / MANIFEST_FILE).is_file()

    def read(self, folder: CheckpointFolder) -> Checkpoint:
        """Read the model of a bundle. Raises `CheckpointError` with the reason if it is no Marian model."""
        manifest = read_settings(folder.path / MANIFEST_FILE)
        _require_format(manifest, folder)
        _require_tokenizer(manifest, folder)
        digest = _checked_digest(manifest, folder)
        encoder, decoder = (GraphWeights(folder.path / f"{name}.onnx") for name in ("encoder", "decoder"))
        config = _config(manifest, encoder, decoder)
        weights = marian_weights(config, encoder, decoder, _section(manifest, "shapes").integer("head_dim"))
        files = {name: folder.path / name for name in TOKENIZER_FILES if (folder.path / name).is_file()}
        files.setdefault("target.spm", folder.path / "source.spm")
        prefixes = _section(manifest, "target_language_tokens").values
        return Checkpoint(
            config=config,
            weights=select_weights(parameter_shapes(config), weights, folder.name),
            tokenizer=TokenizerFiles("marian", files),
            languages=Languages(
                source=_languages(manifest, "source_languages"),
                target=_languages(manifest, "target_languages"),
                source_prefix={language: str(token) for language, token in prefixes.items()},
            ),
            provenance=Provenance(folder.name, "marian", digest),
            shortlist=folder.path / SHORTLIST_FILE if manifest.values.get("has_shortlist") is True else None,
        )


def read_bundle(folder: Path) -> Checkpoint:
    """Read the model of the bundle in a folder. Raises `CheckpointError`."""
    return KvasirBundle().read(CheckpointFolder(folder, folder.resolve().name))


def _require_format(manifest: Settings, folder: CheckpointFolder) -> None:
    version = manifest.values.get("format_version")
    if manifest.values.get("format") != "kvasir-bundle" or version != FORMAT_VERSION:
        remedy = "upgrade Kvasir" if isinstance(version, int) and version > FORMAT_VERSION else "export it again"
        raise CheckpointError(
            f"{folder.path}: the weights of a bundle are read from format version {FORMAT_VERSION}. "
            f"Given: {version!r}; {remedy}"
        )


def _require_tokenizer(manifest: Settings, folder: CheckpointFolder) -> None:
    """Raise `CheckpointError` for a model whose texts Marian's tokenizer does not encode."""
    kind = _section(manifest, "tokenizer").text("kind", "marian")
    missing = [name for name in ("source.spm", "vocab.json") if not (folder.path / name).is_file()]
    family = _section(manifest, "provenance").text("family", "unknown")
    # Firefox's models have one vocabulary for both languages.
    is_known = kind == "marian" or (kind == "sentencepiece" and family == MarianNative.name)
    if not is_known or missing or manifest.values.get("generation") is not None:
        raise CheckpointError(
            f"{folder.path}: only bundles of Marian models become checkpoints again. Given: a model of the family "
            f"{family} with a tokenizer of kind {kind}; keep the checkpoint that it was exported from"
        )


def _checked_digest(manifest: Settings, folder: CheckpointFolder) -> str:
    """Return the SHA-256 of all files with weights. Raises `CheckpointError` for a file that has changed."""
    together = hashlib.sha256()
    for name, record in sorted(_section(manifest, "files").values.items()):
        path = folder.path / Path(name).name
        if not path.is_file():
            raise CheckpointError(f"{path} is missing; {MANIFEST_FILE} lists it")
        digest = sha256_of(path)
        if not isinstance(record, dict) or record.get("sha256") != digest:
            raise CheckpointError(f"{path}: its SHA-256 differs from {MANIFEST_FILE} (damaged or replaced)")
        together.update(digest.encode())
    return together.hexdigest()


def _config(manifest: Settings, encoder: GraphWeights, decoder: GraphWeights) -> TransformerConfig:
    shapes, special = _section(manifest, "shapes"), _section(manifest, "special_tokens")
    d_model, target_size = shapes.integer("d_model"), shapes.integer("target_vocab_size")
    num_layers = shapes.integer("num_encoder_layers"), shapes.integer("num_decoder_layers")
    if num_layers[1] == 0:
        raise CheckpointError(f"{encoder.file.parent}: a Marian checkpoint has a decoder, and this bundle has none")
    tie_embeddings = shapes.integer("vocab_size") == target_size and has_one_embedding(encoder, decoder, d_model)
    widths = [_inner_width(graph, num) for graph, num in zip((encoder, decoder), num_layers, strict=True)]
    scale = embedding_scale(decoder, target_size, d_model)
    suppressed = special.values.get("suppressed") or []
    epsilon = encoder.attribute("epsilon", *_NORMS)
    with errors_of(MANIFEST_FILE):
        return TransformerConfig(
            vocab_size=shapes.integer("vocab_size"),
            target_vocab_size=None if tie_embeddings else target_size,
            pad_token_id=special.integer("padding"),
            eos_token_id=special.integer("end_of_sequence"),
            decoder_start_token_id=special.integer("decoder_start"),
            d_model=d_model,
            num_heads=_num_heads(encoder, shapes.integer("num_heads")),
            decoder_num_heads=shapes.integer("num_heads"),
            feed_forward_width=widths[0],
            decoder_feed_forward_width=widths[1],
            num_encoder_layers=num_layers[0],
            num_decoder_layers=num_layers[1],
            decoder="ssru" if shapes.integer("state_width", 0) else "self_attention",
            activation=_activation(encoder),
            norm_placement="pre" if _is_pre_norm(encoder) else "post",
            final_norm="final_norm.weight" in encoder,
            layer_norm_epsilon=1e-5 if epsilon is None else round(float(str(epsilon)), 12),
            sinusoid_layout=_sinusoid_layout(encoder),
            embedding_norm="embed.norm.weight" in encoder,
            scale_embedding=scale != 1.0,
            tie_embeddings=tie_embeddings,
            output_bias=True,
            max_source_tokens=shapes.integer("max_source_tokens"),
            max_target_tokens=shapes.integer("max_target_tokens"),
            suppressed_token_ids=tuple(suppressed) if isinstance(suppressed, list) else (),
            forced_first_token_id=special.optional_integer("forced_first"),
            forced_eos=special.boolean("forced_end", False),
        )


def _section(manifest: Settings, name: str) -> Settings:
    values = manifest.values.get(name, {})
    if not isinstance(values, Mapping):
        manifest.reject(name, "must be an object")
    return Settings(f"{manifest.file_name}, `{name}`", dict(values))


def _languages(manifest: Settings, name: str) -> tuple[str, ...]:
    values = manifest.values.get(name)
    if not isinstance(values, list):
        manifest.reject(name, "must be a list")
    return tuple(map(str, values))


def _inner_width(graph: GraphWeights, num_layers: int) -> int:
    """Return the width of the feed-forwards. Raises `CheckpointError` if they are gated."""
    if any(graph.has_matrix(f"layers.{index}.feed_forward.gate.weight") for index in range(num_layers)):
        raise CheckpointError(f"{graph.file}: the feed-forwards are gated; those of a Marian checkpoint are not")
    name = "layers.0.feed_forward.inner.weight"
    scales = f"{name}/scales"
    return len(graph.constant(scales)) if scales in graph else graph.constant(name).shape[1]


def _num_heads(encoder: GraphWeights, default: int) -> int:
    heads = encoder.attribute("num_heads", *_ATTENTIONS)
    return heads if isinstance(heads, int) else default


def _activation(encoder: GraphWeights) -> Activation:
    if encoder.has_node("Relu", "LinearRelu"):
        return "relu"
    if encoder.has_node("Gelu"):
        return "gelu_tanh" if encoder.attribute("approximate", "Gelu") == "tanh" else "gelu"
    if encoder.has_node("Erf"):
        return "gelu"
    return "gelu_tanh" if encoder.has_node("Tanh") else "silu"


def _is_pre_norm(encoder: GraphWeights) -> bool:
    return encoder.normalises_before_products("layers.0.layer.self_attention_norm.weight")


def _sinusoid_layout(encoder: GraphWeights) -> SinusoidLayout:
    """Return the layout of the positions. Raises `CheckpointError` if they are not sinusoids from position 0."""
    if "embed.table" in encoder:
        found = sinusoid_of(torch.from_numpy(encoder.vector("embed.table")))
        if found is not None and found[1] == 0:
            return found[0]
    raise CheckpointError(f"{encoder.file}: the positions are not sinusoids; those of a Marian checkpoint are")
