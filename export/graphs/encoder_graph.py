"""The encoder graph as a PyTorch module.

No operation mixes rows: the result of a row does not depend on the other rows.
"""

import torch
from torch import Tensor, nn

from export.graphs.attention import Heads, attend_in_encoder
from export.graphs.fused_layers import EmbeddingStep, FeedForwardStep, ScaledMatrix, fuse
from export.graphs.position_bias import SourceBias
from model.layers import EncoderLayer
from model.transformer import EncoderModel, Transformer


class _EncoderLayerStep(nn.Module):
    """An encoder layer over flat tokens [rows * source_len, d_model], or over [rows, source_len, d_model]."""

    def __init__(self, layer: EncoderLayer) -> None:
        super().__init__()
        self.layer = layer
        attention = layer.self_attention
        self.heads = Heads.of(attention)
        projections = (attention.query_proj, attention.key_proj, attention.value_proj)
        self.queries_keys_values = fuse(*map(self.heads.pad_outputs, projections))
        self.output = fuse(self.heads.pad_inputs(attention.out_proj))
        self.feed_forward = FeedForwardStep(layer)

    def forward(
        self,
        hidden: Tensor,
        last_positions: Tensor,
        total: Tensor,
        position_bias: Tensor | None,
        flat: tuple[int, int] | None = None,
    ) -> Tensor:
        """Run the layer; `flat` is (rows, source_len) if tokens are flat."""
        fused = self.queries_keys_values(self.layer.sublayer_input(hidden, self.layer.self_attention_norm))
        if flat is not None:
            fused = fused.reshape(*flat, -1)
        attended = attend_in_encoder(
            fused, last_positions, total, self.heads, position_bias, keeps_keys_values=flat is None
        )
        attended = self.output(attended if flat is None else attended.reshape(-1, self.heads.width))
        hidden = self.layer.add_sublayer(hidden, attended, self.layer.self_attention_norm)
        transformed = self.feed_forward(self.layer.sublayer_input(hidden, self.layer.feed_forward_norm))
        return self.layer.add_sublayer(hidden, transformed, self.layer.feed_forward_norm)


class EncoderOnlyGraph(nn.Module):
    """Graph of the encoder's layers: source tokens to hidden states.

    `source_tokens` int32 [rows, source_len], `source_lengths` int32 [rows]. Hidden states are undefined after a row's
    length.
    """

    def __init__(self, model: Transformer | EncoderModel, *, in_int8: bool = False) -> None:
        super().__init__()
        config = model.config
        self.embed = EmbeddingStep(model.encoder, config.max_source_tokens, in_int8=in_int8)
        self.layers = nn.ModuleList(_EncoderLayerStep(layer) for layer in model.encoder.layers)
        self.final_norm = model.encoder.final_norm
        relative_bias = model.encoder.relative_bias
        self.source_bias = None if relative_bias is None else SourceBias(relative_bias, config.max_source_tokens)

    @property
    def scaled_matrices(self) -> dict[str, ScaledMatrix]:
        """Matrices of the model that the graph contains multiplied, by the name of the constant."""
        return {} if self.embed.matrix is None else {"embed.weight": self.embed.matrix}

    def flat_hidden(self, source_tokens: Tensor, source_lengths: Tensor) -> Tensor:
        """Return the hidden states [rows * source_len, d_model] of all tokens."""
        rows, source_len = source_tokens.shape
        # Rows and positions are one axis, so that every product is one matrix product over all tokens.
        hidden: Tensor = self.embed(source_tokens).reshape(rows * source_len, -1)
        last_positions = source_lengths - 1
        total = torch.scalar_tensor(source_len, dtype=torch.int32)
        position_bias = None if self.source_bias is None else self.source_bias(source_len)
        for layer in self.layers:
            hidden = layer(hidden, last_positions, total, position_bias, (rows, source_len))
        return hidden if self.final_norm is None else self.final_norm(hidden)

    def forward(self, source_tokens: Tensor, source_lengths: Tensor) -> Tensor:
        """Return the hidden states [rows, source_len, d_model] of a model without a decoder."""
        return self.flat_hidden(source_tokens, source_lengths).reshape(*source_tokens.shape, -1)


class EncoderGraph(EncoderOnlyGraph):
    """Encoder graph: source tokens to cross-attention keys and values of every decoder layer.

    The result is [2 * decoder layers, rows, heads, source_len, head_dim], keys at even indices, undefined after a
    row's length.
    """

    def __init__(self, transformer: Transformer, *, in_int8: bool = False) -> None:
        super().__init__(transformer, in_int8=in_int8)
        decoder_layers = list(transformer.decoder.layers)
        # All layers' keys and values in one product.
        cross = [layer.cross_attention for layer in decoder_layers]
        self.heads = Heads.of(cross[0])
        projections = [proj for attention in cross for proj in (attention.key_proj, attention.value_proj)]
        self.keys_values = fuse(*map(self.heads.pad_outputs, projections))
        self.planes = 2 * len(decoder_layers)

    def forward(self, source_tokens: Tensor, source_lengths: Tensor) -> Tensor:
        """Return cross-attention keys and values of every decoder layer."""
        return self.cross_keys_values(self.flat_hidden(source_tokens, source_lengths), source_tokens)

    def cross_keys_values(self, hidden: Tensor, source_tokens: Tensor) -> Tensor:
        """Return the keys and values of flat hidden states [rows * source_len, d_model]."""
        split = (*source_tokens.shape, self.planes, self.heads.count, self.heads.padded_dim)
        keys_values: Tensor = self.keys_values(hidden).reshape(split)
        return keys_values.permute(2, 0, 3, 1, 4)


class EncoderOutputsGraph(EncoderGraph):
    """`EncoderGraph` with the hidden states [rows, source_len, d_model] as a second output, for embeddings."""

    def forward(  # type: ignore[override]  # one output more
        self, source_tokens: Tensor, source_lengths: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Return cross-attention keys and values, and hidden states."""
        hidden = self.flat_hidden(source_tokens, source_lengths)
        return self.cross_keys_values(hidden, source_tokens), hidden.reshape(*source_tokens.shape, -1)
