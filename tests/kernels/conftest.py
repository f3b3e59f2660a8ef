from collections.abc import Iterator

import onnxruntime as ort
import pytest

from kernels.onnx_registration import register
from tests.kernels.instruction_sets import INSTRUCTION_SETS


@pytest.fixture(params=INSTRUCTION_SETS)
def instruction_set(request: pytest.FixtureRequest) -> Iterator[str]:
    """Every one that this machine can run, for all native sessions of the process while the test runs."""
    name: str = request.param
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KVASIR_KERNELS", name)
        register(ort.SessionOptions())
        yield name
    register(ort.SessionOptions())
