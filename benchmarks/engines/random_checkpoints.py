"""Checkpoints of the sizes of well-known models, with random weights: speed and memory depend on sizes only.

They are files for `kvasir export --config`, with bytes as tokens.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

_LAYERS = {"m2m100-418m": 12, "nllb-600m": 12, "nllb-3.3b": 24, "bart-base": 6, "t5-base": 12}
_PRE_NORM: dict[str, object] = {
    "norm_placement": "pre",
    "final_norm": True,
    "sinusoid_layout": "halves_inclusive",
    "activation": "relu",
}
_FAMILIES: Mapping[str, dict[str, object]] = {
    "m2m100-418m": {**_PRE_NORM, "vocab_size": 128_112, "d_model": 1024, "num_heads": 16, "feed_forward_width": 4096},
    "nllb-600m": {**_PRE_NORM, "vocab_size": 256_206, "d_model": 1024, "num_heads": 16, "feed_forward_width": 4096},
    "nllb-3.3b": {**_PRE_NORM, "vocab_size": 256_206, "d_model": 2048, "num_heads": 16, "feed_forward_width": 8192},
    "bart-base": {
        "vocab_size": 50_265,
        "d_model": 768,
        "num_heads": 12,
        "feed_forward_width": 3072,
        "activation": "gelu",
        "positions": "learned",
        "position_offset": 2,
        "embedding_norm": True,
        "scale_embedding": False,
        "output_bias": True,
    },
    "t5-base": {
        "vocab_size": 32_128,
        "d_model": 768,
        "num_heads": 12,
        "feed_forward_width": 3072,
        "norm_placement": "pre",
        "norm": "rms",
        "final_norm": True,
        "biases": False,
        "attention_scale": 1.0,
        "positions": "none",
        "relative_buckets": 32,
        "scale_embedding": False,
        "output_scale": 768**-0.5,
    },
}
SIZES = tuple(_FAMILIES)
_TOKENS = {"pad_token_id": 0, "eos_token_id": 1, "decoder_start_token_id": 2}


@dataclass(frozen=True, slots=True)
class RandomCheckpoint:
    """The two files of a random model, and its number of parameters."""

    config: Path
    weights: Path
    num_parameters: int


def settings_of(size: str, *, as_marian: bool = False) -> dict[str, object]:
    """Return the fields of `TransformerConfig` of a size; `as_marian` with Marian's architecture instead."""
    layers = {"num_encoder_layers": _LAYERS[size], "num_decoder_layers": _LAYERS[size]}
    named = _FAMILIES[size]
    if as_marian:
        named = {name: named[name] for name in ("vocab_size", "d_model", "num_heads", "feed_forward_width")}
    return {**named, **layers, **_TOKENS}


def write_checkpoint(size: str, folder: Path, *, as_marian: bool = False) -> RandomCheckpoint:
    """Write a random checkpoint of a size to `folder`."""
    # Imported here: processes whose memory is measured import this module.
    import torch
    from safetensors.torch import save_file

    from model.checkpoints.weights import parameter_shapes
    from model.config import TransformerConfig

    settings = settings_of(size, as_marian=as_marian)
    shapes = parameter_shapes(TransformerConfig(**settings))  # type: ignore[arg-type]  # fields of these types
    generator = torch.Generator().manual_seed(1)
    weights = {}
    for name, shape in shapes.items():
        if "norm" in name:
            weights[name] = torch.ones(shape) if name.endswith("weight") else torch.zeros(shape)
        else:
            weights[name] = torch.randn(shape, generator=generator).mul_(shape[-1] ** -0.5)
    folder.mkdir(parents=True, exist_ok=True)
    config, file = folder / f"{size}.json", folder / f"{size}.safetensors"
    save_file(weights, file)
    config.write_text(json.dumps(settings), "utf-8")
    return RandomCheckpoint(config, file, sum(tensor.numel() for tensor in weights.values()))
