"""One's own model: a JSON file with the fields of `TransformerConfig`, and weights in safetensors.

Weights have the parameter names of `Transformer`, or those of PyTorch's `nn.Transformer`. The JSON file can rename
prefixes, and lists tokenizer files and languages.
"""

from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path

import torch
from torch import Tensor

from model.checkpoints.archives import sha256_of
from model.checkpoints.checkpoint import (
    Checkpoint,
    CheckpointError,
    Generation,
    Languages,
    Provenance,
    SourceTemplate,
    TokenizerFiles,
)
from model.checkpoints.hugging_face_files import Settings, read_settings, read_weight_file
from model.checkpoints.language_codes import language_code
from model.checkpoints.weights import parameter_shapes, select_weights
from model.config import TransformerConfig

FAMILY = "own"
_OWN_KEYS = ("tokenizer", "source_languages", "target_languages", "names")
_TOKENIZER_KEYS = ("kind", "files", "before", "after")
# (PyTorch's name, ours) after `encoder.layers.0.` or `decoder.layers.0.`.
_ATTENTIONS = {"self_attn": "self_attention", "multihead_attn": "cross_attention"}
_PARTS = {"linear1": "feed_forward.inner_proj", "linear2": "feed_forward.outer_proj"}
_NORMS = {
    "encoder": {"norm1": "self_attention_norm", "norm2": "feed_forward_norm"},
    "decoder": {"norm1": "self_attention_norm", "norm2": "cross_attention_norm", "norm3": "feed_forward_norm"},
}
_PROJECTIONS = ("query_proj", "key_proj", "value_proj")


def read_own_model(config_file: Path, weights_file: Path) -> Checkpoint:
    """Read a model from its two files. Raises `CheckpointError` that names the file, field or weights."""
    for file in (config_file, weights_file):
        if not file.exists():
            raise CheckpointError(f"{file} does not exist; with --config, a model is that file and a file of weights")
        if file.is_dir():
            raise CheckpointError(f"{file} is a folder; with --config, a model is that file and a file of weights")
    settings = read_settings(config_file)
    config = own_config(settings)
    renamed = {_renamed(name, settings): tensor for name, tensor in read_weight_file(weights_file).items()}
    tensors = from_pytorch(renamed)
    shapes = parameter_shapes(config)
    names = {parameter: [parameter] for parameter in shapes}
    if config.tie_embeddings and not config.is_encoder_only:
        names["encoder.embedding.weight"].append("decoder.embedding.weight")
    if config.tie_output and not config.is_encoder_only:
        owner = "encoder.embedding.weight" if config.tie_embeddings else "decoder.embedding.weight"
        names[owner].append("output_projection.weight")
    return Checkpoint(
        config=config,
        weights=select_weights(shapes, tensors, weights_file.name, names),
        tokenizer=_tokenizer(settings, config_file.parent),
        languages=Languages(_languages(settings, "source_languages"), _languages(settings, "target_languages")),
        provenance=Provenance(weights_file.stem, FAMILY, sha256_of(weights_file)),
        generation=Generation(),
    )


def own_config(settings: Settings) -> TransformerConfig:
    """Return the configuration that a JSON file describes. Raises `CheckpointError` with every wrong field."""
    known = {field.name for field in fields(TransformerConfig)}
    values = {name: value for name, value in settings.values.items() if name not in _OWN_KEYS}
    if unknown := sorted(values.keys() - known):
        raise CheckpointError(
            f"{settings.file_name}: no field of the configuration: {', '.join(unknown)}. "
            f"Available: {', '.join(sorted(known | {*_OWN_KEYS}))}"
        )
    defaults = TransformerConfig(vocab_size=2, pad_token_id=0, eos_token_id=1, decoder_start_token_id=0)
    for name in values:
        _check_type(settings, name, getattr(defaults, name))
    if values.get("num_decoder_layers") == 0 and "pad_token_id" in values:
        values.setdefault("decoder_start_token_id", values["pad_token_id"])  # required, and not used
    if isinstance(suppressed := values.get("suppressed_token_ids"), list):
        values["suppressed_token_ids"] = tuple(suppressed)
    try:
        return TransformerConfig(**values)  # type: ignore[arg-type]  # types are checked above
    except (TypeError, ValueError) as error:
        raise CheckpointError(f"{settings.file_name}: {error}") from error


def _check_type(settings: Settings, name: str, default: object) -> None:
    if settings.values[name] is None:
        return
    if isinstance(default, bool):
        settings.boolean(name, default)
    elif isinstance(default, float) or name == "attention_scale":
        settings.number(name, 0.0)
    elif isinstance(default, str):
        settings.text(name, default)
    elif isinstance(default, tuple):
        listed = settings.values[name]
        if not isinstance(listed, list) or not all(type(token) is int for token in listed):
            settings.reject(name, "must be a list of whole numbers")
    else:
        settings.integer(name)


def _renamed(name: str, settings: Settings) -> str:
    prefixes = settings.values.get("names") or {}
    if not isinstance(prefixes, dict) or not all(isinstance(new, str) for new in prefixes.values()):
        settings.reject("names", "must map prefixes of names to their replacements")
    # The longest prefix first: it is the most specific.
    for prefix in sorted(prefixes, key=len, reverse=True):
        if name.startswith(prefix):
            return str(prefixes[prefix]) + name.removeprefix(prefix)
    return name


def _tokenizer(settings: Settings, folder: Path) -> TokenizerFiles:
    described = settings.values.get("tokenizer") or {"kind": "bytes"}
    if not isinstance(described, dict) or not described.keys() <= {*_TOKENIZER_KEYS}:
        settings.reject("tokenizer", f"must have no other fields than {', '.join(_TOKENIZER_KEYS)}")
    inner = Settings(f"{settings.file_name}: tokenizer", described)
    files = described.get("files") or {}
    if not isinstance(files, dict) or not all(isinstance(file, str) for file in files.values()):
        inner.reject("files", "must map names in the bundle to paths")
    paths = {str(name): folder / str(file) for name, file in files.items()}
    if missing := [str(path) for path in paths.values() if not path.is_file()]:
        raise CheckpointError(f"{settings.file_name}: no such tokenizer file: {', '.join(missing)}")
    after = _tokens(inner, "after")
    return TokenizerFiles(inner.text("kind", "bytes"), paths, SourceTemplate(_tokens(inner, "before") or (), after))


def _tokens(settings: Settings, name: str) -> tuple[int, ...] | None:
    listed = settings.values.get(name)
    if listed is None:
        return None
    if not isinstance(listed, list) or not all(type(token) is int for token in listed):
        settings.reject(name, "must be a list of token ids")
    return tuple(listed)


def _languages(settings: Settings, name: str) -> tuple[str, ...]:
    listed = settings.values.get(name) or []
    if not isinstance(listed, list) or not all(isinstance(language, str) for language in listed):
        settings.reject(name, "must be a list of language codes")
    return tuple(map(language_code, listed))


def from_pytorch(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return weights with the names of `nn.Transformer` under ours; other names stay.

    `in_proj_weight` and `in_proj_bias` contain three projections one below the other.
    """
    renamed: dict[str, Tensor] = {}
    for name, tensor in tensors.items():
        stack, _, rest = name.partition(".")
        if stack not in _NORMS:
            renamed[name] = tensor
        elif rest.startswith("norm."):
            renamed[f"{stack}.final_{rest}"] = tensor
        elif rest.startswith("layers."):
            _, index, part, *inner = rest.split(".")
            renamed.update(_of_layer(stack, f"{stack}.layers.{index}", part, ".".join(inner), tensor))
        else:
            renamed[name] = tensor
    return renamed


def _of_layer(stack: str, layer: str, part: str, inner: str, tensor: Tensor) -> dict[str, Tensor]:
    if part in _ATTENTIONS and inner.startswith("in_proj_"):
        kind = inner.removeprefix("in_proj_")
        # Clones: a view of the fused weight could not be saved by itself.
        chunks = (chunk.clone() for chunk in torch.chunk(tensor, 3))
        names = (f"{layer}.{_ATTENTIONS[part]}.{projection}.{kind}" for projection in _PROJECTIONS)
        return dict(zip(names, chunks, strict=True))
    ours = _ATTENTIONS.get(part) or _PARTS.get(part) or _NORMS[stack].get(part) or part
    return {f"{layer}.{ours}.{inner}": tensor}
