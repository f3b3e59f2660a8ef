"""Sessions of a bundle of layout `parts` on a device, sizes of runs, and the runs captured as CUDA graphs."""

from collections import Counter
from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field
from itertools import count

import onnxruntime as ort

from bundle import tensors as names
from bundle.loading import Bundle, check_graph
from bundle.manifest import BundleError
from server.engine.runners.device.memory import CudaMemory, CudaUnavailable, DeviceMemory

NOT_CAPTURED = -1
"""The graph id with which ONNX Runtime runs without capturing."""


def bucket(number: int, largest: int) -> int:
    """Return the next power of two, or `largest`: few enough sizes for bindings and graphs of each."""
    assert 0 < number <= largest
    return min(1 << (number - 1).bit_length(), largest)


class Captures:
    """Ids of CUDA graphs for kinds of runs that are frequent enough.

    ONNX Runtime captures at the first run with an id, which it runs several times, and replays at all others. A
    captured run always uses the same addresses, so a kind contains everything that determines them.
    """

    def __init__(self, new_ids: Iterator[int] | None, after: int = 0, max_captures: int = 256) -> None:
        """Capture kinds after `after` runs, at most `max_captures`; each takes memory of the device.

        `new_ids` are those of the sessions, so no other user of the sessions has the same ids. Without them nothing is
        captured.
        """
        self._new_ids = new_ids
        self._after = after
        self._max_captures = max_captures
        self._runs: dict[Hashable, int] = {}
        self._ids: dict[Hashable, int] = {}

    def graph_id(self, kind: Hashable) -> int:
        """Return the id for the next run of this kind."""
        if self._new_ids is None:
            return NOT_CAPTURED
        graph = self._ids.get(kind)
        if graph is not None:
            return graph
        runs = self._runs[kind] = self._runs.get(kind, 0) + 1
        if runs <= self._after or len(self._ids) == self._max_captures:
            return NOT_CAPTURED
        self._ids[kind] = next(self._new_ids)
        return self._ids[kind]

    @property
    def num_captured(self) -> int:
        """Number of captured graphs."""
        return len(self._ids)


CUDA_PROVIDER = "CUDAExecutionProvider"
CPU_PROVIDER = "CPUExecutionProvider"
INSTALL = (
    "in a checkout, run pip install '.[gpu]', pip uninstall onnxruntime and pip install --force-reinstall --no-deps "
    "onnxruntime-gpu==1.31.1; or serve with --device cpu"
)

_RECORD_ASSIGNMENTS = "session.record_ep_graph_assignment_info"


class DeviceUnavailable(ValueError):
    """The requested model cannot run on the device. The message has the reason and the remedy."""


def open_cuda() -> CudaMemory:
    """Return the memory of the GPU. Raises `DeviceUnavailable` if ONNX Runtime or the machine has none."""
    if CUDA_PROVIDER not in ort.get_available_providers():
        available = ", ".join(ort.get_available_providers())
        raise DeviceUnavailable(
            f"device is cuda, but this ONNX Runtime has no {CUDA_PROVIDER}; available: {available}; {INSTALL}"
        )
    ort.preload_dlls()
    try:
        return CudaMemory()
    except CudaUnavailable as error:
        raise DeviceUnavailable(f"device is cuda, but {error}; without a GPU, serve with --device cpu") from error


def require_device_bundle(bundle: Bundle) -> None:
    """Raise `DeviceUnavailable` if the graphs of a bundle were exported for CPUs."""
    config = bundle.config
    if config.layout != "parts" or config.precision != "float16":
        raise DeviceUnavailable(
            f"device is cuda, but {bundle.path} is a {config.precision} bundle for CPUs: "
            "export one for GPUs with kvasir export --precision float16"
        )


@dataclass(frozen=True, slots=True)
class DeviceSessions:
    """Sessions of the five graphs. Those of a step and of row moves run over memory bound once."""

    bundle: Bundle
    memory: DeviceMemory
    encoder: ort.InferenceSession
    decoder: ort.InferenceSession
    choose: ort.InferenceSession
    rank: ort.InferenceSession
    move: ort.InferenceSession
    # Ids of CUDA graphs. ONNX Runtime uses 0 for runs without an id.
    graph_ids: Iterator[int] = field(default_factory=lambda: count(1))

    @classmethod
    def open(cls, bundle: Bundle, memory: DeviceMemory, threads: int = 1, *, captures: bool = True) -> "DeviceSessions":
        """Load the graphs of a bundle; without `captures` there are no CUDA graphs.

        Raises `BundleError` if ONNX Runtime cannot load one, and `DeviceUnavailable` if any node would run elsewhere
        than on the device.
        """
        files = (names.ENCODER_FILE, names.DECODER_FILE, names.CHOOSE_FILE, names.RANK_FILE, names.MOVE_FILE)
        return cls(bundle, memory, *(_open_session(bundle, file, memory, threads, captures) for file in files))


def _open_session(
    bundle: Bundle, file: str, memory: DeviceMemory, threads: int, captures: bool
) -> ort.InferenceSession:
    path = bundle.file(file)
    options = ort.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = 3
    options.add_session_config_entry(_RECORD_ASSIGNMENTS, "1")
    on_gpu = memory.queue is not None
    try:
        session = ort.InferenceSession(
            path,
            options,
            providers=[_provider(memory, captures)],
            # Slow on the CPU and fast on a GPU; see server/engine/runners/onnx.py.
            disabled_optimizers=None if on_gpu else ["SkipLayerNormFusion"],
        )
    except Exception as error:  # ONNX Runtime raises a dozen unrelated classes here
        if on_gpu and "graph capture" in str(error):
            raise DeviceUnavailable(
                f"{path} cannot be captured as a CUDA graph, because of nodes on the CPU or copies to it: {error}"
            ) from error
        raise BundleError(f"{path}: ONNX Runtime cannot load this graph: {error}") from error
    check_graph(bundle, file, session.get_modelmeta().custom_metadata_map)
    require_placement(session, CUDA_PROVIDER if on_gpu else CPU_PROVIDER, str(path))
    return session


def _provider(memory: DeviceMemory, captures: bool) -> str | tuple[str, dict[str, str]]:
    if memory.queue is None:
        return CPU_PROVIDER
    return CUDA_PROVIDER, {
        "device_id": "0",
        "user_compute_stream": str(memory.queue),
        # With this option ONNX Runtime rejects graphs with branches or copies between host and device.
        "enable_cuda_graph": "1" if captures else "0",
        "arena_extend_strategy": "kSameAsRequested",
        "use_tf32": "0",
    }


def require_placement(session: ort.InferenceSession, provider: str, name: str) -> None:
    """Raise `DeviceUnavailable` unless this provider runs every node; the session must record assignments."""
    if (first := session.get_providers()[0]) != provider:
        raise DeviceUnavailable(f"{name}: {provider} was requested, but ONNX Runtime fell back to {first}; {INSTALL}")
    elsewhere: Counter[str] = Counter()
    for subgraph in session.get_provider_graph_assignment_info():
        if subgraph.ep_name != provider:
            elsewhere.update(f"{node.op_type} on {subgraph.ep_name}" for node in subgraph.get_nodes())
    if elsewhere:
        counts = ", ".join(f"{count} {node}" for node, count in sorted(elsewhere.items()))
        raise DeviceUnavailable(f"{name}: some nodes would not run on {provider}: {counts}; export the model again")


def run_options(graph: int = NOT_CAPTURED) -> ort.RunOptions:
    """Return options of a run that returns before it has finished, captured or replayed as this CUDA graph."""
    options = ort.RunOptions()
    options.add_run_config_entry("gpu_graph_id", str(graph))
    options.add_run_config_entry("disable_synchronize_execution_providers", "1")
    return options
