"""Registration of the native operators with ONNX Runtime sessions.

The environment variable KVASIR_KERNELS is read when sessions are opened, here and by the library: "off", or the
instruction set to use instead of the best one: "amx", "avx512vnni", "avxvnni", "avx2one" (AVX2 on processors with one
unit for integer multiplications) or "avx2", on Arm "i8mm" or "dotprod". "portable" runs everywhere and is several times
slower than ONNX Runtime's own operators, so it is never the default.
"""

import ctypes
import os
from typing import TYPE_CHECKING

from kernels import shared_library as binary

if TYPE_CHECKING:
    import onnxruntime as ort

ONNX_RUNTIME = "onnxruntime"
"""The result of `running_kernels` if the native operators are not used."""

_SETTING = "KVASIR_KERNELS"
_OFF = "off"
_PORTABLE = "portable"
_NAMES = ("amx", "avx512vnni", "avxvnni", "avx2one", "avx2", "i8mm", "dotprod", _PORTABLE)


class KernelsUnavailable(Exception):
    """The kernels in KVASIR_KERNELS do not exist, were not built, or cannot run on this processor."""


def register(options: "ort.SessionOptions") -> None:
    """Let sessions with these options run the operators of domain `kvasir` natively.

    Does nothing without the library, on a processor with none of the instruction sets, or with KVASIR_KERNELS=off;
    ONNX Runtime's own operators then compute the same. A process has one instruction set: registering with another one
    changes it for all sessions. Raises `KernelsUnavailable`.
    """
    if running_kernels() != ONNX_RUNTIME:
        options.register_custom_ops_library(str(binary.FILE))


def running_kernels() -> str:
    """Return the instruction set of sessions opened now, or `ONNX_RUNTIME`. Raises `KernelsUnavailable`."""
    wanted = os.environ.get(_SETTING, "")
    if wanted == _OFF:
        return ONNX_RUNTIME
    if wanted and wanted not in _NAMES:
        raise KernelsUnavailable(f"`{_SETTING}` must be one of {', '.join((*_NAMES, _OFF))}. Given: {wanted}")
    library = binary.load()
    if library is None:
        if wanted:
            raise KernelsUnavailable(
                f"{_SETTING}={wanted}, but {binary.FILE.name} was not built; `pip install -v` shows the reason, "
                f"{_SETTING}={_OFF} disables native operators"
            )
        return ONNX_RUNTIME
    library.kvasir_kernels_name.restype = ctypes.c_char_p
    name: bytes | None = library.kvasir_kernels_name()
    if name is None:
        raise KernelsUnavailable(f"{_SETTING}={wanted} cannot run on this processor; unset it to use the best kernels")
    return ONNX_RUNTIME if name.decode() == _PORTABLE and not wanted else name.decode()
