"""A checkpoint becomes a bundle: import, export, quantise, verify, and only then write."""

import copy
import logging
import shutil
import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import onnx
import torch
from torch import Tensor, nn
from torch.export import Dim

from export import bundle as names
from export.attention import padded_head_dim
from export.bundle import Bundle, Precision, Shapes
from export.description import ExportError, describe_bundle, describe_shapes, require_tokenizer
from export.graphs import DecoderStepGraph, EncoderGraph, LayerCaches
from export.int8_cache import store_caches_in_int8
from export.key_value_ranges import with_unit_keys_values
from export.operators import add_functions
from export.optional_output import make_optional
from export.quantize import quantize_per_row
from export.verify import verify_bundle
from model.checkpoints.marian import load_marian
from model.transformer import Transformer

# GroupQueryAttention wants nothing newer; LayerNormalization came with 17.
OPSET = 21
EXAMPLE_ROWS = 3
EXAMPLE_SOURCE_LEN = 7


def export_bundle(
    checkpoint: str | Path,
    folder: Path,
    precision: Precision = "float32",
    name: str | None = None,
    report: Callable[[str], None] = lambda _: None,
) -> Bundle:
    """Write a bundle of a Marian checkpoint, a local folder or a hub name, to `folder`, which must not hold one yet.

    `report` is told what is being done. Raises `ExportError`, or `CheckpointError` for a checkpoint that cannot be
    read; then nothing is written.
    """
    if folder.exists() and not folder.is_dir():
        raise ExportError(f"{folder} is a file; name another folder")
    if folder.exists() and any(folder.iterdir()):
        raise ExportError(f"{folder} is not empty; remove it or name another folder")
    report("reading the checkpoint")
    marian = load_marian(checkpoint)
    unknown_token_id = require_tokenizer(marian)
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=f".{folder.name}-") as temporary:
        draft = Path(temporary) / "bundle"
        draft.mkdir()
        report("exporting the encoder")
        export_encoder(marian.model, draft / names.ENCODER_FILE, precision)
        report("exporting the decoder step")
        export_decoder(marian.model, draft / names.DECODER_FILE, precision)
        for file, path in marian.tokenizer_files.items():
            shutil.copyfile(path, draft / file)
        report("comparing PyTorch with ONNX Runtime")
        config = describe_bundle(marian, draft, precision, name or folder.name, unknown_token_id)
        draft_bundle = names.save_manifest(draft, config)
        verify_bundle(draft_bundle, marian.model)
        if folder.exists():
            folder.rmdir()
        draft.rename(folder)
    return names.load_bundle(folder)


def export_encoder(transformer: Transformer, file: Path, precision: Precision) -> None:
    """Write the encoder graph."""
    graph = EncoderGraph(_cast(transformer, precision)).eval()
    rows, source_len = Dim("rows", min=1, max=2**16), Dim("source_len", min=1, max=transformer.config.max_source_tokens)
    tokens = torch.zeros(EXAMPLE_ROWS, EXAMPLE_SOURCE_LEN, dtype=torch.int32)
    lengths = torch.tensor([EXAMPLE_SOURCE_LEN, 3, 1], dtype=torch.int32)
    _export(
        graph,
        (tokens, lengths),
        ({0: rows, 1: source_len}, {0: rows}),
        [names.SOURCE_TOKENS, names.SOURCE_LENGTHS],
        [names.CROSS_KEYS_VALUES],
        file,
        precision,
        describe_shapes(transformer.config),
    )


def export_decoder(transformer: Transformer, file: Path, precision: Precision) -> None:
    """Write the decoder-step graph."""
    graph = DecoderStepGraph(_cast(transformer, precision)).eval()
    num_layers = transformer.config.num_decoder_layers
    # At run time every row has its buffer's full length; the graph itself does not fix it.
    caches = example_caches(transformer, EXAMPLE_ROWS, 9, 11, _dtype(precision))
    rows = Dim("rows", min=1, max=2**16)
    target_len, source_len = Dim("target_len", min=1, max=2**16), Dim("source_len", min=1, max=2**16)
    cache_dims = [
        (
            *[{0: rows, 2: target_len}] * 2,
            *[{0: rows, 2: source_len}] * 2,
            *[{0: rows}] * 2,
        )
        for _ in range(num_layers)
    ]
    inputs = (
        torch.zeros(EXAMPLE_ROWS, dtype=torch.int32),
        torch.zeros(EXAMPLE_ROWS, dtype=torch.int32),
        torch.ones(EXAMPLE_ROWS, dtype=torch.int32),
        torch.tensor([2]),
        torch.tensor([2, 0]),
        caches,
    )
    _export(
        graph,
        inputs,
        ({0: rows}, {0: rows}, {0: rows}, {}, {0: Dim("logit_rows", min=0, max=2**16)}, cache_dims),
        [name for name in names.decoder_input_names(num_layers) if name != names.WITH_SCORES],
        list(names.decoder_output_names(num_layers)),
        file,
        precision,
        describe_shapes(transformer.config),
    )


def example_caches(
    transformer: Transformer, rows: int, target_len: int, source_len: int, dtype: torch.dtype = torch.float32
) -> list[LayerCaches]:
    """Empty caches of these sizes, in the order the decoder graph takes them."""
    shape = transformer.config.decoder_shape
    head_dim = padded_head_dim(shape.head_dim)
    target = (rows, shape.num_heads, target_len, head_dim)
    source = (rows, shape.num_heads, source_len, head_dim)
    last = (rows, 1, shape.num_heads * head_dim)
    return [
        (
            torch.zeros(target, dtype=dtype),
            torch.zeros(target, dtype=dtype),
            torch.zeros(source, dtype=dtype),
            torch.zeros(source, dtype=dtype),
            torch.zeros(last, dtype=dtype),
            torch.zeros(last, dtype=dtype),
        )
        for _ in range(transformer.config.num_decoder_layers)
    ]


def _dtype(precision: Precision) -> torch.dtype:
    return torch.float16 if precision == "float16" else torch.float32


def _cast(transformer: Transformer, precision: Precision) -> Transformer:
    # A copy: the model itself stays the reference that the bundle is verified against.
    if precision == "int8":
        return with_unit_keys_values(transformer)
    return copy.deepcopy(transformer).to(_dtype(precision))


def _export(
    graph: nn.Module,
    inputs: tuple[Tensor | list[LayerCaches], ...],
    dynamic_shapes: tuple[object, ...],
    input_names: list[str],
    output_names: list[str],
    file: Path,
    precision: Precision,
    shapes: Shapes,
) -> None:
    with torch.no_grad(), _quiet_exporter():
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
    model = program.model_proto
    for output in model.graph.output:
        if output.name in (names.CANDIDATE_LOGITS, names.CANDIDATE_TOKENS):
            output.type.tensor_type.shape.dim[1].dim_param = names.NUM_CANDIDATES
    # Shapes the exporter worked out; those of the candidates are not what they will be.
    del model.graph.value_info[:]
    _remove_traces(model)
    if precision == "int8":
        ranking = graph.ranking if isinstance(graph, DecoderStepGraph) else None
        model = store_caches_in_int8(quantize_per_row(model, ranking))
        add_functions(model)
    elif names.LOG_NORMALIZER in output_names:
        model = make_optional(model, names.LOG_NORMALIZER, names.WITH_SCORES, names.PAST_LENGTHS)
    model.metadata_props.add(key=names.SHAPES_METADATA, value=shapes.model_dump_json())
    onnx.save(model, file)


@contextmanager
def _quiet_exporter() -> Iterator[None]:
    """Silence the exporter's own deprecations, and its remarks on libraries that are not installed."""
    log = logging.getLogger("torch.onnx")
    level = log.level
    log.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        log.setLevel(level)


def _remove_traces(model: onnx.ModelProto) -> None:
    """Drop what the exporter notes down of the Python behind each node: paths of this machine, and half the file."""
    graph = model.graph
    described = (model, graph, *graph.node, *graph.initializer, *graph.input, *graph.output, *graph.value_info)
    for part in described:
        del part.metadata_props[:]
        part.ClearField("doc_string")
