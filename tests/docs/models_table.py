"""Table of checkpoints in `docs/models.md`.

Sizes follow from the settings of the checkpoints, which are repeated here: no file of them is needed.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache

import torch

from model.checkpoints.weights import parameter_shapes
from model.config import TransformerConfig


@dataclass(frozen=True, slots=True)
class _Listed:
    """A checkpoint: use, sizes (vocabulary, d_model, feed-forward, layers of both stacks), other settings."""

    name: str
    use: str
    sizes: tuple[int, int, int, int]
    settings: dict[str, bool] = field(default_factory=dict)

    @property
    def config(self) -> TransformerConfig:
        vocab_size, d_model, width, num_layers = self.sizes
        return TransformerConfig(
            vocab_size=vocab_size,
            d_model=d_model,
            num_heads=d_model // 64,
            feed_forward_width=width,
            num_encoder_layers=num_layers,
            num_decoder_layers=num_layers,
            pad_token_id=0,
            eos_token_id=1,
            decoder_start_token_id=0,
            **self.settings,  # type: ignore[arg-type]  # fields of this type
        )


_T5 = {"biases": False}
CHECKPOINTS = (
    _Listed("Helsinki-NLP/opus-mt-en-fr", "English to French", (59_514, 512, 2048, 6)),
    _Listed("facebook/nllb-200-distilled-600M", "200 languages", (256_206, 1024, 4096, 12)),
    _Listed("facebook/nllb-200-distilled-1.3B", "200 languages", (256_206, 1024, 8192, 24)),
    _Listed("facebook/nllb-200-3.3B", "200 languages", (256_206, 2048, 8192, 24)),
    _Listed("facebook/m2m100_418M", "100 languages", (128_112, 1024, 4096, 12)),
    _Listed("facebook/m2m100_1.2B", "100 languages", (128_112, 1024, 8192, 24)),
    _Listed("facebook/mbart-large-50-many-to-many-mmt", "50 languages", (250_054, 1024, 4096, 12)),
    _Listed("facebook/bart-large-cnn", "summaries", (50_264, 1024, 4096, 12)),
    _Listed("google/pegasus-xsum", "summaries", (96_103, 1024, 4096, 16)),
    _Listed("google-t5/t5-small", "tasks by prefix", (32_128, 512, 2048, 6), _T5),
    _Listed("google-t5/t5-base", "tasks by prefix", (32_128, 768, 3072, 12), _T5),
    _Listed("google/flan-t5-base", "instructions", (32_128, 768, 2048, 12), _T5 | {"gated": True, "tie_output": False}),
)


def models_table() -> str:
    """Return the checkpoints as a Markdown table."""
    rows = [
        "| checkpoint | use | parameters | int8 bundle | float32 bundle | products a token |",
        "|---|---|---|---|---|---|",
    ]
    for listed in CHECKPOINTS:
        config = listed.config
        rows.append(
            f"| `{listed.name}` | {listed.use} | {num_parameters(config) / 1e6:,.0f} million | "
            f"{_megabytes(bundle_bytes(config, 1))} | {_megabytes(bundle_bytes(config, 4))} | "
            f"{products_of_token(config) / 1e6:,.0f} million |"
        )
    return "\n".join(rows) + "\n"


def num_parameters(config: TransformerConfig) -> int:
    """Return the number of parameters of a checkpoint."""
    return sum(shape.numel() for shape in _shapes(config).values())


def bundle_bytes(config: TransformerConfig, item_size: int) -> int:
    """Return the size of a bundle's weights: both graphs share the table of embeddings; the output has its own."""
    table = config.vocab_size * config.d_model
    return item_size * (2 * table + sum(_products(config, "encoder")) + sum(_products(config, "decoder")))


def products_of_token(config: TransformerConfig) -> int:
    """Return the multiplications of one decoder step of one row: its time grows with them."""
    # The keys and values of cross-attention are computed once for a source.
    cross = 2 * config.d_model**2 * config.num_decoder_layers
    return config.vocab_size * config.d_model + sum(_products(config, "decoder")) - cross


@cache
def _shapes(config: TransformerConfig) -> dict[str, torch.Size]:
    return parameter_shapes(config)


def _products(config: TransformerConfig, stack: str) -> Iterator[int]:
    for name, shape in _shapes(config).items():
        if name.startswith(f"{stack}.layers.") and len(shape) == 2:
            yield shape.numel()


def _megabytes(num_bytes: int) -> str:
    return f"{num_bytes / 1e6:,.0f} MB" if num_bytes < 2e9 else f"{num_bytes / 1e9:.1f} GB"
