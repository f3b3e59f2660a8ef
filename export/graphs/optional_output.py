"""Optional outputs: nodes that serve only one output move into an `If`."""

import numpy as np
from onnx import GraphProto, ModelProto, NodeProto, TensorProto, helper, numpy_helper


def make_optional(model: ModelProto, output: str, condition: str, num_rows_of: str) -> ModelProto:
    """Compute `output` (float32 [rows]) only if the new input `condition` (bool [1]) is true; else it is NaN.

    `num_rows_of` is an input with the same number of rows. The model is changed in place.
    """
    graph = model.graph
    optional = _only_for(graph, output)
    kept = [node for node in graph.node if node not in optional]
    graph.input.append(helper.make_tensor_value_info(condition, TensorProto.BOOL, [1]))
    kept.append(
        helper.make_node(
            "If",
            [condition],
            [output],
            then_branch=_branch(f"{output}_computed", optional, _rename(optional, output)),
            else_branch=_branch(f"{output}_left_out", *_nan(output, num_rows_of)),
        )
    )
    del graph.node[:]
    graph.node.extend(kept)
    return model


def _only_for(graph: GraphProto, output: str) -> list[NodeProto]:
    """Return the nodes that only `output` depends on, in order."""
    needed = {value.name for value in graph.output} - {output}
    optional = []
    for node in reversed(graph.node):
        if needed.isdisjoint(node.output):
            optional.append(node)
        else:
            needed.update(node.input)
    return optional[::-1]


def _rename(nodes: list[NodeProto], output: str) -> str:
    """Rename the output: names in a branch must differ from names of the enclosing graph."""
    branch_output = f"{output}/value"
    (producer,) = (node for node in nodes if output in node.output)
    producer.output[list(producer.output).index(output)] = branch_output
    return branch_output


def _nan(output: str, num_rows_of: str) -> tuple[list[NodeProto], str]:
    value = numpy_helper.from_array(np.array([np.nan], np.float32))
    nodes = [
        helper.make_node("Shape", [num_rows_of], [f"{output}/num_rows"], start=0, end=1),
        helper.make_node("ConstantOfShape", [f"{output}/num_rows"], [f"{output}/none"], value=value),
    ]
    return nodes, f"{output}/none"


def _branch(name: str, nodes: list[NodeProto], output: str) -> GraphProto:
    return helper.make_graph(nodes, name, [], [helper.make_tensor_value_info(output, TensorProto.FLOAT, ["rows"])])
