"""Layers of encoder and decoder: attention, feed-forward and recurrence in residual connections with normalisation."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Generic, TypeVar, cast

import torch
from torch import Tensor, nn
from torch.nn import functional

from model.attention import KeysValues, MultiHeadAttention
from model.config import Activation, StackShape, TransformerConfig

LayerType = TypeVar("LayerType", bound=nn.Module)

_ACTIVATIONS: dict[Activation, Callable[[Tensor], Tensor]] = {
    "relu": functional.relu,
    "gelu": functional.gelu,
    "gelu_tanh": partial(functional.gelu, approximate="tanh"),
    "silu": functional.silu,
}


class RMSNorm(nn.Module):
    """hidden / sqrt(mean(hidden ** 2) + epsilon) * weight."""

    def __init__(self, width: int, eps: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))
        self.eps = eps

    def forward(self, hidden: Tensor) -> Tensor:
        """Normalise [..., width]. Squares are float32 in every precision."""
        exact = hidden.float()
        normalised = exact / (exact.pow(2).mean(-1, keepdim=True) + self.eps).sqrt()
        return normalised.to(hidden.dtype) * self.weight


Norm = nn.LayerNorm | RMSNorm


def new_norm(config: TransformerConfig) -> Norm:
    """Return a normalisation of hidden states."""
    kind = nn.LayerNorm if config.norm == "layer" else RMSNorm
    return kind(config.d_model, eps=config.layer_norm_epsilon)


class FeedForward(nn.Module):
    """Position-wise feed-forward: d_model to `width`, activation, back (Vaswani et al. 2017, section 3.3).

    A `gated` one multiplies the activation by `gate_proj`, a second inner projection.
    """

    def __init__(
        self,
        d_model: int,
        width: int,
        activation: Activation,
        dropout: float = 0.0,
        *,
        gated: bool = False,
        biases: bool = True,
    ) -> None:
        super().__init__()
        self.inner_proj = nn.Linear(d_model, width, bias=biases)
        self.gate_proj = nn.Linear(d_model, width, bias=biases) if gated else None
        self.outer_proj = nn.Linear(width, d_model, bias=biases)
        self.activation = _ACTIVATIONS[activation]
        self.dropout = nn.Dropout(dropout)

    def forward(self, hidden: Tensor) -> Tensor:
        """Transform [rows, length, d_model] to the same shape."""
        inner = self.activation(self.inner_proj(hidden))
        if self.gate_proj is not None:
            inner = inner * self.gate_proj(hidden)
        output: Tensor = self.outer_proj(self.dropout(inner))
        return output


class ResidualLayer(nn.Module):
    """A layer of sub-layers in residual connections, with pre-norm or post-norm.

    Post-norm is norm(x + sublayer(x)) (Vaswani et al. 2017); pre-norm is x + sublayer(norm(x)) (Xiong et al. 2020,
    arXiv:2002.04745).
    """

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.pre_norm = config.norm_placement == "pre"
        self.dropout = nn.Dropout(config.dropout)

    def sublayer_input(self, hidden: Tensor, norm: Norm) -> Tensor:
        """Return the input of the sub-layer."""
        normalised: Tensor = norm(hidden) if self.pre_norm else hidden
        return normalised

    def add_sublayer(self, hidden: Tensor, sublayer_output: Tensor, norm: Norm) -> Tensor:
        """Return the sub-layer's output added to `hidden`, its input before normalisation."""
        total = hidden + self.dropout(sublayer_output)
        normalised: Tensor = total if self.pre_norm else norm(total)
        return normalised


class EncoderLayer(ResidualLayer):
    """Encoder layer: self-attention, feed-forward."""

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__(config)
        shape = config.encoder_shape
        self.self_attention = _attention(config, shape)
        self.self_attention_norm = new_norm(config)
        self.feed_forward = _feed_forward(config, shape)
        self.feed_forward_norm = new_norm(config)

    def forward(self, hidden: Tensor, mask: Tensor, position_bias: Tensor | None = None) -> Tensor:
        """Transform `hidden` [rows, source_len, d_model] to the same shape; `mask` hides padding.

        `position_bias` [heads, source_len, source_len] is added to the scores of self-attention.
        """
        query = self.sublayer_input(hidden, self.self_attention_norm)
        keys, values = self.self_attention.project_keys_values(query)
        attended = self.self_attention(query, keys, values, mask, position_bias)
        hidden = self.add_sublayer(hidden, attended, self.self_attention_norm)

        transformed = self.feed_forward(self.sublayer_input(hidden, self.feed_forward_norm))
        return self.add_sublayer(hidden, transformed, self.feed_forward_norm)


class CrossAttentionLayer(ResidualLayer):
    """Base class of decoder layers, which end with cross-attention to the encoder's memory and the feed-forward."""

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__(config)
        shape = config.decoder_shape
        # First, so that parameters have the order of the sub-layers.
        self._add_first_sublayer(config)
        self.cross_attention = _attention(config, shape)
        self.cross_attention_norm = new_norm(config)
        self.feed_forward = _feed_forward(config, shape)
        self.feed_forward_norm = new_norm(config)

    def _add_first_sublayer(self, config: TransformerConfig) -> None:
        """Create the sub-layer that reads earlier tokens."""
        raise NotImplementedError

    def finish(self, hidden: Tensor, cross: KeysValues, cross_mask: Tensor) -> Tensor:
        """Apply the other sub-layers; `cross` is the memory as keys and values of this layer."""
        query = self.sublayer_input(hidden, self.cross_attention_norm)
        attended = self.cross_attention(query, *cross, cross_mask)
        hidden = self.add_sublayer(hidden, attended, self.cross_attention_norm)

        transformed = self.feed_forward(self.sublayer_input(hidden, self.feed_forward_norm))
        return self.add_sublayer(hidden, transformed, self.feed_forward_norm)


class DecoderLayer(CrossAttentionLayer):
    """Decoder layer: causal self-attention, cross-attention to the encoder's memory, feed-forward."""

    self_attention: MultiHeadAttention
    self_attention_norm: Norm

    def _add_first_sublayer(self, config: TransformerConfig) -> None:
        self.self_attention = _attention(config, config.decoder_shape)
        self.self_attention_norm = new_norm(config)

    def forward(
        self,
        hidden: Tensor,
        self_mask: Tensor,
        past: KeysValues | None,
        cross: KeysValues,
        cross_mask: Tensor,
        position_bias: Tensor | None = None,
    ) -> tuple[Tensor, KeysValues]:
        """Decode `hidden` [rows, new_len, d_model] after `past`, the self-attention keys and values of earlier tokens.

        `cross` is the memory as keys and values of this layer; `position_bias` [heads, new_len, past_len + new_len] is
        added to the scores of self-attention. Returns the new hidden states and the self-attention
        keys and values of all tokens so far, each [rows, heads, past_len + new_len, head_dim].
        """
        query = self.sublayer_input(hidden, self.self_attention_norm)
        keys, values = self.self_attention.project_keys_values(query)
        if past is not None:
            keys, values = torch.cat([past[0], keys], dim=2), torch.cat([past[1], values], dim=2)
        attended = self.self_attention(query, keys, values, self_mask, position_bias)
        hidden = self.add_sublayer(hidden, attended, self.self_attention_norm)
        return self.finish(hidden, cross, cross_mask), (keys, values)


class SSRU(nn.Module):
    """Simpler simple recurrent unit (Kim et al. 2019, "From Research to Production and Back", section 3.2).

    c_t = f_t * c_(t-1) + (1 - f_t) * W x_t, with f_t = sigmoid(V x_t + b); the output is relu(c_t). The state is one
    vector a row, whatever the number of decoded tokens, and zero before the first one.
    """

    def __init__(self, d_model: int) -> None:
        super().__init__()
        self.input_proj = nn.Linear(d_model, d_model, bias=False)
        self.forget_proj = nn.Linear(d_model, d_model)

    def forward(self, hidden: Tensor, past: Tensor | None) -> tuple[Tensor, Tensor]:
        """Return outputs shaped like `hidden` [rows, new_len, d_model], and the state [rows, d_model] after them.

        `past` is the state after the tokens before them.
        """
        kept = torch.sigmoid(self.forget_proj(hidden))
        added = (1 - kept) * self.input_proj(hidden)
        state = torch.zeros_like(hidden[:, 0]) if past is None else past
        states: list[Tensor] = []
        # Unbound first: a slice in each turn would cost as much as the sum.
        for kept_part, added_part in zip(kept.unbind(1), added.unbind(1), strict=True):
            state = torch.addcmul(added_part, kept_part, state)
            states.append(state)
        return torch.relu(torch.stack(states, dim=1)), state


class RecurrentDecoderLayer(CrossAttentionLayer):
    """Decoder layer: recurrent unit, cross-attention to the encoder's memory, feed-forward."""

    recurrence: SSRU
    recurrence_norm: Norm

    def _add_first_sublayer(self, config: TransformerConfig) -> None:
        self.recurrence = SSRU(config.d_model)
        self.recurrence_norm = new_norm(config)

    def forward(
        self, hidden: Tensor, past: Tensor | None, cross: KeysValues, cross_mask: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Decode `hidden` [rows, new_len, d_model] after `past`, the state [rows, d_model] after earlier tokens.

        Returns the new hidden states and the new state.
        """
        summed, state = self.recurrence(self.sublayer_input(hidden, self.recurrence_norm), past)
        hidden = self.add_sublayer(hidden, summed, self.recurrence_norm)
        return self.finish(hidden, cross, cross_mask), state


class LayerList(nn.ModuleList, Generic[LayerType]):
    """A typed `nn.ModuleList`."""

    def __iter__(self) -> Iterator[LayerType]:
        return cast(Iterator[LayerType], super().__iter__())


def _attention(config: TransformerConfig, shape: StackShape) -> MultiHeadAttention:
    return MultiHeadAttention(
        config.d_model,
        shape.num_heads,
        shape.head_dim,
        config.attention_dropout,
        scale=config.scale_of_attention(shape),
        biases=config.biases,
    )


def _feed_forward(config: TransformerConfig, shape: StackShape) -> FeedForward:
    return FeedForward(
        config.d_model,
        shape.feed_forward_width,
        config.activation,
        config.activation_dropout,
        gated=config.gated,
        biases=config.biases,
    )
