"""Variables of a CTranslate2 model by name: each is read once, and those that nothing reads are an error."""

import torch
from torch import Tensor

from model.checkpoints.errors import CheckpointError
from model.families.ctranslate2.binary import Variables

# Layers for alignments, and variables without an influence on tokens.
_IGNORED = (
    "encoder/embeddings_merge",  # there is one embedding of the source
    "decoder/alignment_layer",
    "decoder/alignment_heads",
    "encoder/multi_query_attention",
)
_OFF_BY_DEFAULT = ("decoder/alibi", "decoder/alibi_use_positive_positions", "decoder/scale_alibi")
# Attributes of both stacks in revisions before 5.
_SHARED_ATTRIBUTES = ("num_heads", "pre_norm", "activation", "embeddings_merge", "alignment_layer", "alignment_heads")


class Attributes:
    """Access to scalars and tensors. Quantised weights are read as float32."""

    def __init__(self, variables: Variables) -> None:
        self._tensors: dict[str, Tensor] = dict(variables.tensors)
        self._origin = {name: name for name in variables.tensors} | dict(variables.aliases)
        for alias, name in variables.aliases.items():
            self._tensors[alias] = variables.tensors[name]
            for suffix in ("_scale", "_zero"):
                if name + suffix in variables.tensors:
                    self._tensors[alias + suffix] = variables.tensors[name + suffix]
                    self._origin[alias + suffix] = name + suffix
        if variables.revision < 5:
            for name in _SHARED_ATTRIBUTES:
                if name in self._tensors:
                    value = self._tensors.pop(name)
                    self._tensors |= {f"encoder/{name}": value, f"decoder/{name}": value}
        self._unread = set(self._tensors)
        self.is_quantized = False

    def __contains__(self, name: str) -> bool:
        return name in self._tensors

    def tensor(self, name: str) -> Tensor:
        """Return a tensor in float32; int8 and int16 are divided by their scales. Raises `CheckpointError`."""
        if name not in self._tensors:
            raise CheckpointError(f"model.bin: {name} is missing")
        self._unread -= {name, f"{name}_scale"}
        value, scale = self._tensors[name], self._tensors.get(f"{name}_scale")
        if value.dtype in (torch.int8, torch.int16):
            if scale is None:
                raise CheckpointError(f"model.bin: {name} is {value.dtype} and has no {name}_scale")
            rows = value.shape[0] if value.dim() else 1
            if scale.numel() not in (1, rows) or not bool(torch.isfinite(scale).all() and (scale != 0).all()):
                raise CheckpointError(f"model.bin: {name}_scale must be {rows} numbers that are not zero")
            self.is_quantized = True
            column = scale.float().reshape(-1, *[1] * (value.dim() - 1))
            return value.float() / column
        if value.dtype == torch.int32:
            raise CheckpointError(f"model.bin: {name} must not contain int32")
        return value.float().clone()

    def same(self, name: str, other: str) -> bool:
        """Return whether two names are of one variable."""
        return name in self._origin and self._origin.get(name) == self._origin.get(other)

    def number(self, name: str, default: float | None = None) -> float:
        """Return a scalar. Without a default it is required."""
        if name not in self._tensors and default is not None:
            return default
        value = self._scalar(name)
        return float(value.item())

    def integer(self, name: str, default: int | None = None) -> int:
        """Return a scalar as a whole number."""
        number = self.number(name, default)
        if number != int(number):
            raise CheckpointError(f"model.bin: {name} must be a whole number. Given: {number}")
        return int(number)

    def flag(self, name: str, default: bool) -> bool:
        """Return a scalar as true or false."""
        return bool(self.number(name, float(default)))

    def is_flag(self, name: str) -> bool:
        """Return whether a scalar was written as true or false."""
        return name in self._tensors and self._tensors[name].dtype == torch.int8

    def text(self, name: str, default: str) -> str:
        """Return a string, which is stored as bytes."""
        if name not in self._tensors:
            return default
        self._unread.discard(name)
        value = self._tensors[name]
        if value.dtype != torch.int8 or value.dim() != 1:
            raise CheckpointError(f"model.bin: {name} must be a string")
        try:
            return bytes(value.view(torch.uint8).tolist()).decode("utf-8")
        except UnicodeDecodeError as error:
            raise CheckpointError(f"model.bin: {name} is not UTF-8: {error}") from error

    def require_all_read(self) -> None:
        """Raise `CheckpointError` for variables of layers or options that are not supported."""
        for name in _OFF_BY_DEFAULT:
            if name in self._unread and not self.flag(name, False):
                self._unread.discard(name)
        unread = sorted(self._unread - set(_IGNORED) - {"decoder/multi_query_attention"})
        if unread:
            raise CheckpointError(
                f"model.bin: {len(unread)} variables belong to layers or options that are not supported: "
                f"{', '.join(unread[:10])}{', ...' if len(unread) > 10 else ''}"
            )

    def _scalar(self, name: str) -> Tensor:
        if name not in self._tensors:
            raise CheckpointError(f"model.bin: {name} is missing")
        self._unread.discard(name)
        value = self._tensors[name]
        if value.numel() != 1 or not bool(torch.isfinite(value.float()).all()):
            raise CheckpointError(f"model.bin: {name} must be one number. Given: {list(value.shape)} numbers")
        return value.reshape(())


def layer_indices(attributes: Attributes, stack: str) -> range:
    """Return the indices of the layers of a stack."""
    num_layers = 0
    while f"{stack}/layer_{num_layers}/self_attention/linear_0/weight" in attributes:
        num_layers += 1
    if not num_layers:
        raise CheckpointError(f"model.bin: {stack} has no layers")
    return range(num_layers)
