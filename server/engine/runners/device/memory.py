"""Memory of a device behind an interface that the host implements as well."""

import ctypes
import weakref
from collections import defaultdict
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from server.engine.kv_cache import lazy_zeros


@dataclass(frozen=True, slots=True)
class Block:
    """Memory at an `address` of a device. It is freed when the last reference to `owner` is gone."""

    address: int
    num_bytes: int
    owner: object


class DeviceMemory(Protocol):
    """Memory of one device, and one queue of work on it.

    Operations happen in the order of the calls, and only `wait` blocks.
    """

    @property
    def ort_name(self) -> str:
        """Name of the device in bindings of ONNX Runtime."""
        ...

    @property
    def queue(self) -> int | None:
        """Address of the queue for ONNX Runtime; None if its runs are synchronous."""
        ...

    def allocate(self, num_bytes: int) -> Block:
        """Return memory of the device, filled with zeros."""
        ...

    def host_array(self, shape: tuple[int, ...], dtype: type[np.number]) -> NDArray[np.generic]:
        """Return zeros on the host, in memory that the device can access directly."""
        ...

    def upload(self, address: int, array: NDArray[np.generic]) -> None:
        """Copy a contiguous array to the device. An array of `host_array` is read later: wait before changing it."""
        ...

    def download(self, array: NDArray[np.generic], address: int) -> None:
        """Copy from the device to a contiguous array, valid after a `wait` for a later `mark`."""
        ...

    def mark(self) -> int:
        """Mark the present end of the queue. `wait` accepts the last two marks only."""
        ...

    def wait(self, mark: int) -> None:
        """Block until the device has reached a mark."""
        ...


class HostMemory:
    """The host as a device: every operation is synchronous."""

    ort_name = "cpu"
    queue = None

    def allocate(self, num_bytes: int) -> Block:
        """Return memory of the host, which the system provides page by page."""
        array = lazy_zeros((max(num_bytes, 1),), np.uint8)
        return Block(array.ctypes.data, num_bytes, array)

    def host_array(self, shape: tuple[int, ...], dtype: type[np.number]) -> NDArray[np.generic]:
        """Return zeros."""
        return np.zeros(shape, dtype)

    def upload(self, address: int, array: NDArray[np.generic]) -> None:
        """Copy an array."""
        ctypes.memmove(address, array.ctypes.data, array.nbytes)

    def download(self, array: NDArray[np.generic], address: int) -> None:
        """Copy to an array."""
        ctypes.memmove(array.ctypes.data, address, array.nbytes)

    def mark(self) -> int:
        """Return a mark that needs no waiting."""
        return 0

    def wait(self, mark: int) -> None:
        """Do nothing: no operation is pending."""


class Pool:
    """Pool of blocks, reused because an allocation makes the device wait.

    A block returns when the last reference to its owner is gone. It may be reused while the device still works on it,
    because the device executes operations in order.
    """

    def __init__(self, memory: DeviceMemory) -> None:
        self._memory = memory
        self._free: dict[int, list[Block]] = defaultdict(list)

    def take(self, num_bytes: int) -> Block:
        """Return an uninitialised block of at least `num_bytes` bytes."""
        size = 1 << max(num_bytes - 1, 1).bit_length()
        free = self._free[size]
        block = free.pop() if free else self._memory.allocate(size)
        owner = _PoolOwner()
        weakref.finalize(owner, free.append, block).atexit = False
        return Block(block.address, block.num_bytes, owner)


class _PoolOwner:
    """Object for a weak reference, whose end returns the block."""
