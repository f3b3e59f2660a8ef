"""The graphs of layout `step` as PyTorch modules: the encoder, and one step of the decoder for all rows.

No operation mixes rows: the result of a row does not depend on the other rows.
"""

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from export.graphs.layers import (
    EmbeddingStep,
    FeedForwardStep,
    Heads,
    ScaledMatrix,
    SourceBias,
    StepBias,
    attend_in_encoder,
    attend_in_step,
    bias_of,
    fuse,
    state_width,
)
from export.graphs.ranking import BlockedVocabulary, Ranking
from model.layers import DecoderLayer, EncoderLayer, RecurrentDecoderLayer
from model.transformer import EncoderModel, Transformer

LayerCaches = tuple[Tensor, ...]
"""Self keys and self values, or the state; cross keys, cross values, last cross key, last cross value.

Shapes are in bundle.tensors.
"""


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


@dataclass(frozen=True, slots=True)
class _StepInputs:
    """Inputs of all layers in a step."""

    past_lengths: Tensor
    last_source_positions: Tensor
    position_bias: Tensor | None


class _CrossAttentionStep(nn.Module):
    """Base class of decoder layers over one token for each row, [rows, 1, d_model]."""

    def __init__(self, layer: DecoderLayer | RecurrentDecoderLayer) -> None:
        super().__init__()
        self.source_layer = layer
        cross = layer.cross_attention
        self.heads = heads = Heads.of(cross)
        self.cross_queries = fuse(heads.pad_outputs(cross.query_proj))
        self.cross_output = fuse(heads.pad_inputs(cross.out_proj))
        self.feed_forward = FeedForwardStep(layer)

    def finish(
        self, hidden: Tensor, step: _StepInputs, caches: LayerCaches, present: tuple[Tensor, ...]
    ) -> tuple[Tensor, list[Tensor]]:
        """Return the layer's output, its caches and the queries of cross-attention, after the first sub-layer."""
        cross_keys, cross_values, last_key, last_value = caches[-4:]
        layer = self.source_layer
        queries = self.cross_queries(layer.sublayer_input(hidden, layer.cross_attention_norm))
        attended, *present_cross = attend_in_step(
            (queries, last_key, last_value), cross_keys, cross_values, step.last_source_positions, self.heads
        )
        hidden = layer.add_sublayer(hidden, self.cross_output(attended), layer.cross_attention_norm)

        transformed = self.feed_forward(layer.sublayer_input(hidden, layer.feed_forward_norm))
        hidden = layer.add_sublayer(hidden, transformed, layer.feed_forward_norm)
        return hidden, [*present, *present_cross, queries]


class _SelfAttentionLayerStep(_CrossAttentionStep):
    """A decoder layer with self-attention."""

    def __init__(self, layer: DecoderLayer) -> None:
        super().__init__(layer)
        self.layer = layer
        attention = layer.self_attention
        projections = (attention.query_proj, attention.key_proj, attention.value_proj)
        self.self_queries_keys_values = fuse(*map(self.heads.pad_outputs, projections))
        self.self_output = fuse(self.heads.pad_inputs(attention.out_proj))

    def forward(self, hidden: Tensor, step: _StepInputs, caches: LayerCaches) -> tuple[Tensor, list[Tensor]]:
        """Return the layer's output, its four caches and the queries of cross-attention."""
        self_keys, self_values, *_ = caches
        layer = self.layer
        fused = self.self_queries_keys_values(layer.sublayer_input(hidden, layer.self_attention_norm))
        attended, *present = attend_in_step(
            (fused, None, None), self_keys, self_values, step.past_lengths, self.heads, step.position_bias
        )
        hidden = layer.add_sublayer(hidden, self.self_output(attended), layer.self_attention_norm)
        return self.finish(hidden, step, caches, tuple(present))


class _RecurrentLayerStep(_CrossAttentionStep):
    """A decoder layer with a recurrent unit, whose state is float32 in every precision."""

    def __init__(self, layer: RecurrentDecoderLayer, width: int) -> None:
        super().__init__(layer)
        self.layer = layer
        self.inputs_gates = fuse(
            *(_widened(p, width) for p in (layer.recurrence.input_proj, layer.recurrence.forget_proj))
        )

    def forward(self, hidden: Tensor, step: _StepInputs, caches: LayerCaches) -> tuple[Tensor, list[Tensor]]:
        """Return the layer's output, its state, the two caches and the queries of cross-attention."""
        layer, state = self.layer, caches[0]
        fused = self.inputs_gates(layer.sublayer_input(hidden, layer.recurrence_norm)).float()
        added, gates = fused.chunk(2, dim=-1)
        kept = torch.sigmoid(gates)
        # A row that begins has a state of another request, or none.
        past = torch.where((step.past_lengths > 0)[:, None, None], state, 0.0)
        present = kept * past + (1 - kept) * added
        summed = torch.relu(present)[..., : hidden.shape[-1]].to(hidden.dtype)
        hidden = layer.add_sublayer(hidden, summed, layer.recurrence_norm)
        return self.finish(hidden, step, caches, (present,))


def _widened(projection: nn.Linear, width: int) -> nn.Linear:
    """Return a projection with zeros as additional outputs."""
    missing = width - projection.out_features
    widened = nn.Linear(projection.in_features, width, dtype=projection.weight.dtype)
    widened.weight = nn.Parameter(nn.functional.pad(projection.weight.detach(), (0, 0, 0, missing)))
    widened.bias = nn.Parameter(nn.functional.pad(bias_of(projection), (0, missing)))
    return widened


class DecoderStepGraph(nn.Module):
    """Decoder step graph: one token of every row and caches to the best candidates and the extended caches.

    Shapes are in bundle.tensors. Suppressed tokens are never candidates, but count in `log_normalizer`, as in Hugging
    Face `generate`, which masks them after its softmax.
    """

    def __init__(self, transformer: Transformer, *, in_int8: bool = False) -> None:
        super().__init__()
        config = transformer.config
        decoder = transformer.decoder
        self.embed = EmbeddingStep(decoder, config.max_target_tokens, in_int8=in_int8)
        width = state_width(config)
        self.layers = nn.ModuleList(
            _RecurrentLayerStep(layer, width)
            if isinstance(layer, RecurrentDecoderLayer)
            else _SelfAttentionLayerStep(layer)
            for layer in decoder.layers
        )
        self.final_norm = decoder.final_norm
        bias_by_distance = decoder.relative_bias
        self.step_bias = None if bias_by_distance is None else StepBias(bias_by_distance, config.max_target_tokens)
        self.output_matrix = ScaledMatrix(transformer.output_projection.weight.detach(), config.output_scale)
        weight = self.output_matrix.rows
        no_bias = weight.new_zeros(weight.shape[0])
        bias = no_bias if transformer.output_bias is None else transformer.output_bias.detach()
        self.vocabulary = BlockedVocabulary.of(weight.shape[0])
        suppressed = list(config.suppressed_token_ids)
        self.mask = torch.zeros_like(bias)
        self.mask[suppressed] = -torch.inf
        self.output_weight = nn.Parameter(self._columns(in_int8=in_int8))
        self.output_bias = nn.Parameter(self.vocabulary.pad(bias + self.mask, -torch.inf))
        self.bias = bias
        self.suppressed_weight = (
            nn.Parameter((weight[suppressed] * self.output_matrix.scale).T.contiguous()) if suppressed else None
        )
        self.suppressed_bias = nn.Parameter(bias[suppressed])

    def _columns(self, *, in_int8: bool) -> Tensor:
        """Return the output projection [d_model, tokens, padded to whole blocks]."""
        constant = self.output_matrix.constant(in_int8=in_int8)
        if in_int8:
            return constant[:1].expand(self.vocabulary.num_blocks * self.vocabulary.block_size, -1).T
        return self.vocabulary.pad(constant, 0.0).T.contiguous()

    @property
    def scaled_matrices(self) -> dict[str, ScaledMatrix]:
        """Matrices of the model that the graph contains multiplied, by the name of the constant."""
        embedding = {} if self.embed.matrix is None else {"embed.weight": self.embed.matrix}
        return embedding | {"output_weight": self.output_matrix}

    @property
    def ranking(self) -> Ranking:
        """Constants of the graph's end, for the operator that replaces it in int8 graphs."""
        return Ranking(
            "output_weight",
            self.vocabulary.pad(self.bias, -torch.inf).numpy(),
            self.vocabulary.pad(self.mask, 0.0).numpy(),
            self.vocabulary.block_size,
            self.vocabulary.num_tokens,
        )

    def decode(
        self, previous_tokens: Tensor, past_lengths: Tensor, source_lengths: Tensor, caches: list[LayerCaches]
    ) -> tuple[Tensor, list[Tensor]]:
        """Return the input of the output projection [rows, d_model], and caches and queries by layer."""
        hidden = self.embed.at(previous_tokens, past_lengths).unsqueeze(1)
        present: list[Tensor] = []
        position_bias = None if self.step_bias is None else self.step_bias(past_lengths, caches[0][0].shape[2])
        step = _StepInputs(past_lengths, source_lengths - 1, position_bias)
        for layer, layer_caches in zip(self.layers, caches, strict=True):
            hidden, layer_present = layer(hidden, step, layer_caches)
            present += layer_present
        if self.final_norm is not None:
            hidden = self.final_norm(hidden)
        return hidden.squeeze(1), present

    def suppressed_logits(self, hidden: Tensor) -> Tensor | None:
        """Return the logits of suppressed tokens, float32 [rows, suppressed tokens], or None without such tokens."""
        if self.suppressed_weight is None:
            return None
        return (hidden @ self.suppressed_weight + self.suppressed_bias).float()

    def forward(
        self,
        previous_tokens: Tensor,
        past_lengths: Tensor,
        source_lengths: Tensor,
        num_candidates: Tensor,
        logit_rows: Tensor,
        caches: list[LayerCaches],
    ) -> tuple[Tensor, ...]:
        """Return candidate logits and tokens, log normalisers, logits of `logit_rows`; caches and queries by layer."""
        hidden, present = self.decode(previous_tokens, past_lengths, source_lengths, caches)
        logits = (hidden @ self.output_weight + self.output_bias).float()
        best, tokens = self.vocabulary.top_k(logits, num_candidates)
        # A separate product: usually it has no rows, and costs nothing. `index_select` would be two nodes.
        named_rows = nn.functional.embedding(logit_rows, hidden)
        whole_rows = (named_rows @ self.output_weight + self.output_bias).float()
        # The largest log-probability is the largest logit minus the log normaliser. ONNX Runtime's LogSoftmax is
        # vectorised, its ReduceLogSumExp is several times slower, and its Log would give a row another last bit
        # depending on where in the batch it stands.
        log_probs = torch.log_softmax(logits, dim=-1)
        log_normalizer = best[:, 0] - log_probs.gather(1, tokens[:, :1]).squeeze(1)
        suppressed = self.suppressed_logits(hidden)
        if suppressed is not None:
            both = torch.cat([log_normalizer.unsqueeze(-1), suppressed], dim=-1)
            log_normalizer = torch.logsumexp(both, dim=-1)
        return best, tokens, log_normalizer, whole_rows[:, : self.vocabulary.num_tokens], *present
