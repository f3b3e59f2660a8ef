"""Runners by device and bundle layout."""

from bundle.loading import Bundle
from server.engine.model_runner import ModelRunner


def open_runners(
    bundle: Bundle, device: str, *, replicas: int, threads: int, max_rows: int, max_encoder_tokens: int
) -> list[ModelRunner]:
    """Return one runner of a bundle for each engine.

    On the CPU they share the weights. On a GPU each has its own stream, captured graphs and therefore sessions.
    Raises `BundleError` if a graph cannot be loaded, and `DeviceUnavailable` if the device or a bundle for it is
    missing.
    """
    # Imported where they are needed: a server whose engines are processes has no ONNX Runtime of its own.
    if device == "cpu" and bundle.config.layout == "step":
        from server.engine.runners.onnx import OnnxRunner, OnnxSessions

        sessions = OnnxSessions.open(bundle, threads)
        return [OnnxRunner(sessions, max_rows, max_encoder_tokens) for _ in range(replicas)]
    from server.engine.runners.device.memory import HostMemory
    from server.engine.runners.device.runner import DeviceRunner
    from server.engine.runners.device.sessions import (
        DeviceSessions,
        DeviceUnavailable,
        open_cuda,
        require_device_bundle,
    )

    if device == "cuda":
        memories = [open_cuda() for _ in range(replicas)]
        require_device_bundle(bundle)
        return [
            DeviceRunner(DeviceSessions.open(bundle, memory, threads), max_rows, max_encoder_tokens)
            for memory in memories
        ]
    if device != "cpu":
        raise DeviceUnavailable(f"`device` must be cpu or cuda. Given: {device}")
    on_host = DeviceSessions.open(bundle, HostMemory(), threads)
    return [DeviceRunner(on_host, max_rows, max_encoder_tokens) for _ in range(replicas)]
