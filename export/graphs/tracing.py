"""Tracing of PyTorch modules to ONNX graphs."""

import gc
import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import onnx
import onnx_ir
import torch
from torch import Tensor, nn

from bundle import tensors as names
from bundle.manifest import Shapes
from export.graphs.external_weights import MIN_DEFERRED_BYTES, Weights, write_graph
from export.graphs.layers import padded_head_dim, state_width
from export.graphs.onnx_nodes import OPSET
from export.graphs.step_layout import LayerCaches
from model.transformer import Transformer

EXAMPLE_ROWS = 3
EXAMPLE_SOURCE_LEN = 7


def example_caches(
    transformer: Transformer, rows: int, target_len: int, source_len: int, dtype: torch.dtype = torch.float32
) -> list[LayerCaches]:
    """Return empty caches of these sizes, in the order of the decoder graph's inputs."""
    shape = transformer.config.decoder_shape
    head_dim = padded_head_dim(shape.head_dim)
    target = (rows, shape.num_heads, target_len, head_dim)
    source = (rows, shape.num_heads, source_len, head_dim)
    last = (rows, 1, shape.num_heads * head_dim)
    state = (rows, 1, state_width(transformer.config))
    return [
        (
            *(
                [torch.zeros(state)]
                if transformer.config.has_recurrent_decoder
                else [torch.zeros(target, dtype=dtype), torch.zeros(target, dtype=dtype)]
            ),
            torch.zeros(source, dtype=dtype),
            torch.zeros(source, dtype=dtype),
            torch.zeros(last, dtype=dtype),
            torch.zeros(last, dtype=dtype),
        )
        for _ in range(transformer.config.num_decoder_layers)
    ]


def traced(
    graph: nn.Module,
    inputs: tuple[Tensor | list[LayerCaches], ...],
    dynamic_shapes: tuple[object, ...],
    input_names: list[str],
    output_names: list[str],
) -> tuple[onnx.ModelProto, Weights]:
    """Return the graph of a module, traced with `inputs`, and its large weights, which the graph only names.

    These have the memory of the module.
    """
    with torch.no_grad(), _quiet_exporter(), _without_collections():
        program = torch.onnx.export(
            graph,
            inputs,
            dynamo=True,
            opset_version=OPSET,
            input_names=input_names,
            output_names=output_names,
            dynamic_shapes=dynamic_shapes,
            verbose=False,
        )
    assert program is not None
    weights: Weights = {}
    for name, value in program.model.graph.initializers.items():
        if (tensor := value.const_value) is not None and tensor.nbytes >= MIN_DEFERRED_BYTES:
            weights[name] = tensor.numpy()
            shape = onnx_ir.Shape(tensor.numpy().shape)
            value.const_value = onnx_ir.ExternalTensor("", 0, tensor.nbytes, tensor.dtype, shape=shape, name=name)
    model = program.model_proto
    # Shapes inferred by the exporter; those of the candidates are wrong.
    del model.graph.value_info[:]
    _remove_traces(model)
    del program
    gc.collect()  # the program is a cycle, with all weights
    return model, weights


def save(model: onnx.ModelProto, file: Path, shapes: Shapes, weights: Weights | None = None) -> None:
    """Write a graph with its sizes as metadata. The model loses weights that are written to a file of their own."""
    model.metadata_props.add(key=names.SHAPES_METADATA, value=shapes.model_dump_json())
    write_graph(model, file, weights)


@contextmanager
def _quiet_exporter() -> Iterator[None]:
    """Silence the exporter's deprecation warnings, and its hints about libraries that are not installed."""
    log = logging.getLogger("torch.onnx")
    level = log.level
    log.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        log.setLevel(level)


@contextmanager
def _without_collections() -> Iterator[None]:
    """Disable the garbage collector: what the exporter allocates stays until its end, and a sixth of the time is spent
    looking for garbage.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _remove_traces(model: onnx.ModelProto) -> None:
    """Remove the exporter's notes about the Python code of each node: local paths, and half of the file."""
    graph = model.graph
    described = (model, graph, *graph.node, *graph.initializer, *graph.input, *graph.output, *graph.value_info)
    for part in described:
        del part.metadata_props[:]
        part.ClearField("doc_string")
