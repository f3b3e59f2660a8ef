"""The encoder-decoder Transformer: `encode` and `decode` for translation, teacher-forced `forward` for training.

Token ids are integer tensors [rows, length]. Masks are boolean, True at tokens and False at padding. The model is
stateless: keys and values of earlier tokens are arguments and results.
"""

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from model.attention import KeysValues, causal_mask, padding_mask
from model.config import StackShape, TransformerConfig
from model.layers import DecoderLayer, EncoderLayer, LayerList, Norm, RecurrentDecoderLayer, new_norm
from model.positions import LearnedPositions, NoPositions, RelativePositionBias, SinusoidalPositions

CrossKeysValues = tuple[KeysValues, ...]
"""Cross-attention keys and values of every decoder layer."""


@dataclass(frozen=True, slots=True)
class DecoderCache:
    """Cache of a decoder after `past_len` tokens: for each layer, keys and values [rows, heads, length, head_dim].

    `length` is past_len for self-attention and source_len for cross-attention. A recurrent decoder has `states`
    [rows, d_model] of its layers instead of keys and values of self-attention.
    """

    past_len: int
    self_attention: tuple[KeysValues, ...]
    cross_attention: CrossKeysValues
    states: tuple[Tensor, ...] = ()


class TokenStack(nn.Module):
    """Base class of encoder and decoder: embeddings, positions, final norm. Only encoders have token types."""

    def __init__(self, config: TransformerConfig, shape: StackShape, *, both_directions: bool) -> None:
        super().__init__()
        self.embedding = nn.Embedding(shape.vocab_size, config.d_model, padding_idx=config.pad_token_id)
        self.embedding_scale = math.sqrt(config.d_model) if config.scale_embedding else 1.0
        self.token_types = (
            nn.Embedding(config.token_types, config.d_model) if both_directions * config.token_types else None
        )
        self.positions = _positions(config, shape)
        # One for all layers of the stack.
        self.relative_bias = (
            RelativePositionBias(
                shape.num_heads, config.relative_buckets, config.relative_max_distance, both_directions
            )
            if config.relative_buckets
            else None
        )
        self.embedding_norm: Norm | None = new_norm(config) if config.embedding_norm else None
        self.dropout = nn.Dropout(config.dropout)
        self.final_norm: Norm | None = new_norm(config) if config.final_norm else None

    def embed(self, tokens: Tensor, past_len: int = 0) -> Tensor:
        """Return the input [..., d_model] of the first layer for tokens [rows, new_len] after `past_len` others."""
        vectors: Tensor = self.embedding(tokens) * self.embedding_scale
        positions: Tensor = self.positions(past_len, tokens.shape[1])
        vectors = vectors + positions.to(vectors)
        if self.token_types is not None:
            vectors = vectors + self.token_types.weight[0]
        if self.embedding_norm is not None:
            vectors = self.embedding_norm(vectors)
        embedded: Tensor = self.dropout(vectors)
        return embedded

    def position_bias(self, query_len: int, past_len: int = 0) -> Tensor | None:
        """Return the bias [heads, query_len, past_len + query_len] on self-attention; None without such a bias."""
        return None if self.relative_bias is None else self.relative_bias(query_len, past_len)

    def finish(self, hidden: Tensor) -> Tensor:
        """Apply the final norm, if the configuration has one."""
        return hidden if self.final_norm is None else self.final_norm(hidden)


def _positions(config: TransformerConfig, shape: StackShape) -> SinusoidalPositions | LearnedPositions | NoPositions:
    if config.positions == "learned":
        return LearnedPositions(shape.max_tokens, config.d_model, config.position_offset)
    if config.positions == "sinusoidal":
        return SinusoidalPositions(config.d_model, config.sinusoid_layout, config.position_offset)
    return NoPositions(config.d_model)


class Encoder(TokenStack):
    """Encoder: source tokens to memory."""

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__(config, config.encoder_shape, both_directions=True)
        self.layers: LayerList[EncoderLayer] = LayerList(EncoderLayer(config) for _ in range(config.num_encoder_layers))

    def forward(self, source: Tensor, source_mask: Tensor) -> Tensor:
        """Return the memory [rows, source_len, d_model] of `source`; both arguments are [rows, source_len]."""
        hidden = self.embed(source)
        mask = padding_mask(source_mask)
        position_bias = self.position_bias(source.shape[1])
        for layer in self.layers:
            hidden = layer(hidden, mask, position_bias)
        return self.finish(hidden)


class Decoder(TokenStack):
    """Decoder: target tokens and memory to hidden states."""

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__(config, config.decoder_shape, both_directions=False)
        kind = RecurrentDecoderLayer if config.has_recurrent_decoder else DecoderLayer
        self.layers: LayerList[DecoderLayer | RecurrentDecoderLayer] = LayerList(
            kind(config) for _ in range(config.num_decoder_layers)
        )

    def project_memory(self, memory: Tensor) -> CrossKeysValues:
        """Return the cross-attention keys and values of every layer for a memory [rows, source_len, d_model]."""
        return tuple(layer.cross_attention.project_keys_values(memory) for layer in self.layers)

    def forward(
        self,
        tokens: Tensor,
        cross_keys_values: CrossKeysValues,
        source_mask: Tensor,
        past: DecoderCache | None,
    ) -> tuple[Tensor, DecoderCache]:
        """Return hidden states [rows, new_len, d_model] of `tokens` after `past`, and the cache with these tokens."""
        past_len = 0 if past is None else past.past_len
        hidden = self.embed(tokens, past_len)
        self_mask = causal_mask(tokens.shape[1], past_len, tokens.device)
        cross_mask = padding_mask(source_mask)
        position_bias = self.position_bias(tokens.shape[1], past_len)
        keys_values: list[KeysValues] = []
        states: list[Tensor] = []
        for index, layer in enumerate(self.layers):
            cross = cross_keys_values[index]
            if isinstance(layer, RecurrentDecoderLayer):
                hidden, state = layer(hidden, None if past is None else past.states[index], cross, cross_mask)
                states.append(state)
            else:
                layer_past = None if past is None else past.self_attention[index]
                hidden, present = layer(hidden, self_mask, layer_past, cross, cross_mask, position_bias)
                keys_values.append(present)
        cache = DecoderCache(past_len + tokens.shape[1], tuple(keys_values), cross_keys_values, tuple(states))
        return self.finish(hidden), cache


class EncoderModel(nn.Module):
    """The encoder of a configuration by itself, randomly initialised; for embeddings of texts."""

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.config = config
        self.encoder = Encoder(config)

    def encode(self, source: Tensor, source_mask: Tensor) -> Tensor:
        """Return the memory [rows, source_len, d_model] of `source` [rows, source_len]; the mask hides padding."""
        memory: Tensor = self.encoder(source, source_mask)
        return memory


class Transformer(nn.Module):
    """An encoder-decoder Transformer of a configuration, randomly initialised."""

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.config = config
        self.encoder = Encoder(config)
        self.decoder = Decoder(config)
        target_vocab_size = config.decoder_shape.vocab_size
        self.output_projection = nn.Linear(config.d_model, target_vocab_size, bias=False)
        self.output_bias = nn.Parameter(torch.zeros(target_vocab_size)) if config.output_bias else None
        if config.tie_embeddings:
            self.decoder.embedding = self.encoder.embedding
        if config.tie_output:
            self.output_projection.weight = self.decoder.embedding.weight
        self._initialise()

    def encode(self, source: Tensor, source_mask: Tensor) -> Tensor:
        """Return the memory [rows, source_len, d_model] of `source` [rows, source_len]; the mask hides padding."""
        memory: Tensor = self.encoder(source, source_mask)
        return memory

    def decode(
        self,
        tokens: Tensor,
        memory: Tensor | CrossKeysValues,
        source_mask: Tensor,
        past: DecoderCache | None = None,
    ) -> tuple[Tensor, DecoderCache]:
        """Return logits [rows, new_len, vocab] of the token after each of `tokens` [rows, new_len], and the cache.

        `memory` is the result of `encode`, or `decoder.project_memory` of it; with a `past` it is not read. `past` is
        the cache of the previous call, whose tokens directly precede these.
        """
        if past is not None:
            cross_keys_values = past.cross_attention
        elif isinstance(memory, Tensor):
            cross_keys_values = self.decoder.project_memory(memory)
        else:
            cross_keys_values = memory
        hidden, cache = self.decoder(tokens, cross_keys_values, source_mask, past)
        logits = self.output_projection(hidden * self.config.output_scale)
        return logits if self.output_bias is None else logits + self.output_bias, cache

    def forward(self, source: Tensor, source_mask: Tensor, target_inputs: Tensor) -> Tensor:
        """Return teacher-forced logits [rows, target_len, vocab]; `target_inputs` begin with the decoder's start token.

        Padding after a target needs no mask: no token before it sees it.
        """
        logits, _ = self.decode(target_inputs, self.encode(source, source_mask), source_mask)
        return logits

    def _initialise(self) -> None:
        # Glorot and Bengio 2010 for projections. Embeddings get variance 1 / d_model, which sqrt(d_model) scales to 1
        # at the input and which keeps logits near 1 at the output of a tied projection.
        for module in self.modules():
            if isinstance(module, nn.Linear) and module is not self.output_projection:
                nn.init.xavier_uniform_(module.weight)
                if module.bias is not None:
                    nn.init.zeros_(module.bias)
        tables = (self.output_projection.weight, self.encoder.embedding.weight, self.decoder.embedding.weight)
        for weight in tables:
            nn.init.normal_(weight, std=self.config.d_model**-0.5)
        with torch.no_grad():
            for embedding in (self.encoder.embedding, self.decoder.embedding):
                embedding.weight[self.config.pad_token_id].zero_()
