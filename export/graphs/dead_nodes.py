"""Removal of unused nodes and constants."""

from onnx import ModelProto


def remove_unused(model: ModelProto) -> None:
    """Remove nodes and constants that no output depends on. For graphs without branches; changed in place."""
    graph = model.graph
    needed = {output.name for output in graph.output}
    kept = []
    for node in reversed(graph.node):
        if not needed.isdisjoint(node.output):
            kept.append(node)
            needed.update(node.input)
    constants = [tensor for tensor in graph.initializer if tensor.name in needed]
    del graph.node[:], graph.initializer[:]
    graph.node.extend(reversed(kept))
    graph.initializer.extend(constants)
