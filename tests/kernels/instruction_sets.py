"""Which instruction sets this machine can run kernels on."""

import pytest

from kernels.onnx_registration import KernelsUnavailable, running_kernels


def _can_run(name: str) -> bool:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KVASIR_KERNELS", name)
        try:
            return running_kernels() == name
        except KernelsUnavailable:
            return False


INSTRUCTION_SETS = [
    name
    for name in ("portable", "dotprod", "i8mm", "avx2", "avx2one", "avxvnni", "avx512vnni", "amx")
    if _can_run(name)
]
