"""Random models of common sizes that never end a sentence, as bundles of layout `parts`.

Speed depends on sizes, not on weights. Creating them needs only PyTorch and onnx.
"""

from dataclasses import dataclass
from pathlib import Path

import onnx
import torch

from bundle import tensors as names
from bundle.loading import Bundle, record_file, save_manifest
from bundle.manifest import MANIFEST_FILE, BundleConfig, Provenance, SpecialTokens
from bundle.tensors import Precision
from export.graphs.layers import describe_shapes
from export.graphs.parts_layout import export_parts
from model.config import TransformerConfig
from model.transformer import Transformer


@dataclass(frozen=True, slots=True)
class Size:
    """Sizes of a model; encoder and decoder have the same number of layers."""

    vocab_size: int
    d_model: int
    num_heads: int
    feed_forward_width: int
    num_layers: int
    max_tokens: int = 512


SIZES = {
    "tiny": Size(vocab_size=307, d_model=32, num_heads=4, feed_forward_width=64, num_layers=2, max_tokens=64),
    "opus": Size(vocab_size=58_101, d_model=512, num_heads=8, feed_forward_width=2048, num_layers=6),
    "nllb": Size(vocab_size=256_206, d_model=1024, num_heads=16, feed_forward_width=4096, num_layers=12),
}


def make_bundle(size: Size, folder: Path, precision: Precision) -> Bundle:
    """Return a bundle without a tokenizer, for an engine but not for a server."""
    end, pad = 0, size.vocab_size - 1
    config = TransformerConfig(
        vocab_size=size.vocab_size,
        pad_token_id=pad,
        eos_token_id=1,  # the bundle declares another end token, which is never generated
        decoder_start_token_id=pad,
        d_model=size.d_model,
        num_heads=size.num_heads,
        feed_forward_width=size.feed_forward_width,
        num_encoder_layers=size.num_layers,
        num_decoder_layers=size.num_layers,
        activation="relu",
        max_source_tokens=size.max_tokens,
        max_target_tokens=size.max_tokens,
        suppressed_token_ids=(end, pad),
    )
    torch.manual_seed(1)
    transformer = Transformer(config).eval()
    folder.mkdir(parents=True)
    export_parts(transformer, folder, torch.float16 if precision == "float16" else torch.float32)
    num_layers = config.num_decoder_layers
    return save_manifest(
        folder,
        BundleConfig(
            name=folder.name,
            source_languages=("en",),
            target_languages=("de",),
            precision=precision,
            layout="parts",
            shapes=describe_shapes(config),
            attention_scale=config.scale_of_attention(config.decoder_shape),
            special_tokens=SpecialTokens(
                end_of_sequence=end, padding=pad, decoder_start=pad, unknown=1, suppressed=(end, pad)
            ),
            encoder_inputs=(names.SOURCE_TOKENS, names.SOURCE_LENGTHS, names.SOURCE_WIDTH),
            encoder_outputs=(names.CROSS_KEYS_VALUES,),
            decoder_inputs=names.decoder_input_names(num_layers, "parts"),
            decoder_outputs=names.decoder_output_names(num_layers, "parts", has_suppressed=True),
            provenance=Provenance(
                source="random weights",
                family="random",
                weights_sha256="",
                num_parameters=sum(parameter.numel() for parameter in transformer.parameters()),
                exporter="benchmarks.gpu",
            ),
            files={path.name: record_file(path) for path in sorted(folder.iterdir())},
        ),
    )


def open_bundle(folder: Path) -> Bundle:
    """Return a bundle created by `make_bundle`."""
    return Bundle(folder, BundleConfig.model_validate_json((folder / MANIFEST_FILE).read_text("utf-8")))


def weight_bytes(bundle: Bundle) -> int:
    """Return the bytes of weights that every decoder step reads: all except the embeddings."""
    model = onnx.load(bundle.file(names.DECODER_FILE))
    # The output projection is read as a whole, and also looked up for candidates.
    read = {name for node in model.graph.node for name in (node.input[1:] if node.op_type == "Gather" else node.input)}
    return sum(onnx.numpy_helper.to_array(tensor).nbytes for tensor in model.graph.initializer if tensor.name in read)


def cache_bytes(bundle: Bundle, target_tokens: float, source_tokens: int) -> float:
    """Return the bytes of keys and values that a step reads for each row."""
    shapes = bundle.config.shapes
    width = shapes.num_heads * shapes.head_dim * names.item_size(bundle.config.precision)
    return 2 * shapes.num_decoder_layers * width * (target_tokens + source_tokens)
