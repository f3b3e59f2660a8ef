"""ONNX functions of the domain `kvasir`, built node by node."""

from collections.abc import Iterable

from onnx import AttributeProto, FunctionProto, GraphProto, NodeProto, TensorProto, helper

DOMAIN = "kvasir"
VERSION = 1
MICROSOFT = "com.microsoft"
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
