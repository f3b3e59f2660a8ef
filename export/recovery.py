"""From a bundle of a Marian model back to a checkpoint.

`export.graphs` joins the projections of one input, widens heads with zeros, multiplies embeddings by their scale and
adds negative infinity to the bias of suppressed tokens. This module undoes each of these.
"""

import hashlib
import math
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import onnx
import torch
from google.protobuf.message import DecodeError
from numpy.typing import NDArray
from onnx import AttributeProto, NodeProto, numpy_helper
from onnx.checker import ValidationError
from torch import Tensor

from bundle.loading import load_bundle
from bundle.manifest import BundleError
from bundle.tensors import SHORTLIST_FILE
from export.checks import ExportError
from export.staging import require_empty, staged
from export.verification.verify import verify_bundle
from model.checkpoints.archives import sha256_of
from model.checkpoints.checkpoint import Checkpoint, CheckpointError, Languages, Provenance, TokenizerFiles
from model.checkpoints.hugging_face_files import CheckpointFolder, Settings, errors_of, read_settings
from model.checkpoints.weights import build_model, parameter_shapes, select_weights
from model.config import Activation, SinusoidLayout, StackShape, TransformerConfig
from model.families.marian.hugging_face import TOKENIZER_FILES, require_marian, write_marian
from model.families.marian.native import MarianNative
from model.families.marian.npz_writing import require_marian_npz, write_marian_npz
from model.positions import sinusoid_of
from model.transformer import Transformer

Matrix = NDArray[np.float32]
_PRODUCTS = frozenset({"MatMul", "Gemm", "Linear", "LinearRelu", "LinearAdd", "LinearAddNormalization"})
MANIFEST_FILE = "bundle.json"
FORMAT_VERSION = 4
_ATTENTIONS = ("GroupQueryAttention", "SourceAttention")
_NORMS = ("LayerNormalization", "LinearAddNormalization")
_EMBEDDING = "embed.weight"
_OUTPUT = "output_weight"
# float16 and int8 round both; another matrix differs by its whole size.
_MAX_DIFFERENCE = 0.1


class GraphWeights:
    """Nodes and constants of one graph. Matrices are [inputs, outputs], as the graph multiplies with them."""

    def __init__(self, file: Path) -> None:
        self.file = file
        try:
            model = onnx.load(file)
        except (OSError, DecodeError, ValidationError) as error:
            raise CheckpointError(f"{file}: not readable as ONNX (damaged or truncated): {error}") from error
        self.nodes: list[NodeProto] = list(model.graph.node)
        self._constants = {tensor.name: tensor for tensor in model.graph.initializer}

    def __contains__(self, name: str) -> bool:
        return name in self._constants

    def constant(self, name: str) -> NDArray[np.generic]:
        """Return a constant as it is stored. Raises `CheckpointError` if the graph has none of this name."""
        if name not in self._constants:
            raise CheckpointError(
                f"{self.file} has no weights `{name}`: it is the graph of another architecture or of an older export"
            )
        return numpy_helper.to_array(self._constants[name])

    def vector(self, name: str) -> Matrix:
        """Return a vector or a table of floats in float32."""
        return self.constant(name).astype(np.float32)

    def has_matrix(self, name: str) -> bool:
        """Return whether the graph multiplies with a matrix of this name."""
        return name in self or f"{name}/panels" in self

    def matrix(self, name: str, num_inputs: int) -> Matrix:
        """Return a matrix [num_inputs, outputs]."""
        if name in self:
            return self.vector(name)
        steps, scales = self.steps(name, num_inputs)
        return steps * scales

    def steps(self, name: str, num_inputs: int) -> tuple[NDArray[np.int8], Matrix]:
        """Return an int8 matrix [num_inputs, outputs] and the size of a step in each column."""
        scales = self.vector(f"{name}/scales")
        # [panels, inputs / 4, columns of a panel, 4]
        panels = self.constant(f"{name}/panels").astype(np.int8)
        whole = panels.transpose(1, 3, 0, 2).reshape(panels.shape[1] * panels.shape[3], -1)
        return whole[:num_inputs, : len(scales)], scales

    def table(self, name: str, width: int) -> Matrix:
        """Return a table of embeddings [tokens, width]."""
        if name in self:
            return self.vector(name)
        return self.matrix(name, width).T

    def has_node(self, *operators: str) -> bool:
        """Return whether the graph has a node of one of these operators."""
        return any(node.op_type in operators for node in self.nodes)

    def attribute(self, name: str, *operators: str) -> object:
        """Return an attribute of the first node of these operators that has it, None without such a node."""
        for node in self.nodes:
            if node.op_type in operators:
                for attribute in node.attribute:
                    if attribute.name == name:
                        return _value(attribute)
        return None

    def normalises_before_products(self, weight: str) -> bool:
        """Return whether the normalisation with this weight precedes the first product."""
        for node in self.nodes:
            if node.op_type in _PRODUCTS:
                return False
            if node.op_type == "LayerNormalization" and weight in node.input:
                return True
        return False


def _value(attribute: AttributeProto) -> object:
    value: object = onnx.helper.get_attribute_value(attribute)
    return value.decode() if isinstance(value, bytes) else value


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


def embedding_scale(decoder: GraphWeights, num_tokens: int, d_model: int) -> float:
    """Return the factor of the embeddings of a model whose output projection is the embedding of the target.

    Raises `CheckpointError` for a model with another output projection.
    """
    table, output = decoder.table(_EMBEDDING, d_model), _output_rows(decoder, num_tokens, d_model)
    for scale in (math.sqrt(d_model), 1.0):
        if np.linalg.norm(table - scale * output) < _MAX_DIFFERENCE * np.linalg.norm(table):
            return scale
    raise CheckpointError(
        f"{decoder.file}: the output projection is not the embedding of the target; a Marian checkpoint has one matrix"
    )


def has_one_embedding(encoder: GraphWeights, decoder: GraphWeights, d_model: int) -> bool:
    """Return whether source and target have the same table of embeddings."""
    return np.array_equal(encoder.table(_EMBEDDING, d_model), decoder.table(_EMBEDDING, d_model))


def marian_weights(
    config: TransformerConfig, encoder: GraphWeights, decoder: GraphWeights, padded_dim: int
) -> dict[str, Tensor]:
    """Return the weight of every parameter of a model. Heads of the graphs are `padded_dim` wide."""
    weights = dict(_ParameterReader(config, encoder, decoder, padded_dim).parameters())
    return {name: torch.from_numpy(np.ascontiguousarray(weight)) for name, weight in weights.items()}


def _output_rows(decoder: GraphWeights, num_tokens: int, d_model: int) -> Matrix:
    """Return the output projection [tokens, d_model]. Layout `parts` stores rows, and the others columns."""
    if "output_rows" in decoder:
        return decoder.vector("output_rows")[:num_tokens]
    return decoder.matrix(_OUTPUT, d_model).T[:num_tokens]


class _ParameterReader:
    """Parameters of one model, in (name, array) pairs."""

    def __init__(
        self, config: TransformerConfig, encoder: GraphWeights, decoder: GraphWeights, padded_dim: int
    ) -> None:
        self._config, self._encoder, self._decoder = config, encoder, decoder
        self._padded_dim = padded_dim

    def parameters(self) -> Iterator[tuple[str, Matrix]]:
        config, encoder, decoder = self._config, self._encoder, self._decoder
        yield from self._embeddings()
        yield "output_bias", self._output_bias()
        for graph, stack in ((encoder, "encoder"), (decoder, "decoder")):
            if config.embedding_norm:
                yield from self._norm(graph, "embed.norm", f"{stack}.embedding_norm")
            if config.final_norm:
                yield from self._norm(graph, "final_norm", f"{stack}.final_norm")
        for index in range(config.num_encoder_layers):
            yield from self._encoder_layer(f"layers.{index}.", f"encoder.layers.{index}.")
        for index in range(config.num_decoder_layers):
            yield from self._decoder_layer(f"layers.{index}.", f"decoder.layers.{index}.")
        names = [
            f"decoder.layers.{index}.cross_attention.{projection}"
            for index in range(config.num_decoder_layers)
            for projection in ("key_proj", "value_proj")
        ]
        yield from self._fused(encoder, "keys_values", names, config.decoder_shape)

    def _embeddings(self) -> Iterator[tuple[str, Matrix]]:
        config, decoder = self._config, self._decoder
        # The output projection has the embeddings before they were scaled.
        target = _output_rows(decoder, config.decoder_shape.vocab_size, config.d_model)
        if config.tie_embeddings:
            yield "encoder.embedding.weight", target
        else:
            scale = np.float32(math.sqrt(config.d_model) if config.scale_embedding else 1.0)
            yield "encoder.embedding.weight", self._encoder.table(_EMBEDDING, config.d_model) / scale
            yield "decoder.embedding.weight", target

    def _output_bias(self) -> Matrix:
        decoder, num_tokens = self._decoder, self._config.decoder_shape.vocab_size
        if "output_weight/bias" in decoder:  # without the mask of suppressed tokens
            return decoder.vector("output_weight/bias")[:num_tokens]
        if "output_bias" not in decoder:  # the tracer omits a bias of zeros
            return np.zeros(num_tokens, np.float32)
        bias = decoder.vector("output_bias")[:num_tokens].copy()
        suppressed = list(self._config.suppressed_token_ids)
        bias[suppressed] = decoder.vector("suppressed_bias") if "suppressed_bias" in decoder else 0.0
        return bias

    def _encoder_layer(self, theirs: str, ours: str) -> Iterator[tuple[str, Matrix]]:
        shape = self._config.encoder_shape
        names = [f"{ours}self_attention.{name}_proj" for name in ("query", "key", "value")]
        yield from self._fused(self._encoder, f"{theirs}queries_keys_values", names, shape)
        yield from self._heads_output(self._encoder, f"{theirs}output", f"{ours}self_attention.out_proj", shape)
        yield from self._feed_forward(self._encoder, theirs, ours)
        yield from self._layer_norms(self._encoder, theirs, ours, ("self_attention", "feed_forward"))

    def _decoder_layer(self, theirs: str, ours: str) -> Iterator[tuple[str, Matrix]]:
        graph, shape = self._decoder, self._config.decoder_shape
        is_recurrent = self._config.has_recurrent_decoder
        if is_recurrent:
            yield from self._recurrence(f"{theirs}inputs_gates", f"{ours}recurrence.")
        else:
            names = [f"{ours}self_attention.{name}_proj" for name in ("query", "key", "value")]
            yield from self._fused(graph, f"{theirs}self_queries_keys_values", names, shape)
            yield from self._heads_output(graph, f"{theirs}self_output", f"{ours}self_attention.out_proj", shape)
        yield from self._fused(graph, f"{theirs}cross_queries", [f"{ours}cross_attention.query_proj"], shape)
        yield from self._heads_output(graph, f"{theirs}cross_output", f"{ours}cross_attention.out_proj", shape)
        yield from self._feed_forward(graph, theirs, ours)
        first = "recurrence" if is_recurrent else "self_attention"
        yield from self._layer_norms(graph, theirs, ours, (first, "cross_attention", "feed_forward"))

    def _recurrence(self, name: str, parameters: str) -> Iterator[tuple[str, Matrix]]:
        """Separate inputs and gates, and remove the zeros that widen the state."""
        d_model = self._config.d_model
        matrix = self._decoder.matrix(f"{name}.weight", d_model)
        width = matrix.shape[1] // 2
        yield f"{parameters}input_proj.weight", matrix[:, :d_model].T
        yield f"{parameters}forget_proj.weight", matrix[:, width : width + d_model].T
        yield f"{parameters}forget_proj.bias", self._bias(self._decoder, name, 2 * width)[width : width + d_model]

    def _fused(
        self, graph: GraphWeights, name: str, parameters: Sequence[str], shape: StackShape
    ) -> Iterator[tuple[str, Matrix]]:
        """Separate projections that are side by side, and remove the zeros that widen their heads."""
        split = (len(parameters), shape.num_heads, self._padded_dim)
        matrix = graph.matrix(f"{name}.weight", self._config.d_model)
        columns = matrix.reshape(-1, *split)[..., : shape.head_dim]
        biases = self._bias(graph, name, matrix.shape[1]).reshape(split)[..., : shape.head_dim]
        for index, parameter in enumerate(parameters):
            yield f"{parameter}.weight", columns[:, index].reshape(len(columns), -1).T
            yield f"{parameter}.bias", biases[index].reshape(-1)

    def _heads_output(
        self, graph: GraphWeights, name: str, parameter: str, shape: StackShape
    ) -> Iterator[tuple[str, Matrix]]:
        width = shape.num_heads * self._padded_dim
        matrix = graph.matrix(f"{name}.weight", width)
        rows = matrix.reshape(shape.num_heads, self._padded_dim, -1)[:, : shape.head_dim]
        yield f"{parameter}.weight", rows.reshape(-1, matrix.shape[1]).T
        yield f"{parameter}.bias", self._bias(graph, name, matrix.shape[1])

    def _feed_forward(self, graph: GraphWeights, theirs: str, ours: str) -> Iterator[tuple[str, Matrix]]:
        num_inputs = self._config.d_model
        for part in ("inner", "outer"):
            matrix = graph.matrix(f"{theirs}feed_forward.{part}.weight", num_inputs)
            yield f"{ours}feed_forward.{part}_proj.weight", matrix.T
            num_inputs = matrix.shape[1]
            yield f"{ours}feed_forward.{part}_proj.bias", self._bias(graph, f"{theirs}feed_forward.{part}", num_inputs)

    def _layer_norms(
        self, graph: GraphWeights, theirs: str, ours: str, names: Sequence[str]
    ) -> Iterator[tuple[str, Matrix]]:
        for name in names:
            yield from self._norm(graph, f"{theirs}layer.{name}_norm", f"{ours}{name}_norm")

    def _norm(self, graph: GraphWeights, name: str, parameter: str) -> Iterator[tuple[str, Matrix]]:
        for part in ("weight", "bias"):
            yield f"{parameter}.{part}", graph.vector(f"{name}.{part}")

    def _bias(self, graph: GraphWeights, name: str, width: int) -> Matrix:
        # The tracer omits a bias of zeros.
        return graph.vector(f"{name}.bias") if f"{name}.bias" in graph else np.zeros(width, np.float32)


def export_checkpoint(bundle_folder: Path, folder: Path, report: Callable[[str], None] = lambda _: None) -> None:
    """Write the model of a bundle as a checkpoint to `folder`, which must be empty or missing.

    `report` receives a line for each phase and for everything that the checkpoint lacks. Raises `ExportError`,
    `BundleError` or `CheckpointError`, each a `ValueError`, if the bundle cannot become a checkpoint; then nothing is
    written.
    """
    require_empty(folder)
    if not bundle_folder.is_dir():
        raise BundleError(f"{bundle_folder} is not a folder; only a bundle becomes a checkpoint")
    bundle = load_bundle(bundle_folder)
    report("reading the weights of the bundle")
    checkpoint = read_bundle(bundle_folder)
    try:
        (require_marian_npz if checkpoint.config.has_recurrent_decoder else require_marian)(checkpoint.config)
    except ValueError as error:
        raise ExportError(f"{bundle_folder}: {error}") from error
    model = build_model(checkpoint)
    _report_losses(bundle.config.precision, report)
    if bundle.config.layout == "step":
        report("comparing the checkpoint with the bundle")
        verify_bundle(bundle, model)
    else:
        report("a float16 bundle runs on a GPU only and is not compared with its checkpoint")
    if len(sources := checkpoint.languages.source) > 1:
        report(f"the checkpoint names one source language of {', '.join(sources)}; repeat --source in the next export")
    _write(checkpoint, model, folder, report)


def _report_losses(precision: str, report: Callable[[str], None]) -> None:
    if precision == "int8":
        report("the weights are int8 steps: of the float weights before the first export, their roundings remain")
    elif precision == "float16":
        report("the weights are float16: of the float32 weights before the first export, their roundings remain")


def _write(checkpoint: Checkpoint, model: Transformer, folder: Path, report: Callable[[str], None]) -> None:
    with staged(folder) as staging:
        if checkpoint.config.has_recurrent_decoder:
            write_marian_npz(checkpoint, staging, report)
            if checkpoint.shortlist is not None:
                shutil.copyfile(checkpoint.shortlist, staging / "lex.s2t.bin")
        else:
            source, target = (
                side[0] if side else "" for side in (checkpoint.languages.source, checkpoint.languages.target)
            )
            write_marian(model, staging, source, target)
            for name, path in checkpoint.tokenizer.files.items():
                shutil.copyfile(path, staging / name)
