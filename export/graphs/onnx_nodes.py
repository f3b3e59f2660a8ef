"""ONNX graphs node by node: functions of the domain `kvasir`, optional outputs, removal of unused nodes."""

from collections.abc import Iterable

import numpy as np
from onnx import AttributeProto, FunctionProto, GraphProto, ModelProto, NodeProto, TensorProto, helper, numpy_helper

DOMAIN = "kvasir"
VERSION = 1
MICROSOFT = "com.microsoft"
# GroupQueryAttention supports no newer one; LayerNormalization requires 17.
OPSET = 21


class FunctionBody:
    """Builder of a function's nodes."""

    def __init__(self) -> None:
        self.nodes: list[NodeProto] = []

    def add(
        self,
        operator: str,
        inputs: Iterable[str],
        outputs: str | list[str],
        references: Iterable[tuple[str, AttributeProto.AttributeType]] = (),
        domain: str | None = None,
        **attributes: float | str | list[int] | TensorProto | GraphProto,
    ) -> None:
        """Add a node; `references` are attributes that take the value of the function's attribute of the same name."""
        names = [outputs] if isinstance(outputs, str) else outputs
        node = helper.make_node(operator, list(inputs), names, domain=domain)
        node.attribute.extend(helper.make_attribute(name, value) for name, value in attributes.items())
        for name, kind in references:
            node.attribute.append(_reference(name, name, kind))
        self.nodes.append(node)

    def constant(self, name: str, value: list[int]) -> None:
        """Add a constant vector of int64."""
        self.add("Constant", [], name, value=helper.make_tensor(name, TensorProto.INT64, [len(value)], value))

    def attribute(self, name: str, kind: AttributeProto.AttributeType, output: str) -> None:
        """Add the function's attribute of this name as a scalar."""
        field = "value_int" if kind == AttributeProto.INT else "value_float"
        node = helper.make_node("Constant", [], [output])
        node.attribute.append(_reference(field, name, kind))
        self.nodes.append(node)

    def function(self, name: str, inputs: list[str], outputs: list[str], attributes: list[str]) -> FunctionProto:
        """Return the function."""
        opsets = [helper.make_opsetid(*version) for version in (("", OPSET), (MICROSOFT, 1), (DOMAIN, VERSION))]
        return helper.make_function(DOMAIN, name, inputs, outputs, self.nodes, opsets, attributes)

    def branch(self, name: str, output: str) -> GraphProto:
        """Return the nodes as a branch with a float32 output [rows]."""
        value = helper.make_tensor_value_info(output, TensorProto.FLOAT, ["rows"])
        return helper.make_graph(self.nodes, name, [], [value])


def _reference(name: str, refers_to: str, kind: AttributeProto.AttributeType) -> AttributeProto:
    attribute = AttributeProto()
    attribute.name, attribute.ref_attr_name, attribute.type = name, refers_to, kind
    return attribute


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
