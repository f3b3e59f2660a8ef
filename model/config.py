"""Configuration of a Transformer; layers contain no architectural choice of their own."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, get_args

Activation = Literal["relu", "gelu", "gelu_tanh", "silu"]
NormPlacement = Literal["post", "pre"]
NormKind = Literal["layer", "rms"]
Positions = Literal["sinusoidal", "learned", "none"]
SinusoidLayout = Literal["interleaved", "halves", "halves_inclusive"]
DecoderKind = Literal["self_attention", "ssru"]

# Far beyond any model: larger sizes are those of a damaged file, and would take all time or memory.
_MAX_LAYERS, _MAX_SIZE = 1000, 1 << 24


@dataclass(frozen=True, slots=True)
class StackShape:
    """Sizes of the encoder or the decoder, with defaults resolved."""

    vocab_size: int
    num_layers: int
    num_heads: int
    head_dim: int
    feed_forward_width: int
    max_tokens: int


@dataclass(frozen=True, slots=True)
class TransformerConfig:
    """An encoder-decoder Transformer (Vaswani et al. 2017, arXiv:1706.03762); the defaults are that paper's base model.

    A field that is None takes the value in its description; `encoder_shape` and `decoder_shape` have it resolved.
    Raises ValueError for an impossible combination, with every problem and valid values.
    """

    vocab_size: int
    """Size of the source vocabulary."""
    pad_token_id: int
    eos_token_id: int
    decoder_start_token_id: int
    """First decoder input; in Marian the padding token."""
    bos_token_id: int | None = None
    target_vocab_size: int | None = None
    """Default: `vocab_size`."""

    d_model: int = 512
    num_heads: int = 8
    decoder_num_heads: int | None = None
    """Default: `num_heads`."""
    head_dim: int | None = None
    """Width of one head in both stacks. Default: `d_model` divided by the heads of the stack."""
    feed_forward_width: int = 2048
    decoder_feed_forward_width: int | None = None
    """Default: `feed_forward_width`."""
    num_encoder_layers: int = 6
    num_decoder_layers: int = 6
    """0: the model is an encoder only."""
    decoder: DecoderKind = "self_attention"
    """First sub-layer of decoder layers; "ssru" is a recurrent unit whose state does not grow (`model.layers`)."""

    dropout: float = 0.1
    """Dropout of sub-layer outputs and embeddings."""
    attention_dropout: float = 0.0
    """Dropout of attention probabilities."""
    activation_dropout: float = 0.0
    """Dropout inside the feed-forward, after the activation."""
    activation: Activation = "relu"
    """"gelu" is exact, "gelu_tanh" its approximation."""
    gated: bool = False
    """Multiply the activation by a second inner projection (Shazeer 2020, arXiv:2002.05202)."""
    biases: bool = True
    """Whether the projections of attention and feed-forward have biases."""
    attention_scale: float | None = None
    """Factor of the products of queries and keys. Default: `head_dim ** -0.5`."""
    norm_placement: NormPlacement = "post"
    norm: NormKind = "layer"
    """"rms" has neither a mean nor a bias (Zhang and Sennrich 2019, arXiv:1910.07467)."""
    final_norm: bool = False
    """Another normalisation at the end of each stack; usual with "pre", valid with "post"."""
    layer_norm_epsilon: float = 1e-5

    positions: Positions = "sinusoidal"
    sinusoid_layout: SinusoidLayout = "interleaved"
    position_offset: int = 0
    """Position of the first token."""
    relative_buckets: int = 0
    """Buckets of a bias on self-attention that depends on the distance of two tokens; 0 for none."""
    relative_max_distance: int = 128
    """Distance from which all tokens are in the last bucket."""
    token_types: int = 0
    """Types of source tokens, each with a vector that is added to the embedding; every text has type 0."""
    embedding_norm: bool = False
    """A normalisation of embeddings plus positions."""
    scale_embedding: bool = True
    """Multiply token embeddings by sqrt(d_model)."""
    tie_embeddings: bool = True
    """Use one weight for source and target embeddings."""
    tie_output: bool = True
    """Use the target embedding as the output projection."""
    output_bias: bool = False
    output_scale: float = 1.0
    """Factor of the hidden states before the output projection."""

    max_source_tokens: int = 512
    """Longest source, end-of-sequence token included. Sinusoidal positions continue beyond it."""
    max_target_tokens: int = 512
    """Longest decoder input, start token included; also the maximum number of generated tokens."""
    suppressed_token_ids: tuple[int, ...] = ()
    """Target tokens that are never generated. The search applies this, not the model."""
    forced_first_token_id: int | None = None
    """First token of every output, at no cost. The search applies this, not the model."""
    forced_eos: bool = False
    """End an output at the length limit with the end-of-sequence token."""

    def scale_of_attention(self, shape: StackShape) -> float:
        """Return the factor of the products of queries and keys in a stack."""
        return float(shape.head_dim**-0.5) if self.attention_scale is None else self.attention_scale

    def __post_init__(self) -> None:
        problems = [*_size_problems(self), *_choice_problems(self), *_token_problems(self)]
        if problems:
            raise ValueError("invalid Transformer: " + "; ".join(problems))

    @property
    def is_encoder_only(self) -> bool:
        """Whether the model has no decoder."""
        return self.num_decoder_layers == 0

    @property
    def has_recurrent_decoder(self) -> bool:
        """Whether decoder layers have a state of one vector instead of keys and values of earlier tokens."""
        return self.decoder == "ssru"

    @property
    def encoder_shape(self) -> StackShape:
        """Sizes of the encoder."""
        return StackShape(
            vocab_size=self.vocab_size,
            num_layers=self.num_encoder_layers,
            num_heads=self.num_heads,
            head_dim=self.d_model // self.num_heads if self.head_dim is None else self.head_dim,
            feed_forward_width=self.feed_forward_width,
            max_tokens=self.max_source_tokens,
        )

    @property
    def decoder_shape(self) -> StackShape:
        """Sizes of the decoder; the encoder's where they are not given."""
        num_heads = self.num_heads if self.decoder_num_heads is None else self.decoder_num_heads
        width = self.decoder_feed_forward_width
        return StackShape(
            vocab_size=self.vocab_size if self.target_vocab_size is None else self.target_vocab_size,
            num_layers=self.num_decoder_layers,
            num_heads=num_heads,
            head_dim=self.d_model // num_heads if self.head_dim is None else self.head_dim,
            feed_forward_width=self.feed_forward_width if width is None else width,
            max_tokens=self.max_target_tokens,
        )


def _size_problems(config: TransformerConfig) -> Iterator[str]:
    positive: dict[str, int | None] = {
        "vocab_size": config.vocab_size,
        "target_vocab_size": config.target_vocab_size,
        "d_model": config.d_model,
        "num_heads": config.num_heads,
        "decoder_num_heads": config.decoder_num_heads,
        "head_dim": config.head_dim,
        "feed_forward_width": config.feed_forward_width,
        "decoder_feed_forward_width": config.decoder_feed_forward_width,
        "num_encoder_layers": config.num_encoder_layers,
        "max_source_tokens": config.max_source_tokens,
        "max_target_tokens": config.max_target_tokens,
    }
    for name, size in positive.items():
        if size is not None and size < 1:
            why = ": learned positions have a table of that size"
            table = config.positions == "learned" and name.startswith("max_")
            yield f"`{name}` must be at least 1{why if table else ''}. Given: {size}"
    positive |= {
        "num_decoder_layers": config.num_decoder_layers,
        "position_offset": config.position_offset,
        "relative_buckets": config.relative_buckets,
        "token_types": config.token_types,
    }
    for name, size in positive.items():
        largest = _MAX_LAYERS if name.endswith("_layers") else _MAX_SIZE
        if size is not None and size > largest:
            yield f"`{name}` must be at most {largest}. Given: {size}"
    for name, number in (("num_decoder_layers", config.num_decoder_layers), ("token_types", config.token_types)):
        if number < 0:
            yield f"`{name}` must be at least 0. Given: {number}"
    if config.head_dim is None and 1 <= config.d_model <= _MAX_SIZE:
        for name, heads in (("num_heads", config.num_heads), ("decoder_num_heads", config.decoder_num_heads)):
            if heads is not None and heads >= 1 and config.d_model % heads:
                divisors = [number for number in range(1, config.d_model + 1) if config.d_model % number == 0]
                yield (
                    f"`d_model` {config.d_model} must be divisible by `{name}` {heads}; "
                    f"set head_dim, or one of these numbers of heads: {', '.join(map(str, divisors))}"
                )
    if config.positions == "sinusoidal" and config.d_model % 2:
        yield (
            f"`d_model` must be even with sinusoidal positions. Given: {config.d_model}; "
            f"use {config.d_model - 1}, {config.d_model + 1} or learned positions"
        )
    if config.position_offset < 0:
        yield f"`position_offset` must be at least 0. Given: {config.position_offset}"
    if config.positions == "sinusoidal" and config.sinusoid_layout == "halves_inclusive" and config.d_model < 4:
        yield f"`d_model` must be at least 4 with this sinusoid layout. Given: {config.d_model}"
    yield from _relative_problems(config)

    rates = {
        "dropout": config.dropout,
        "attention_dropout": config.attention_dropout,
        "activation_dropout": config.activation_dropout,
    }
    for name, rate in rates.items():
        if not 0.0 <= rate < 1.0:
            yield f"`{name}` must be at least 0 and less than 1. Given: {rate}"
    if not 0.0 < config.layer_norm_epsilon < 1.0:
        yield f"`layer_norm_epsilon` must be more than 0 and less than 1. Given: {config.layer_norm_epsilon}"
    for name, factor in (("attention_scale", config.attention_scale), ("output_scale", config.output_scale)):
        if factor is not None and not 0.0 < factor < math.inf:
            yield f"`{name}` must be a positive number. Given: {factor}"


def _relative_problems(config: TransformerConfig) -> Iterator[str]:
    buckets, distance = config.relative_buckets, config.relative_max_distance
    if buckets == 0:
        return
    if config.has_recurrent_decoder:
        yield f"`relative_buckets` must be 0 with `decoder` {config.decoder!r}, which has no self-attention"
    # The encoder has half of them for each direction, and half of those for single distances.
    if buckets < 4 or buckets % 4:
        yield f"`relative_buckets` must be 0 or a multiple of 4. Given: {buckets}"
    elif distance <= buckets // 2:
        yield f"`relative_max_distance` must be at least {buckets // 2 + 1} with {buckets} buckets. Given: {distance}"


def _choice_problems(config: TransformerConfig) -> Iterator[str]:
    choices: tuple[tuple[str, str, tuple[str, ...]], ...] = (
        ("activation", config.activation, get_args(Activation)),
        ("norm_placement", config.norm_placement, get_args(NormPlacement)),
        ("norm", config.norm, get_args(NormKind)),
        ("positions", config.positions, get_args(Positions)),
        ("sinusoid_layout", config.sinusoid_layout, get_args(SinusoidLayout)),
        ("decoder", config.decoder, get_args(DecoderKind)),
    )
    for name, chosen, valid in choices:
        if chosen not in valid:
            yield f"`{name}` must be one of {', '.join(valid)}. Given: {chosen!r}"


def _token_problems(config: TransformerConfig) -> Iterator[str]:
    source_size = config.vocab_size
    target_size = source_size if config.target_vocab_size is None else config.target_vocab_size
    if config.tie_embeddings and source_size != target_size:
        yield (
            "tied embeddings require one vocabulary size. "
            f"Given: {source_size} (source) and {target_size} (target); set `tie_embeddings` to False"
        )

    # Both stacks read padding and the end-of-sequence token; all others are decoder tokens.
    both_size = min(source_size, target_size)
    token_ids: list[tuple[str, int | None, int]] = [
        ("pad_token_id", config.pad_token_id, both_size),
        ("eos_token_id", config.eos_token_id, both_size),
        ("decoder_start_token_id", config.decoder_start_token_id, target_size),
        ("bos_token_id", config.bos_token_id, target_size),
        ("forced_first_token_id", config.forced_first_token_id, target_size),
        *(("suppressed_token_ids", token_id, target_size) for token_id in config.suppressed_token_ids),
    ]
    for name, token_id, size in token_ids:
        if token_id is not None and not 0 <= token_id < size:
            yield f"`{name}` must be from 0 to {size - 1}. Given: {token_id}"
    if config.eos_token_id in config.suppressed_token_ids:
        yield f"`suppressed_token_ids` must not contain `eos_token_id` {config.eos_token_id}: no output could end"
