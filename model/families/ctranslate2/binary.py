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

from model.checkpoints.errors import CheckpointError

VERSIONS: Final = (5, 6)
SPECIFICATIONS: Final[Mapping[str, int]] = {"TransformerSpec": 7}
"""Supported specifications and their newest revision."""

_MIN_REVISION: Final = 3
_MAX_RANK: Final = 8
# In the order of their numbers in the file.
_TYPES: Final = (torch.float32, torch.int8, torch.int16, torch.int32, torch.float16, torch.bfloat16)
_MIN_VARIABLE_BYTES: Final = 2 + 1 + 1 + 4
_MIN_ALIAS_BYTES: Final = 2 * (2 + 1)


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
