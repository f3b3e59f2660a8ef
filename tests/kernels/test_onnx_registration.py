import re
from pathlib import Path

import numpy as np
import onnxruntime as ort
import pytest

from export.int8 import operators
from kernels import shared_library as binary
from kernels.onnx_registration import ONNX_RUNTIME, KernelsUnavailable, register, running_kernels
from tests.kernels.arithmetic import Matrix
from tests.kernels.instruction_sets import INSTRUCTION_SETS
from tests.kernels.operator_sessions import OneOperator

SETTING = "KVASIR_KERNELS"
AMD_TO_ZEN_2 = (23, 24)
HASWELL_AND_BROADWELL = (60, 61, 63, 69, 70, 71, 79, 86)
UNKNOWN = "one of amx, avx512vnni, avxvnni, avx2one, avx2, i8mm, dotprod, portable, off. Given: mmx"


@pytest.mark.parametrize("setting", [None, ""])
def test_the_best_instruction_set_is_the_default(setting: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(SETTING, raising=False)
    if setting is not None:
        monkeypatch.setenv(SETTING, setting)
    best = INSTRUCTION_SETS[-1]
    if best == "avx2one" and not _has_one_multiplier():
        best = "avx2"  # which every processor with avx2one has as well
    assert running_kernels() == (best if best != "portable" else ONNX_RUNTIME)


def _has_one_multiplier() -> bool:
    numbers = dict(re.findall(r"(cpu family|model)\s*: (\d+)", Path("/proc/cpuinfo").read_text("ascii")))
    family, model = int(numbers["cpu family"]), int(numbers["model"])
    return family in AMD_TO_ZEN_2 or (family == 6 and model in HASWELL_AND_BROADWELL)


def test_a_name_that_does_not_exist_is_refused_with_those_that_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(SETTING, "mmx")
    for call in (running_kernels, lambda: register(ort.SessionOptions())):
        with pytest.raises(KernelsUnavailable, match=f"must be {UNKNOWN}"):
            call()


def test_off_leaves_the_work_to_onnx_runtime(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(SETTING, "off")
    assert running_kernels() == ONNX_RUNTIME
    assert not _refuses_a_width_of_three()


def test_without_the_library_onnx_runtime_does_the_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(SETTING, raising=False)
    monkeypatch.setattr(binary, "FILE", tmp_path / "libkvasir.so")
    assert running_kernels() == ONNX_RUNTIME
    assert not _refuses_a_width_of_three()


def test_registered_sessions_run_the_native_operators(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(SETTING, "portable")
    assert _refuses_a_width_of_three()


def _refuses_a_width_of_three() -> bool:
    """Only the native operator wants multiples of four."""
    matrix = Matrix.random(np.random.default_rng(0), 4, 5)
    inputs = matrix.inputs(np.ones((2, 3), np.float32))
    inputs["weight"] = inputs["weight"].reshape(1, 1, -1, 4)[:, :, :, :3]
    operator = OneOperator(operators.LINEAR, {"zero_point": 128, "levels": 127.0})
    try:
        operator.run(inputs)
    except Exception as error:  # noqa: BLE001 - ONNX Runtime's classes have no common one but this
        return "kvasir: a weight does not fit its input" in str(error)
    return False
