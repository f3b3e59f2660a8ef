"""`model.bin` of CTranslate2: named numbers, scalars and strings (python/ctranslate2/specs/model_spec.py there).

Little-endian: version, name and revision of the specification, variables, then aliases of variables. Every count is
compared with the bytes that are left before it is used, and values share the memory of the mapped file.
"""

import mmap
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import torch
from torch import Tensor

from model.checkpoints.checkpoint import CheckpointError

VERSIONS: Final = (5, 6)
SPECIFICATIONS: Final[Mapping[str, int]] = {"TransformerSpec": 7}
"""Supported specifications and their newest revision."""

_MIN_REVISION: Final = 3
_MAX_RANK: Final = 8
# In the order of their numbers in the file.
_TYPES: Final = (torch.float32, torch.int8, torch.int16, torch.int32, torch.float16, torch.bfloat16)
_MIN_VARIABLE_BYTES: Final = 2 + 1 + 1 + 4
_MIN_ALIAS_BYTES: Final = 2 * (2 + 1)
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


@dataclass(frozen=True, slots=True)
class Variables:
    """Content of a file. An alias names the same tensor as its variable."""

    version: int
    revision: int
    tensors: Mapping[str, Tensor]
    aliases: Mapping[str, str]


def read_variables(path: Path) -> Variables:
    """Read a file. Raises `CheckpointError` with the position and the finding if it is damaged or not supported."""
    try:
        with path.open("rb") as stream:
            if path.stat().st_size == 0:
                raise CheckpointError(f"{path.name} is empty")
            content = mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_COPY)
    except OSError as error:
        raise CheckpointError(f"{path} cannot be read: {error}") from error
    return _Reader(path.name, content).read()


class _Reader:
    def __init__(self, name: str, content: mmap.mmap) -> None:
        self._name = name
        self._content = content
        self._position = 0

    def read(self) -> Variables:
        version = self._number("<I")
        if version not in VERSIONS:
            supported = " and ".join(map(str, VERSIONS))
            remedy = "; convert the model with a current CTranslate2" if version < VERSIONS[0] else ""
            raise self._error(f"binary version {version} is not supported. Supported: {supported}{remedy}")
        specification = self._string()
        revision = self._number("<I")
        newest = SPECIFICATIONS.get(specification)
        if newest is None:
            supported = ", ".join(SPECIFICATIONS)
            raise self._error(f"specification {specification!r} is not supported. Supported: {supported}")
        if not _MIN_REVISION <= revision <= newest:
            raise self._error(
                f"revision of {specification} must be from {_MIN_REVISION} to {newest}. Given: {revision}"
            )
        tensors: dict[str, Tensor] = {}
        for _ in range(self._count(_MIN_VARIABLE_BYTES, "variables")):
            name = self._string()
            if name in tensors:
                raise self._error(f"{name} occurs twice")
            tensors[name] = self._tensor(name)
        aliases: dict[str, str] = {}
        for _ in range(self._count(_MIN_ALIAS_BYTES, "aliases")):
            alias, target = self._string(), self._string()
            if target not in tensors or alias in tensors or alias in aliases:
                raise self._error(f"alias {alias} of {target} contradicts the variables")
            aliases[alias] = target
        if self._left:
            raise self._error(f"{self._left} bytes follow the last alias")
        return Variables(version, revision, tensors, aliases)

    @property
    def _left(self) -> int:
        return len(self._content) - self._position

    def _error(self, problem: str) -> CheckpointError:
        return CheckpointError(f"{self._name}, byte {self._position}: {problem}")

    def _take(self, num_bytes: int, what: str) -> int:
        """Return the position of the next bytes, and advance."""
        if num_bytes > self._left:
            raise self._error(f"{what} needs {num_bytes} bytes, and {self._left} are left; the file is damaged or cut")
        start = self._position
        self._position += num_bytes
        return start

    def _number(self, form: str) -> int:
        start = self._take(struct.calcsize(form), "a number")
        return int(struct.unpack_from(form, self._content, start)[0])

    def _count(self, min_bytes: int, what: str) -> int:
        count = self._number("<I")
        if count * min_bytes > self._left:
            raise self._error(f"{count} {what} do not fit into {self._left} bytes; the file is damaged or cut")
        return count

    def _string(self) -> str:
        length = self._number("<H")
        start = self._take(length, "a name")
        content = self._content[start : start + length]
        if length < 1 or content[-1] != 0:
            raise self._error("a name must end with a zero byte; the file is damaged or of another format")
        try:
            return content[:-1].decode("utf-8")
        except UnicodeDecodeError as error:
            raise self._error(f"a name is not UTF-8: {error}") from error

    def _tensor(self, name: str) -> Tensor:
        rank = self._number("<B")
        if rank > _MAX_RANK:
            raise self._error(f"{name} has {rank} dimensions; at most {_MAX_RANK} are supported")
        shape = [self._number("<I") for _ in range(rank)]
        type_number = self._number("<B")
        if type_number >= len(_TYPES):
            raise self._error(f"{name} has numbers of unknown type {type_number}")
        dtype = _TYPES[type_number]
        num_bytes = self._number("<I")
        num_values = 1
        for size in shape:
            num_values *= size
        if num_bytes != num_values * dtype.itemsize:
            raise self._error(
                f"{name} of shape {shape} must have {num_values * dtype.itemsize} bytes. Given: {num_bytes}"
            )
        if not num_values:
            raise self._error(f"{name} of shape {shape} has no values")
        start = self._take(num_bytes, name)
        values = np.frombuffer(self._content, dtype=np.uint8, count=num_bytes, offset=start)
        if start % dtype.itemsize:
            values = values.copy()  # torch requires aligned numbers
        return torch.from_numpy(values).view(dtype).reshape(shape)


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
