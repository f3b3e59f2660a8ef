"""The graphs of layout `step` as PyTorch modules: the encoder, and one decoder step of all rows.

No operation mixes rows: the result of a row does not depend on the other rows.
"""

import torch
from torch import Tensor, nn

from export.graphs.attention import Heads, attend_in_encoder, attend_in_step, bias_of
from export.graphs.position_bias import SourceBias, StepBias
from export.graphs.ranking import BlockedVocabulary, Ranking
from model.layers import DecoderLayer, EncoderLayer
from model.positions import NoPositions
from model.transformer import TokenStack, Transformer

LayerCaches = tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]
"""Self keys, self values, cross keys, cross values, last cross key, last cross value, shaped as in bundle.tensors."""


class _FusedProjection(nn.Module):
    """Projections of one input as one matrix product: [.., d_model] to their outputs side by side."""

    def __init__(self, projections: list[nn.Linear]) -> None:
        super().__init__()
        # Stored as [d_model, outputs], the layout of ONNX MatMul, so that no transposition runs.
        self.weight = nn.Parameter(torch.cat([p.weight.detach() for p in projections]).T.contiguous())
        self.bias = nn.Parameter(torch.cat([bias_of(p) for p in projections]))

    def forward(self, hidden: Tensor) -> Tensor:
        return hidden @ self.weight + self.bias


def _fuse(*projections: nn.Linear) -> _FusedProjection:
    return _FusedProjection(list(projections))


class _FeedForwardStep(nn.Module):
    def __init__(self, layer: EncoderLayer | DecoderLayer) -> None:
        super().__init__()
        self.inner = _fuse(layer.feed_forward.inner_proj)
        gate = layer.feed_forward.gate_proj
        self.gate = None if gate is None else _fuse(gate)
        self.activation = layer.feed_forward.activation
        self.outer = _fuse(layer.feed_forward.outer_proj)

    def forward(self, hidden: Tensor) -> Tensor:
        inner = self.activation(self.inner(hidden))
        if self.gate is not None:
            inner = inner * self.gate(hidden)
        output: Tensor = self.outer(inner)
        return output


class _EncoderLayerStep(nn.Module):
    """An encoder layer over flat tokens [rows * source_len, d_model], or over [rows, source_len, d_model]."""

    def __init__(self, layer: EncoderLayer) -> None:
        super().__init__()
        self.layer = layer
        attention = layer.self_attention
        self.heads = Heads.of(attention)
        projections = (attention.query_proj, attention.key_proj, attention.value_proj)
        self.queries_keys_values = _fuse(*map(self.heads.pad_outputs, projections))
        self.output = _fuse(self.heads.pad_inputs(attention.out_proj))
        self.feed_forward = _FeedForwardStep(layer)

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


class EncoderGraph(nn.Module):
    """Encoder graph: source tokens to cross-attention keys and values of every decoder layer.

    `source_tokens` int32 [rows, source_len], `source_lengths` int32 [rows]. The result is
    [2 * decoder layers, rows, heads, source_len, head_dim], keys at even indices, undefined after a row's length.
    """

    def __init__(self, transformer: Transformer) -> None:
        super().__init__()
        config = transformer.config
        self.embed = _Embedding(transformer.encoder, config.max_source_tokens)
        self.layers = nn.ModuleList(_EncoderLayerStep(layer) for layer in transformer.encoder.layers)
        self.final_norm = transformer.encoder.final_norm
        relative_bias = transformer.encoder.relative_bias
        self.source_bias = None if relative_bias is None else SourceBias(relative_bias, config.max_source_tokens)
        decoder_layers = list(transformer.decoder.layers)
        # All layers' keys and values in one product.
        cross = [layer.cross_attention for layer in decoder_layers]
        self.heads = Heads.of(cross[0])
        projections = [proj for attention in cross for proj in (attention.key_proj, attention.value_proj)]
        self.keys_values = _fuse(*map(self.heads.pad_outputs, projections))
        self.planes = 2 * len(decoder_layers)

    def forward(self, source_tokens: Tensor, source_lengths: Tensor) -> Tensor:
        """Return cross-attention keys and values of every decoder layer."""
        rows, source_len = source_tokens.shape
        # Rows and positions are one axis, so that every product is one matrix product over all tokens.
        hidden = self.embed(source_tokens).reshape(rows * source_len, -1)
        last_positions = source_lengths - 1
        total = torch.scalar_tensor(source_len, dtype=torch.int32)
        position_bias = None if self.source_bias is None else self.source_bias(source_len)
        for layer in self.layers:
            hidden = layer(hidden, last_positions, total, position_bias, (rows, source_len))
        if self.final_norm is not None:
            hidden = self.final_norm(hidden)
        split = (rows, source_len, self.planes, self.heads.count, self.heads.padded_dim)
        keys_values: Tensor = self.keys_values(hidden).reshape(split)
        return keys_values.permute(2, 0, 3, 1, 4)


class _Embedding(nn.Module):
    """Input of the first layer: scaled embeddings plus positions, normalised if the model does that.

    `table` has the vectors of all positions; it is None in a model without absolute positions.
    """

    def __init__(self, stack: TokenStack, max_tokens: int) -> None:
        super().__init__()
        scaled = stack.embedding.weight.detach() * stack.embedding_scale
        self.weight = nn.Parameter(scaled)
        has_table = not isinstance(stack.positions, NoPositions)
        table = stack.positions(0, max_tokens).detach().to(scaled.dtype, copy=True) if has_table else None
        self.register_buffer("table", table)
        self.table: Tensor | None
        self.norm = stack.embedding_norm

    def forward(self, tokens: Tensor) -> Tensor:
        vectors = nn.functional.embedding(tokens, self.weight)
        return self._normalise(vectors if self.table is None else vectors + self.table[: tokens.shape[1]])

    def at(self, tokens: Tensor, positions: Tensor) -> Tensor:
        """Embed tokens [rows, 1] at positions [rows, 1], to [rows, 1, d_model]."""
        vectors = nn.functional.embedding(tokens, self.weight)
        if self.table is not None:
            vectors = vectors + nn.functional.embedding(positions, self.table)
        return self._normalise(vectors)

    def _normalise(self, vectors: Tensor) -> Tensor:
        return vectors if self.norm is None else self.norm(vectors)


class _DecoderLayerStep(nn.Module):
    """A decoder layer over one token for each row, [rows, 1, d_model]."""

    def __init__(self, layer: DecoderLayer) -> None:
        super().__init__()
        self.layer = layer
        attention, cross = layer.self_attention, layer.cross_attention
        self.heads = heads = Heads.of(attention)
        projections = (attention.query_proj, attention.key_proj, attention.value_proj)
        self.self_queries_keys_values = _fuse(*map(heads.pad_outputs, projections))
        self.self_output = _fuse(heads.pad_inputs(attention.out_proj))
        self.cross_queries = _fuse(heads.pad_outputs(cross.query_proj))
        self.cross_output = _fuse(heads.pad_inputs(cross.out_proj))
        self.feed_forward = _FeedForwardStep(layer)

    def forward(
        self,
        hidden: Tensor,
        past_lengths: Tensor,
        last_source_positions: Tensor,
        caches: LayerCaches,
        position_bias: Tensor | None,
    ) -> tuple[Tensor, list[Tensor]]:
        """Return the layer's output, its four caches and the queries of cross-attention."""
        self_keys, self_values, cross_keys, cross_values, last_key, last_value = caches
        layer = self.layer
        fused = self.self_queries_keys_values(layer.sublayer_input(hidden, layer.self_attention_norm))
        attended, *present_self = attend_in_step(
            (fused, None, None), self_keys, self_values, past_lengths, self.heads, position_bias
        )
        hidden = layer.add_sublayer(hidden, self.self_output(attended), layer.self_attention_norm)

        queries = self.cross_queries(layer.sublayer_input(hidden, layer.cross_attention_norm))
        attended, *present_cross = attend_in_step(
            (queries, last_key, last_value), cross_keys, cross_values, last_source_positions, self.heads
        )
        hidden = layer.add_sublayer(hidden, self.cross_output(attended), layer.cross_attention_norm)

        transformed = self.feed_forward(layer.sublayer_input(hidden, layer.feed_forward_norm))
        return layer.add_sublayer(hidden, transformed, layer.feed_forward_norm), [
            *present_self,
            *present_cross,
            queries,
        ]


class DecoderStepGraph(nn.Module):
    """Decoder step graph: one token of every row and caches to the best candidates and the extended caches.

    Shapes are in bundle.tensors. Suppressed tokens are never candidates, but count in `log_normalizer`, as in Hugging
    Face `generate`, which masks them after its softmax.
    """

    def __init__(self, transformer: Transformer) -> None:
        super().__init__()
        config = transformer.config
        decoder = transformer.decoder
        self.embed = _Embedding(decoder, config.max_target_tokens)
        self.layers = nn.ModuleList(_DecoderLayerStep(layer) for layer in decoder.layers)
        self.final_norm = decoder.final_norm
        bias_by_distance = decoder.relative_bias
        self.step_bias = None if bias_by_distance is None else StepBias(bias_by_distance, config.max_target_tokens)
        weight = transformer.output_projection.weight.detach() * config.output_scale
        no_bias = weight.new_zeros(weight.shape[0])
        bias = no_bias if transformer.output_bias is None else transformer.output_bias.detach()
        self.vocabulary = BlockedVocabulary.of(weight.shape[0])
        suppressed = list(config.suppressed_token_ids)
        self.mask = torch.zeros_like(bias)
        self.mask[suppressed] = -torch.inf
        self.output_weight = nn.Parameter(self.vocabulary.pad(weight, 0.0).T.contiguous())
        self.output_bias = nn.Parameter(self.vocabulary.pad(bias + self.mask, -torch.inf))
        self.bias = bias
        self.suppressed_weight = nn.Parameter(weight[suppressed].T.contiguous()) if suppressed else None
        self.suppressed_bias = nn.Parameter(bias[suppressed])

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
        hidden = self.embed.at(previous_tokens.unsqueeze(1), past_lengths.unsqueeze(1))
        last_source_positions = source_lengths - 1
        present: list[Tensor] = []
        position_bias = None if self.step_bias is None else self.step_bias(past_lengths, caches[0][0].shape[2])
        for layer, layer_caches in zip(self.layers, caches, strict=True):
            hidden, layer_present = layer(hidden, past_lengths, last_source_positions, layer_caches, position_bias)
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
        # A separate product: usually it has no rows, and costs nothing.
        named_rows = hidden.index_select(0, logit_rows)
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
