"""Weights of a Marian model from the graphs of its bundle, by parameter name.

`export/graphs` joins the projections of one input, widens heads with zeros, multiplies embeddings by their scale and
adds negative infinity to the bias of suppressed tokens. This module undoes each of these.
"""

import math
from collections.abc import Iterator, Sequence

import numpy as np
import torch
from torch import Tensor

from export.recovery.graph_weights import GraphWeights, Matrix
from model.checkpoints.checkpoint import CheckpointError
from model.config import StackShape, TransformerConfig

_EMBEDDING = "embed.weight"
_OUTPUT = "output_weight"
# float16 and int8 round both; another matrix differs by its whole size.
_MAX_DIFFERENCE = 0.1


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
    weights = dict(_Reader(config, encoder, decoder, padded_dim).parameters())
    return {name: torch.from_numpy(np.ascontiguousarray(weight)) for name, weight in weights.items()}


def _output_rows(decoder: GraphWeights, num_tokens: int, d_model: int) -> Matrix:
    """Return the output projection [tokens, d_model]. Layout `parts` stores rows, and the others columns."""
    if "output_rows" in decoder:
        return decoder.vector("output_rows")[:num_tokens]
    return decoder.matrix(_OUTPUT, d_model).T[:num_tokens]


class _Reader:
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
