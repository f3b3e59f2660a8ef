"""Models and devices that are rejected at start, and the messages."""

import dataclasses
import shutil
from pathlib import Path

import onnxruntime as ort
import pytest
from typer.testing import CliRunner

from bundle import tensors as names
from bundle.loading import load_bundle, save_manifest
from bundle.manifest import BundleError
from kvasir_commands import app
from server.engine.runners.device.memory import CudaMemory, CudaUnavailable, HostMemory
from server.engine.runners.device.runner import DeviceRunner
from server.engine.runners.device.sessions import (
    CPU_PROVIDER,
    CUDA_PROVIDER,
    DeviceSessions,
    DeviceUnavailable,
    open_cuda,
    require_device_bundle,
    require_placement,
)
from server.engine.runners.onnx import OnnxRunner
from server.engine.runners.registry import open_runners
from server.operations.defaults import DEFAULT_MODEL
from server.operations.settings import Settings
from tests.server.engine.runners.device.conftest import Layouts

needs_no_gpu = pytest.mark.skipif(
    CUDA_PROVIDER in ort.get_available_providers(), reason="this ONNX Runtime supports CUDA"
)


def _recorded(path: Path) -> ort.InferenceSession:
    options = ort.SessionOptions()
    options.add_session_config_entry("session.record_ep_graph_assignment_info", "1")
    return ort.InferenceSession(path, options, providers=[CPU_PROVIDER])


@needs_no_gpu
def test_a_gpu_is_rejected_if_onnx_runtime_has_none() -> None:
    with pytest.raises(DeviceUnavailable, match=r"has no CUDAExecutionProvider.*\.\[gpu\].*--device cpu"):
        open_cuda()


@needs_no_gpu
def test_memory_of_a_gpu_is_rejected_if_onnx_runtime_was_built_without_cuda() -> None:
    with pytest.raises(CudaUnavailable, match="built without CUDA"):
        CudaMemory()


@needs_no_gpu
def test_the_server_does_not_start_on_another_device_than_requested() -> None:
    result = CliRunner().invoke(app, ["serve", "--device", "cuda", "--port", "0"])
    assert result.exit_code == 1
    [message] = [line for line in result.stderr.splitlines() if not line.startswith("{")]  # the others are the log
    assert message.startswith("kvasir: device is cuda, but ")


def test_a_bundle_made_for_cpus_is_rejected_with_the_command_for_another(layouts: Layouts) -> None:
    for bundle in (layouts.step, layouts.parts, load_bundle(DEFAULT_MODEL)):
        with pytest.raises(DeviceUnavailable, match=r"kvasir export --precision float16"):
            require_device_bundle(bundle)
    require_device_bundle(layouts.half)


def test_a_session_that_fell_back_is_rejected(layouts: Layouts) -> None:
    session = _recorded(layouts.half.file(names.DECODER_FILE))
    require_placement(session, CPU_PROVIDER, "decoder")
    with pytest.raises(
        DeviceUnavailable, match="decoder: CUDAExecutionProvider was requested, but ONNX Runtime fell back to CPU"
    ):
        require_placement(session, CUDA_PROVIDER, "decoder")


def test_nodes_on_another_provider_are_named(layouts: Layouts) -> None:
    class Halfway:
        """A session whose first provider is CUDA, with the node assignments of the CPU."""

        def __init__(self, session: ort.InferenceSession) -> None:
            self._session = session

        def get_providers(self) -> list[str]:
            return [CUDA_PROVIDER, CPU_PROVIDER]

        def get_provider_graph_assignment_info(self) -> object:
            return self._session.get_provider_graph_assignment_info()

    with pytest.raises(DeviceUnavailable, match="4 TopK on CPUExecutionProvider"):
        require_placement(Halfway(_recorded(layouts.half.file(names.DECODER_FILE))), CUDA_PROVIDER, "decoder")


def test_a_graph_that_cannot_be_loaded_is_named(layouts: Layouts, tmp_path: Path) -> None:
    shutil.copytree(layouts.half.path, tmp_path, dirs_exist_ok=True)
    (tmp_path / names.RANK_FILE).write_bytes(b"no graph")
    with pytest.raises(BundleError, match=names.RANK_FILE):
        DeviceSessions.open(dataclasses.replace(layouts.half, path=tmp_path), HostMemory())


def test_a_bundle_in_parts_needs_all_of_them(layouts: Layouts, tmp_path: Path) -> None:
    shutil.copytree(layouts.half.path, tmp_path, dirs_exist_ok=True)
    files = {name: record for name, record in layouts.half.config.files.items() if name != names.MOVE_FILE}
    save_manifest(tmp_path, layouts.half.config.model_copy(update={"files": files}))
    with pytest.raises(BundleError, match=r"move\.onnx: not listed"):
        load_bundle(tmp_path)


def test_each_layout_has_its_runner(layouts: Layouts) -> None:
    for bundle, kind in ((layouts.step, OnnxRunner), (layouts.half, DeviceRunner)):
        runners = open_runners(bundle, "cpu", replicas=2, threads=1, max_rows=8, max_encoder_tokens=64)
        assert [type(runner) for runner in runners] == [kind, kind]
        assert runners[0].cache is not runners[1].cache


def test_on_a_gpu_one_engine_is_the_default() -> None:
    assert Settings(device="cuda", threads=4).shares(1) == (1, 4)
    assert Settings(device="cuda", threads=4, replicas=2).shares(1) == (2, 2)
    assert Settings(threads=4).shares(1) == (4, 1)
