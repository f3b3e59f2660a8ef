"""Where a device's numbers lie, and how they come and go: behind an interface, so that the host can play the device."""

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
    """Memory of a device, zero at first: `address` is the device's. It is given back when nobody holds `owner`."""

    address: int
    num_bytes: int
    owner: object


class DeviceMemory(Protocol):
    """One device, and one queue of work on it: what is asked for happens in that order, and nothing here waits.

    Except where it says so: `wait` does.
    """

    @property
    def ort_name(self) -> str:
        """What ONNX Runtime calls the device when memory is bound."""
        ...

    @property
    def queue(self) -> int | None:
        """The address of the queue, for ONNX Runtime to work in; None where runs end before they return."""
        ...

    def allocate(self, num_bytes: int) -> Block:
        """Memory of the device, filled with zeros."""
        ...

    def host_array(self, shape: tuple[int, ...], dtype: type[np.number]) -> NDArray[np.generic]:
        """Zeros on the host, in memory that the device can read and write by itself."""
        ...

    def upload(self, address: int, array: NDArray[np.generic]) -> None:
        """Copy a contiguous array to the device. One from `host_array` is read later: wait before changing it."""
        ...

    def download(self, array: NDArray[np.generic], address: int) -> None:
        """Fill a contiguous array from the device; what it holds is there after a `wait` for a later `mark`."""
        ...

    def mark(self) -> int:
        """Mark this place in the queue. Only the last two marks can be waited for."""
        ...

    def wait(self, mark: int) -> None:
        """Return when the device has come to a mark."""
        ...


class HostMemory:
    """The host as a device of its own: everything happens at once."""

    ort_name = "cpu"
    queue = None

    def allocate(self, num_bytes: int) -> Block:
        """Memory of the host, handed out page by page."""
        array = lazy_zeros((max(num_bytes, 1),), np.uint8)
        return Block(array.ctypes.data, num_bytes, array)

    def host_array(self, shape: tuple[int, ...], dtype: type[np.number]) -> NDArray[np.generic]:
        """Zeros."""
        return np.zeros(shape, dtype)

    def upload(self, address: int, array: NDArray[np.generic]) -> None:
        """Copy."""
        ctypes.memmove(address, array.ctypes.data, array.nbytes)

    def download(self, array: NDArray[np.generic], address: int) -> None:
        """Copy."""
        ctypes.memmove(array.ctypes.data, address, array.nbytes)

    def mark(self) -> int:
        """Nothing is ever pending."""
        return 0

    def wait(self, mark: int) -> None:
        """Nothing is ever pending."""


class Pool:
    """Blocks that are lent and come back when nobody holds them: allocating makes a device wait, this does not.

    A block may be lent again while the device still works on it, because the device does one thing after the other.
    """

    def __init__(self, memory: DeviceMemory) -> None:
        self._memory = memory
        self._free: dict[int, list[Block]] = defaultdict(list)

    def lend(self, num_bytes: int) -> Block:
        """A block of at least this size, with whatever somebody left in it."""
        size = 1 << max(num_bytes - 1, 1).bit_length()
        free = self._free[size]
        block = free.pop() if free else self._memory.allocate(size)
        loan = _Loan()
        weakref.finalize(loan, free.append, block).atexit = False
        return Block(block.address, block.num_bytes, loan)


class _Loan:
    """Something that a weak reference can point to."""
