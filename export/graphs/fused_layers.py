"""Layers that both graphs of layout `step` share, with weights in the layout of ONNX."""

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from export.graphs.attention import bias_of
from model.layers import DecoderLayer, EncoderLayer, RecurrentDecoderLayer
from model.positions import NoPositions
from model.transformer import TokenStack


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
