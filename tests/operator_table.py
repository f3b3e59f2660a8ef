"""Makes tests that export faster: PyTorch's table of ONNX operators, built in two seconds, serves all graphs."""

from functools import cache

from torch.onnx._internal.exporter._registration import ONNXRegistry


def build_the_table_once() -> None:
    """Keep the table for the rest of this process; PyTorch builds an equal one for each graph."""
    ONNXRegistry.from_torchlib = staticmethod(cache(ONNXRegistry.from_torchlib))  # type: ignore[method-assign]
