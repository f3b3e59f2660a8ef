"""Sizes and layers that the graphs of both layouts share: attention, position biases, projections, embeddings.

Attention is the operator `com.microsoft.GroupQueryAttention`: its cost depends on each row's valid length, and it
appends to the caches in place. Eager mode runs its equivalent in PyTorch, so that a module can be compared with its
graph. Weights are in the layout of ONNX.
"""

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from bundle.manifest import Shapes
from model.attention import MultiHeadAttention
from model.config import TransformerConfig
from model.layers import DecoderLayer, EncoderLayer, RecurrentDecoderLayer
from model.positions import NoPositions, RelativePositionBias
from model.transformer import TokenStack

# ONNX Runtime 1.31 rejects other head sizes on the CPU at run time.
_HEAD_DIM_MULTIPLE = 8
_STATE_MULTIPLE = 8


def padded_head_dim(head_dim: int) -> int:
    """Return the head size of a graph for a model's `head_dim`: the next one that the operator supports."""
    return -(-head_dim // _HEAD_DIM_MULTIPLE) * _HEAD_DIM_MULTIPLE


@dataclass(frozen=True, slots=True)
class Heads:
    """Attention heads padded for the operator.

    Each head has the model's `head_dim` numbers, then zeros up to `padded_dim`. The zeros add nothing to products of
    queries and keys, and their values have no weights in the output projection. `scale`, the factor of the products of
    queries and keys, is the model's.
    """

    count: int
    head_dim: int
    padded_dim: int
    scale: float

    @classmethod
    def of(cls, attention: MultiHeadAttention) -> "Heads":
        """Return the heads of a layer."""
        return cls(attention.num_heads, attention.head_dim, padded_head_dim(attention.head_dim), attention.scale)

    @property
    def width(self) -> int:
        """Total width of all heads."""
        return self.count * self.padded_dim

    def pad_outputs(self, projection: nn.Linear) -> nn.Linear:
        """Return a projection to queries, keys or values with padded heads."""
        padded = nn.Linear(projection.in_features, self.width, dtype=projection.weight.dtype)
        weight, bias = projection.weight.detach(), bias_of(projection)
        padded.weight = nn.Parameter(self._pad(weight.reshape(self.count, self.head_dim, -1), 1).flatten(0, 1))
        padded.bias = nn.Parameter(self._pad(bias.reshape(self.count, self.head_dim), 1).flatten())
        return padded

    def pad_inputs(self, projection: nn.Linear) -> nn.Linear:
        """Return an output projection that reads padded heads."""
        padded = nn.Linear(self.width, projection.out_features, dtype=projection.weight.dtype)
        weight = projection.weight.detach().reshape(-1, self.count, self.head_dim)
        padded.weight = nn.Parameter(self._pad(weight, 2).flatten(1, 2))
        padded.bias = nn.Parameter(bias_of(projection))
        return padded

    def _pad(self, tensor: Tensor, axis: int) -> Tensor:
        zeros = list(tensor.shape)
        zeros[axis] = self.padded_dim - self.head_dim
        return torch.cat([tensor, tensor.new_zeros(zeros)], dim=axis)


def bias_of(projection: nn.Linear) -> Tensor:
    """Return the bias of a projection, zeros if it has none: all graphs add one."""
    bias: Tensor | None = projection.bias
    weight = projection.weight.detach()
    return weight.new_zeros(weight.shape[0]) if bias is None else bias.detach()


def attend_in_encoder(
    fused: Tensor,
    last_positions: Tensor,
    total: Tensor,
    heads: Heads,
    position_bias: Tensor | None = None,
    *,
    keeps_keys_values: bool = False,
) -> Tensor:
    """Bidirectional self-attention over ragged rows; `fused` [rows, source_len, 3 * width], queries, keys, values.

    `position_bias` [1, heads, source_len, source_len] is added to the scores. On CUDA the operator requires outputs for
    keys and values; `keeps_keys_values` adds them, and nothing reads them.
    """
    rows, source_len, _ = fused.shape
    if torch.onnx.is_in_onnx_export():
        kept = (rows, heads.count, source_len, heads.padded_dim)
        num_outputs = 3 if keeps_keys_values else 1
        attended = torch.onnx.ops.symbolic_multi_out(
            "com.microsoft::GroupQueryAttention",
            (fused, None, None, None, None, last_positions, total, *_in_place(position_bias)),
            attrs={"num_heads": heads.count, "kv_num_heads": heads.count, "causal": 0, "scale": heads.scale},
            dtypes=(fused.dtype,) * num_outputs,
            shapes=((rows, source_len, heads.width), kept, kept)[:num_outputs],
            version=1,
        )
        return attended[0]
    split = (rows, source_len, 3, heads.count, heads.padded_dim)
    queries, keys, values = fused.view(split).permute(2, 0, 3, 1, 4)
    return _grouped_attention(queries, keys, values, last_positions, heads.scale, position_bias)


def attend_in_step(
    query_key_value: tuple[Tensor, Tensor | None, Tensor | None],
    past_keys: Tensor,
    past_values: Tensor,
    positions: Tensor,
    heads: Heads,
    position_bias: Tensor | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """Attention of one token of each row over its cache up to `positions`, where its own key and value are stored.

    Each of `query_key_value` is [rows, 1, width], or the first contains all three side by side. Cross-attention passes
    the key and value that the cache contains already. `position_bias` [rows, heads, 1, cache_len] is added to the
    scores.
    """
    query, key, value = query_key_value
    rows, _, cache_len, _ = past_keys.shape
    if torch.onnx.is_in_onnx_export():
        attended = torch.onnx.ops.symbolic_multi_out(
            "com.microsoft::GroupQueryAttention",
            (
                *(query, key, value, past_keys, past_values, positions),
                torch.scalar_tensor(cache_len, dtype=torch.int32),
                *_in_place(position_bias),
            ),
            attrs={"num_heads": heads.count, "kv_num_heads": heads.count, "scale": heads.scale},
            dtypes=(query.dtype, past_keys.dtype, past_values.dtype),
            shapes=((rows, 1, heads.width), past_keys.shape, past_values.shape),
            version=1,
        )
        return attended[0], attended[1], attended[2]
    if key is None or value is None:
        query, key, value = query.chunk(3, dim=-1)
    split = (rows, heads.count, heads.padded_dim)
    keys, values = past_keys.clone(), past_values.clone()
    every_row = torch.arange(rows)
    keys[every_row, :, positions] = key.reshape(split)
    values[every_row, :, positions] = value.reshape(split)
    queries = query.reshape(split).unsqueeze(2)
    return _grouped_attention(queries, keys, values, positions, heads.scale, position_bias), keys, values


def _in_place(position_bias: Tensor | None) -> tuple[Tensor | None, ...]:
    """Return the inputs of the operator after the seventh, up to the bias."""
    return () if position_bias is None else (None, None, None, position_bias)


def _grouped_attention(
    queries: Tensor,
    keys: Tensor,
    values: Tensor,
    last_positions: Tensor,
    scale: float,
    position_bias: Tensor | None = None,
) -> Tensor:
    """Softmax attention of [rows, heads, query_len, head_dim] over each row's first `last_positions` + 1 positions."""
    rows, heads, query_len, head_dim = queries.shape
    scores = queries @ keys.transpose(-2, -1) * scale
    if position_bias is not None:
        scores = scores + position_bias
    visible = torch.arange(keys.shape[2]) <= last_positions[:, None]  # [rows, source_len]
    probabilities = torch.softmax(scores.masked_fill(~visible[:, None, None, :], -torch.inf), dim=-1)
    # Values after a row's length can be NaN and must not be multiplied.
    attended = probabilities @ values.masked_fill(~visible[:, None, :, None], 0.0)
    return attended.transpose(1, 2).reshape(rows, query_len, heads * head_dim)


class SourceBias(nn.Module):
    """Biases between all tokens of a source. `table` is [heads, 2 * max_tokens - 1], by the key's offset."""

    def __init__(self, bias: RelativePositionBias, max_tokens: int) -> None:
        super().__init__()
        self.table = nn.Parameter(bias.by_offset(1 - max_tokens, max_tokens - 1).detach().contiguous())
        self.max_tokens = max_tokens

    def forward(self, source_len: int) -> Tensor:
        """Return [1, heads, source_len, source_len]."""
        positions = torch.arange(source_len)
        offsets = positions - positions.unsqueeze(1) + (self.max_tokens - 1)
        return _gather(self.table, offsets).unsqueeze(0)


class StepBias(nn.Module):
    """Biases of one new token of each row on its cache. `table` is [heads, max_tokens], by the key's offset up to 0."""

    def __init__(self, bias: RelativePositionBias, max_tokens: int) -> None:
        super().__init__()
        self.table = nn.Parameter(bias.by_offset(1 - max_tokens, 0).detach().contiguous())
        self.max_tokens = max_tokens

    def forward(self, positions: Tensor, cache_len: int) -> Tensor:
        """Return [rows, heads, 1, cache_len]; `positions` [rows] are those of the new tokens."""
        offsets = torch.arange(cache_len) - positions.long().unsqueeze(1) + (self.max_tokens - 1)
        # Keys after the token are invisible; any entry of the table will do.
        offsets = offsets.clamp(min=0, max=self.max_tokens - 1)
        return _gather(self.table, offsets).permute(1, 0, 2).unsqueeze(2)


def _gather(table: Tensor, indices: Tensor) -> Tensor:
    if not torch.onnx.is_in_onnx_export():
        return table[:, indices]
    gathered: Tensor = torch.onnx.ops.symbolic(
        "Gather",
        (table, indices),
        attrs={"axis": 1},
        dtype=table.dtype,
        shape=(table.shape[0], *indices.shape),
    )
    return gathered


@dataclass(frozen=True, slots=True)
class ScaledMatrix:
    """A matrix of the model [tokens, d_model], which a constant of the graph contains `scale` times.

    int8 steps are found before the multiplication. So the numbers of embeddings equal those of an output projection
    that shares the matrix, whatever the factors of both.
    """

    rows: Tensor
    scale: float

    def constant(self, *, in_int8: bool) -> Tensor:
        """Return the matrix times its scale; for int8, which is made of `rows`, zeros without memory of their own."""
        return self.rows.new_zeros(1, 1).expand(self.rows.shape) if in_int8 else self.rows * self.scale


class FusedProjection(nn.Module):
    """Projections of one input as one matrix product: [.., d_model] to their outputs side by side."""

    def __init__(self, projections: list[nn.Linear]) -> None:
        super().__init__()
        # Stored as [d_model, outputs], the layout of ONNX MatMul, so that no transposition runs.
        self.weight = nn.Parameter(torch.cat([p.weight.detach() for p in projections]).T.contiguous())
        self.bias = nn.Parameter(torch.cat([bias_of(p) for p in projections]))

    def forward(self, hidden: Tensor) -> Tensor:
        """Return all outputs side by side."""
        return hidden @ self.weight + self.bias


def fuse(*projections: nn.Linear) -> FusedProjection:
    """Return projections of one input as one."""
    return FusedProjection(list(projections))


class FeedForwardStep(nn.Module):
    """The feed-forward of a layer."""

    def __init__(self, layer: EncoderLayer | DecoderLayer | RecurrentDecoderLayer) -> None:
        super().__init__()
        self.inner = fuse(layer.feed_forward.inner_proj)
        gate = layer.feed_forward.gate_proj
        self.gate = None if gate is None else fuse(gate)
        self.activation = layer.feed_forward.activation
        self.outer = fuse(layer.feed_forward.outer_proj)

    def forward(self, hidden: Tensor) -> Tensor:
        """Return the outputs of tokens [..., d_model]."""
        inner = self.activation(self.inner(hidden))
        if self.gate is not None:
            inner = inner * self.gate(hidden)
        output: Tensor = self.outer(inner)
        return output


class EmbeddingStep(nn.Module):
    """Input of the first layer: scaled embeddings plus positions, normalised if the model does that.

    `table` has the vectors of all positions; it is None in a model without absolute positions. `matrix` is None in a
    model with token types, which are a part of the weight.
    """

    def __init__(self, stack: TokenStack, max_tokens: int, *, in_int8: bool = False) -> None:
        super().__init__()
        matrix = ScaledMatrix(stack.embedding.weight.detach(), stack.embedding_scale)
        is_scaled_only = stack.token_types is None
        scaled = matrix.constant(in_int8=in_int8 and is_scaled_only)
        if stack.token_types is not None:
            scaled = scaled + stack.token_types.weight[0].detach()
        self.weight = nn.Parameter(scaled)
        self.matrix = matrix if is_scaled_only else None
        has_table = not isinstance(stack.positions, NoPositions)
        table = stack.positions(0, max_tokens).detach().to(scaled.dtype, copy=True) if has_table else None
        self.register_buffer("table", table)
        self.table: Tensor | None
        self.norm = stack.embedding_norm

    def forward(self, tokens: Tensor) -> Tensor:
        """Embed tokens [rows, source_len], to [rows, source_len, d_model]."""
        vectors = nn.functional.embedding(tokens, self.weight)
        return self._normalise(vectors if self.table is None else vectors + self.table[: tokens.shape[1]])

    def at(self, tokens: Tensor, positions: Tensor) -> Tensor:
        """Embed tokens [rows] at positions [rows], to [rows, d_model]."""
        vectors = nn.functional.embedding(tokens, self.weight)
        if self.table is not None:
            vectors = vectors + nn.functional.embedding(positions, self.table)
        return self._normalise(vectors)

    def _normalise(self, vectors: Tensor) -> Tensor:
        return vectors if self.norm is None else self.norm(vectors)


def state_width(config: TransformerConfig) -> int:
    """Return the size of the state of a decoder layer in the graphs; 0 if the decoder is not recurrent.

    On devices states are moved like keys and values, as equal parts of whole words for each head.
    """
    multiple = _STATE_MULTIPLE * config.decoder_shape.num_heads
    return -(-config.d_model // multiple) * multiple if config.has_recurrent_decoder else 0


def describe_shapes(config: TransformerConfig) -> Shapes:
    """Return the sizes of the graphs of a model with this configuration."""
    shape = config.encoder_shape if config.is_encoder_only else config.decoder_shape
    return Shapes(
        vocab_size=config.vocab_size,
        target_vocab_size=shape.vocab_size,
        d_model=config.d_model,
        num_encoder_layers=config.num_encoder_layers,
        num_decoder_layers=config.num_decoder_layers,
        num_heads=shape.num_heads,
        head_dim=padded_head_dim(shape.head_dim),
        max_source_tokens=config.max_source_tokens,
        max_target_tokens=config.max_target_tokens,
        state_width=state_width(config),
    )
