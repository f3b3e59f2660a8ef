"""Models and devices that are rejected at start, and the messages."""

import dataclasses
import shutil
from itertools import count
from pathlib import Path

import onnxruntime as ort
import pytest
from typer.testing import CliRunner

from bundle import tensors as names
from bundle.loading import load_bundle
from bundle.manifest import BundleError
from kvasir_commands import app
from server.engine.runners.device.memory import HostMemory
from server.engine.runners.device.runner import DeviceRunner
from server.engine.runners.device.sessions import (
    CPU_PROVIDER,
    CUDA_PROVIDER,
    NOT_CAPTURED,
    Captures,
    DeviceSessions,
    DeviceUnavailable,
    bucket,
    open_cuda,
    require_device_bundle,
    require_placement,
)
from server.engine.runners.onnx import OnnxRunner
from server.engine.runners.registry import open_runners
from server.operations.defaults import DEFAULT_MODEL
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


def test_a_graph_that_cannot_be_loaded_is_named(layouts: Layouts, tmp_path: Path) -> None:
    shutil.copytree(layouts.half.path, tmp_path, dirs_exist_ok=True)
    (tmp_path / names.RANK_FILE).write_bytes(b"no graph")
    with pytest.raises(BundleError, match=names.RANK_FILE):
        DeviceSessions.open(dataclasses.replace(layouts.half, path=tmp_path), HostMemory())


def test_each_layout_has_its_runner(layouts: Layouts) -> None:
    for bundle, kind in ((layouts.step, OnnxRunner), (layouts.half, DeviceRunner)):
        runners = open_runners(bundle, "cpu", replicas=2, threads=1, max_rows=8, max_encoder_tokens=64)
        assert [type(runner) for runner in runners] == [kind, kind]
        assert runners[0].cache is not runners[1].cache


@pytest.mark.parametrize(("rows", "expected"), [(1, 1), (2, 2), (3, 4), (64, 64), (65, 100), (100, 100)])
def test_the_rows_of_a_run_are_the_next_power_of_two_up_to_the_largest_number(rows: int, expected: int) -> None:
    assert bucket(rows, largest=100) == expected


def test_each_kind_of_run_has_a_graph_of_its_own() -> None:
    captures = Captures(count(1))
    ids = [captures.graph_id(kind) for kind in ((8, 0), (8, 1), (8, 0), (16, 0), (8, 1))]
    assert ids[0] == ids[2]
    assert ids[1] == ids[4]
    assert len(set(ids)) == captures.num_captured == 3


def test_two_runners_over_the_same_sessions_never_replay_graphs_of_each_other() -> None:
    ids = count(1)
    one, other = Captures(ids), Captures(ids)
    assert [one.graph_id("a"), other.graph_id("a"), one.graph_id("b"), other.graph_id("a")] == [1, 2, 3, 2]


def test_a_rare_kind_of_run_is_not_captured() -> None:
    captures = Captures(count(1), after=2)
    assert [captures.graph_id("often") for _ in range(4)] == [NOT_CAPTURED, NOT_CAPTURED, 1, 1]
    assert captures.graph_id("once") == NOT_CAPTURED


def test_the_number_of_captured_graphs_is_limited() -> None:
    captures = Captures(count(1), max_captures=2)
    assert [captures.graph_id(kind) for kind in "abca"] == [1, 2, NOT_CAPTURED, 1]
