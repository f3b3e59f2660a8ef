"""An NVIDIA GPU's memory and one stream of it, through CUDA's runtime library, which ONNX Runtime has loaded anyway."""

import ctypes
import weakref

import numpy as np
import onnxruntime as ort
from numpy.typing import NDArray

from server.engine.runners.device.memory import Block

_HOST_TO_DEVICE, _DEVICE_TO_HOST = 1, 2
_NON_BLOCKING = 1  # the stream does not wait for CUDA's default one, which nobody uses here
_NO_TIMING = 2  # of events

# What the functions take, as the header cuda_runtime_api.h has it; all of them return an error code.
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
    """There is no GPU to work on; the message says what is missing."""


class CudaMemory:
    """The first GPU that the process sees (CUDA_VISIBLE_DEVICES says which) and a stream of it."""

    ort_name = "cuda"

    def __init__(self) -> None:
        self._runtime = _load_runtime()
        count = _INT()
        self._call("cudaGetDeviceCount", ctypes.byref(count))
        if not count.value:
            raise CudaUnavailable("this process sees no GPU: check nvidia-smi, and CUDA_VISIBLE_DEVICES")
        self.queue = self._created("cudaStreamCreateWithFlags", _NON_BLOCKING)
        self._events = [self._created("cudaEventCreateWithFlags", _NO_TIMING) for _ in range(2)]
        self._num_marks = 0

    def allocate(self, num_bytes: int) -> Block:
        """Memory of the GPU, filled with zeros."""
        address = self._created("cudaMalloc", max(num_bytes, 1))
        self._call("cudaMemsetAsync", address, 0, num_bytes, self.queue)
        owner = _Owner()
        weakref.finalize(owner, self._runtime.cudaFree, address).atexit = False
        return Block(address, num_bytes, owner)

    def host_array(self, shape: tuple[int, ...], dtype: type[np.number]) -> NDArray[np.generic]:
        """Zeros in page-locked memory."""
        num_bytes = int(np.prod(shape)) * np.dtype(dtype).itemsize
        address = self._created("cudaMallocHost", num_bytes)
        buffer = (ctypes.c_uint8 * num_bytes).from_address(address)
        weakref.finalize(buffer, self._runtime.cudaFreeHost, address).atexit = False
        array: NDArray[np.generic] = np.ctypeslib.as_array(buffer).view(dtype).reshape(shape)
        array.fill(0)
        return array

    def upload(self, address: int, array: NDArray[np.generic]) -> None:
        """Copy; arrays in ordinary memory have been read when this returns."""
        self._call("cudaMemcpyAsync", address, array.ctypes.data, array.nbytes, _HOST_TO_DEVICE, self.queue)

    def download(self, array: NDArray[np.generic], address: int) -> None:
        """Copy."""
        self._call("cudaMemcpyAsync", array.ctypes.data, address, array.nbytes, _DEVICE_TO_HOST, self.queue)

    def mark(self) -> int:
        """Two events take turns."""
        self._num_marks += 1
        self._call("cudaEventRecord", self._events[self._num_marks % 2], self.queue)
        return self._num_marks

    def wait(self, mark: int) -> None:
        """Wait for one of them."""
        assert self._num_marks - mark < len(self._events), "this event marks another place by now"
        self._call("cudaEventSynchronize", self._events[mark % 2])

    def _created(self, function: str, argument: int) -> int:
        """The address that a function writes where its first argument points."""
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
    """Something that a weak reference can point to."""


def _load_runtime() -> ctypes.CDLL:
    """CUDA's runtime library, of the version that this ONNX Runtime was built for."""
    version = str(ort.cuda_version or "").split(".")[0]
    if not version:
        raise CudaUnavailable("this ONNX Runtime was built without CUDA")
    name = f"libcudart.so.{version}"
    try:
        runtime = ctypes.CDLL(name)
    except OSError as error:
        raise CudaUnavailable(f"{name} is not there: {error}") from error
    for function, arguments in _SIGNATURES.items():
        getattr(runtime, function).argtypes = arguments
        getattr(runtime, function).restype = _INT
    runtime.cudaGetErrorString.argtypes = [_INT]
    runtime.cudaGetErrorString.restype = ctypes.c_char_p
    return runtime
