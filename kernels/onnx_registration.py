"""Where the native operators are, if they were built and are wanted.

KVASIR_KERNELS, an environment variable, is read whenever sessions are opened, here and by the library itself: "off", or
the instruction set to use ("avx512vnni", "avx2", "portable") instead of the best one. "portable" runs everywhere and is
several times slower than ONNX Runtime's own operators, so nobody gets it who did not ask.
"""

import ctypes
import os

import onnxruntime as ort

from kernels import shared_library as binary

ONNX_RUNTIME = "onnxruntime"
"""What `running_kernels` names when the native operators are not used."""

_SETTING = "KVASIR_KERNELS"
_OFF = "off"
_PORTABLE = "portable"
_NAMES = ("avx512vnni", "avx2", _PORTABLE)


class KernelsUnavailable(Exception):
    """KVASIR_KERNELS names kernels that do not exist, were not built, or cannot run on this processor."""


def register(options: ort.SessionOptions) -> None:
    """Let sessions with these options run the operators of domain `kvasir` natively.

    Without the library, on a processor with neither instruction set, or with KVASIR_KERNELS=off, nothing is done, and
    ONNX Runtime's own operators do the same work. One instruction set serves a whole process: registering with another
    one changes it for all its sessions. Raises `KernelsUnavailable`.
    """
    if running_kernels() != ONNX_RUNTIME:
        options.register_custom_ops_library(str(binary.FILE))


def running_kernels() -> str:
    """The instruction set that sessions registered now run on, or `ONNX_RUNTIME`. Raises `KernelsUnavailable`."""
    wanted = os.environ.get(_SETTING, "")
    if wanted == _OFF:
        return ONNX_RUNTIME
    if wanted and wanted not in _NAMES:
        raise KernelsUnavailable(f"{_SETTING}={wanted} is none of {', '.join((*_NAMES, _OFF))}")
    library = binary.load()
    if library is None:
        if wanted:
            raise KernelsUnavailable(
                f"{_SETTING}={wanted}, but {binary.FILE.name} was not built: `pip install -v` says why; "
                f"{_SETTING}={_OFF} does without"
            )
        return ONNX_RUNTIME
    library.kvasir_kernels_name.restype = ctypes.c_char_p
    name: bytes | None = library.kvasir_kernels_name()
    if name is None:
        raise KernelsUnavailable(f"{_SETTING}={wanted}: this processor cannot run them; unset it for the best it can")
    return ONNX_RUNTIME if name.decode() == _PORTABLE and not wanted else name.decode()
