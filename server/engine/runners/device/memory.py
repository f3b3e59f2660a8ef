"""Memory of a device behind an interface: of the host, and of an NVIDIA GPU through the CUDA runtime library."""

import ctypes
import weakref
from collections import defaultdict
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import onnxruntime as ort
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
        owner = _Owner()
        weakref.finalize(owner, free.append, block).atexit = False
        return Block(block.address, block.num_bytes, owner)


_HOST_TO_DEVICE, _DEVICE_TO_HOST = 1, 2
_NON_BLOCKING = 1  # the stream does not wait for CUDA's default stream, which is not used here
_NO_TIMING = 2  # of events

# Parameters as in the header cuda_runtime_api.h; all functions return an error code.
_POINTER, _SIZE, _INT = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int
_SIGNATURES: dict[str, list[type]] = {
    "cudaGetDeviceCount": [_POINTER],
    "cudaMalloc": [_POINTER, _SIZE],
    "cudaFree": [_POINTER],
    "cudaMallocHost": [_POINTER, _SIZE],
    "cudaFreeHost": [_POINTER],
    "cudaMemsetAsync": [_POINTER, _INT, _SIZE, _POINTER],
    "cudaMemcpyAsync": [_POINTER, _POINTER, _SIZE, _INT, _POINTER],
    "cudaStreamCreateWithFlags": [_POINTER, ctypes.c_uint],
    "cudaEventCreateWithFlags": [_POINTER, ctypes.c_uint],
    "cudaEventRecord": [_POINTER, _POINTER],
    "cudaEventSynchronize": [_POINTER],
}


class CudaUnavailable(Exception):
    """No GPU can be used. The message names what is missing."""


class CudaMemory:
    """Memory of the first GPU visible to the process (see CUDA_VISIBLE_DEVICES), and a stream of it."""

    ort_name = "cuda"

    def __init__(self) -> None:
        self._runtime = _load_runtime()
        count = _INT()
        self._call("cudaGetDeviceCount", ctypes.byref(count))
        if not count.value:
            raise CudaUnavailable("no GPU is visible to this process; check nvidia-smi and CUDA_VISIBLE_DEVICES")
        self.queue = self._created("cudaStreamCreateWithFlags", _NON_BLOCKING)
        self._events = [self._created("cudaEventCreateWithFlags", _NO_TIMING) for _ in range(2)]
        self._num_marks = 0

    def allocate(self, num_bytes: int) -> Block:
        """Return memory of the GPU, filled with zeros."""
        address = self._created("cudaMalloc", max(num_bytes, 1))
        self._call("cudaMemsetAsync", address, 0, num_bytes, self.queue)
        owner = _Owner()
        weakref.finalize(owner, self._runtime.cudaFree, address).atexit = False
        return Block(address, num_bytes, owner)

    def host_array(self, shape: tuple[int, ...], dtype: type[np.number]) -> NDArray[np.generic]:
        """Return zeros in page-locked memory."""
        num_bytes = int(np.prod(shape)) * np.dtype(dtype).itemsize
        address = self._created("cudaMallocHost", num_bytes)
        buffer = (ctypes.c_uint8 * num_bytes).from_address(address)
        weakref.finalize(buffer, self._runtime.cudaFreeHost, address).atexit = False
        array: NDArray[np.generic] = np.ctypeslib.as_array(buffer).view(dtype).reshape(shape)
        array.fill(0)
        return array

    def upload(self, address: int, array: NDArray[np.generic]) -> None:
        """Copy an array; one in ordinary memory has been read when this returns."""
        self._call("cudaMemcpyAsync", address, array.ctypes.data, array.nbytes, _HOST_TO_DEVICE, self.queue)

    def download(self, array: NDArray[np.generic], address: int) -> None:
        """Copy to an array."""
        self._call("cudaMemcpyAsync", array.ctypes.data, address, array.nbytes, _DEVICE_TO_HOST, self.queue)

    def mark(self) -> int:
        """Record one of two events, alternately."""
        self._num_marks += 1
        self._call("cudaEventRecord", self._events[self._num_marks % 2], self.queue)
        return self._num_marks

    def wait(self, mark: int) -> None:
        """Block until the event of a mark has happened."""
        assert self._num_marks - mark < len(self._events), "only the last two marks can be awaited"
        self._call("cudaEventSynchronize", self._events[mark % 2])

    def _created(self, function: str, argument: int) -> int:
        """Return the address that a function writes to its first argument."""
        address = ctypes.c_void_p()
        self._call(function, ctypes.byref(address), argument)
        assert address.value is not None
        return address.value

    def _call(self, function: str, *arguments: object) -> None:
        code = getattr(self._runtime, function)(*arguments)
        if code:
            reason = self._runtime.cudaGetErrorString(code).decode()
            raise CudaUnavailable(f"{function}: {reason} (CUDA error {code})")


class _Owner:
    """Object for a weak reference, whose end frees memory or returns it to its pool."""


def _load_runtime() -> ctypes.CDLL:
    """Return the CUDA runtime library of the version that this ONNX Runtime was built for."""
    version = str(ort.cuda_version or "").split(".")[0]
    if not version:
        raise CudaUnavailable("this ONNX Runtime was built without CUDA")
    name = f"libcudart.so.{version}"
    try:
        runtime = ctypes.CDLL(name)
    except OSError as error:
        raise CudaUnavailable(f"{name} cannot be loaded: {error}") from error
    for function, arguments in _SIGNATURES.items():
        getattr(runtime, function).argtypes = arguments
        getattr(runtime, function).restype = _INT
    runtime.cudaGetErrorString.argtypes = [_INT]
    runtime.cudaGetErrorString.restype = ctypes.c_char_p
    return runtime
