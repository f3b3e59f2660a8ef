"""A lexical shortlist as a part of a bundle: its file, and the inputs of the decoder graph for lists of tokens."""

from collections.abc import Mapping
from pathlib import Path

import onnx
from onnx import ModelProto, NodeProto, TensorProto, helper

from bundle import tensors as names
from bundle.loading import Bundle, record_file, save_manifest
from bundle.manifest import BundleConfig, BundleError
from bundle.shortlist import read_shortlist
from export.graphs.onnx_nodes import DOMAIN
from export.int8.operators import BEST_LISTED_TOKENS, BEST_TOKENS, LISTED_LOGITS, add_functions
from model.temporary_folders import temporary_folder

_OUTPUT_WEIGHT = "output_weight"


def add_shortlist(bundle: Bundle, shortlist: Path) -> Bundle:
    """Write a shortlist into a bundle on disk, replacing one that it has, and return the new bundle.

    Raises `BundleError` if the file does not fit the model, or the bundle cannot have a shortlist; then the bundle is
    as it was.
    """
    require_shortlist_support(bundle.config)
    read_shortlist(shortlist, bundle.config.shapes)
    with temporary_folder(bundle.path, ".shortlist-") as temporary:
        changed = {names.SHORTLIST_FILE: temporary / names.SHORTLIST_FILE}
        changed[names.SHORTLIST_FILE].write_bytes(shortlist.read_bytes())
        inputs = bundle.config.decoder_inputs
        if not bundle.config.has_shortlist:
            # Weights in a file of their own stay there.
            graph = onnx.load(bundle.file(names.DECODER_FILE), load_external_data=False)
            changed[names.DECODER_FILE] = temporary / names.DECODER_FILE
            onnx.save(_with_lists(graph), changed[names.DECODER_FILE])
            inputs = (*inputs, *names.LIST_INPUTS)
        records = {name: record_file(path) for name, path in changed.items()}
        config = bundle.config.model_copy(
            update={
                "has_shortlist": True,
                "decoder_inputs": inputs,
                "files": dict(sorted((bundle.config.files | records).items())),
            }
        )
        for name, path in changed.items():
            path.replace(bundle.file(name))
    return save_manifest(bundle.path, config)


def require_shortlist_support(config: BundleConfig) -> None:
    """Raise `BundleError` for a model without a decoder, and for layout `parts`: a GPU computes all tokens at once."""
    if not config.has_decoder or config.layout != "step":
        kind = f"layout {config.layout}" if config.has_decoder else "an encoder"
        raise BundleError(f"{config.name}: a shortlist needs a decoder of layout step. Given: {kind}")


def _with_lists(model: ModelProto) -> ModelProto:
    """Add the inputs for lists to a decoder graph, which is changed in place.

    In int8 the operator that ranks tokens reads them; in float32 a function restricts the logits before the ranking.
    """
    graph, nodes = model.graph, []
    producers = {output: node for node in graph.node for output in node.output}
    for node in graph.node:
        nodes.append(node)
        if node.op_type == BEST_TOKENS:
            node.op_type = BEST_LISTED_TOKENS
            node.input.extend(names.LIST_INPUTS)
        elif _is_logits(node, producers):
            restricted = node.output[0]
            node.output[0] = f"{restricted}/all"
            inputs = [node.output[0], *names.LIST_INPUTS]
            nodes.append(helper.make_node(LISTED_LOGITS, inputs, [restricted], domain=DOMAIN))
    del graph.node[:]
    graph.node.extend(nodes)
    shapes = (["lists", "capacity"], ["lists"], ["rows"])
    for name, shape in zip(names.LIST_INPUTS, shapes, strict=True):
        graph.input.append(helper.make_tensor_value_info(name, TensorProto.INT32, shape))
    kept = [function for function in model.functions if function.name != BEST_TOKENS]
    del model.functions[:]
    model.functions.extend(kept)
    add_functions(model)
    if sum(node.op_type in (BEST_LISTED_TOKENS, LISTED_LOGITS) for node in graph.node) != 1:
        raise BundleError(f"{names.DECODER_FILE} has no end that a shortlist fits; export the bundle again")
    return model


def _is_logits(node: NodeProto, producers: Mapping[str, NodeProto]) -> bool:
    """Return whether a node of a float32 graph adds the output bias to the products of all rows."""
    if node.op_type != "Add":
        return False
    product = producers.get(node.input[0])
    if product is None or product.op_type != "MatMul" or product.input[1] != _OUTPUT_WEIGHT:
        return False
    hidden = producers.get(product.input[0])
    return hidden is None or hidden.op_type != "Gather"
