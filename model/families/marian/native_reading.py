"""Models in Marian's own format, `.npz` or `.bin`: those of its trainer, of Firefox and of translateLocally."""

from collections.abc import Iterable
from typing import Final

import numpy as np
import torch
from torch import Tensor

from model.checkpoints.checkpoint import Checkpoint, Provenance
from model.checkpoints.errors import CheckpointError
from model.checkpoints.hugging_face_files import CheckpointFolder
from model.checkpoints.weights import parameter_shapes, select_weights
from model.config import TransformerConfig
from model.families.marian.description import LAYER_NORM_EPSILON, Description
from model.families.marian.native_files import find_files, find_languages, model_files
from model.families.marian.native_vocabulary import END, UNKNOWN, read_vocabularies, tokenizer_files
from model.families.marian.tensor_files import StoredTensors, read_tensors
from model.families.position_tables import usable_length

# Output bias of tokens that Marian does not have: their probability is exactly 0, also in float16.
_IMPOSSIBLE: Final = -1e4
_OUTPUT_WEIGHT, _OUTPUT_BIAS = "decoder_ff_logit_out_W", "decoder_ff_logit_out_b"
# Multipliers of activations, which an int8 bundle computes for each row.
_ACTIVATION_MULTIPLIER: Final = "_QuantMultA"
_PROJECTIONS: Final = {"query_proj": "q", "key_proj": "k", "value_proj": "v", "out_proj": "o"}


class MarianNative:
    """Reader of Marian's own format: a `FolderFormat`."""

    name = "marian-nmt"

    def matches(self, folder: CheckpointFolder) -> bool:
        """Return whether a folder contains weights in this format."""
        return bool(model_files(folder.path))

    def read(self, folder: CheckpointFolder) -> Checkpoint:
        """Read the model in a folder. Raises `CheckpointError` that names the file, field or weights."""
        files = find_files(folder.path)
        stored = read_tensors(files.model)
        description = Description(stored.description, files.model.name)
        vocabularies = read_vocabularies(files.vocabularies)
        tables = _Tables(description, stored, files.model.name)
        ids = vocabularies.target
        unknown = () if files.allows_unknown else (ids[UNKNOWN],)
        try:
            config = _config(description, tables, ids[END], unknown)
        except ValueError as error:
            raise CheckpointError(f"{files.model.name}: {error}") from error
        shapes = parameter_shapes(config)
        names = {name: [stored] for name, stored in stored_names(shapes, description).items()}
        return Checkpoint(
            config=config,
            weights=select_weights(shapes, tables.tensors, names, (), files.model.name),
            tokenizer=tokenizer_files(folder.path, files.vocabularies, vocabularies),
            languages=find_languages(folder.path, files),
            provenance=Provenance(folder.name, self.name, stored.sha256),
            is_quantized=stored.is_quantized,
            shortlist=files.shortlist,
            unread_shortlists=files.unread_shortlists,
        )


class _Tables:
    """Tensors by Marian's names in our shapes. Embeddings and outputs have tokens more than Marian's.

    Its decoder begins with zeros, which are the embedding of the last token here, the padding.
    """

    def __init__(self, description: Description, stored: StoredTensors, file_name: str) -> None:
        found = {
            name: torch.from_numpy(tensor if tensor.ndim != 2 or "Wemb" in name else np.ascontiguousarray(tensor.T))
            for name, tensor in stored.tensors.items()
            if not name.endswith(_ACTIVATION_MULTIPLIER)
        }
        source, target = _table_name("encoder", description), _table_name("decoder", description)
        for name in (source, target):
            if name not in found or found[name].dim() != 2:
                raise CheckpointError(f"{file_name} has no table {name}, which its description needs")
        self.num_targets = len(found[target])
        self.num_tokens = max(len(found[source]), self.num_targets) + 1
        for name in {source, target, *([] if description.ties_output else [_OUTPUT_WEIGHT])} & found.keys():
            found[name] = _with_rows(found[name], self.num_tokens, 0.0)
        bias = found[_OUTPUT_BIAS].reshape(-1) if description.has_output_bias and _OUTPUT_BIAS in found else None
        if bias is None and not description.has_output_bias:
            bias = torch.zeros(self.num_targets)
        if bias is not None:
            found[_OUTPUT_BIAS] = _with_rows(bias[:, None], self.num_tokens, _IMPOSSIBLE)[:, 0]
        # Vectors are matrices of one row in Marian, and were transposed above.
        self.tensors = {
            name: tensor.reshape(-1) if tensor.dim() == 2 and tensor.shape[1] == 1 else tensor
            for name, tensor in found.items()
        }


def _with_rows(table: Tensor, num_rows: int, value: float) -> Tensor:
    return torch.nn.functional.pad(table, (0, 0, 0, num_rows - len(table)), value=value)


def _table_name(stack: str, description: Description) -> str:
    return "Wemb" if description.ties_source else f"{stack}_Wemb"


def _config(description: Description, tables: _Tables, end: int, unknown: tuple[int, ...]) -> TransformerConfig:
    padding = tables.num_tokens - 1
    max_tokens = usable_length(None)
    return TransformerConfig(
        vocab_size=tables.num_tokens,
        pad_token_id=padding,
        eos_token_id=end,
        decoder_start_token_id=padding,
        target_vocab_size=tables.num_tokens,
        d_model=description.d_model,
        num_heads=description.num_heads,
        feed_forward_width=description.feed_forward_width,
        decoder_feed_forward_width=description.decoder_feed_forward_width,
        num_encoder_layers=description.num_encoder_layers,
        num_decoder_layers=description.num_decoder_layers,
        decoder="ssru" if description.has_recurrent_decoder else "self_attention",
        dropout=0.0,
        activation=description.activation,
        norm_placement=description.norm_placement,
        final_norm=description.has_final_norm,
        embedding_norm=description.has_embedding_norm,
        layer_norm_epsilon=LAYER_NORM_EPSILON,
        sinusoid_layout="halves_inclusive",
        tie_embeddings=description.ties_source,
        tie_output=description.ties_output,
        output_bias=True,
        max_source_tokens=max_tokens,
        max_target_tokens=max_tokens,
        suppressed_token_ids=(*unknown, *range(tables.num_targets, tables.num_tokens)),
    )


def stored_names(parameters: Iterable[str], description: Description) -> dict[str, str]:
    """Return Marian's name of each parameter."""
    return {parameter: _stored_name(parameter, description) for parameter in parameters}


def _stored_name(parameter: str, description: Description) -> str:
    """Return Marian's name of a parameter."""
    stack, _, rest = parameter.partition(".")
    is_pre = description.norm_placement == "pre"
    if rest == "embedding.weight":
        return _table_name(stack, description)
    if parameter == "output_projection.weight":
        return _OUTPUT_WEIGHT
    if parameter == "output_bias":
        return _OUTPUT_BIAS
    kind = {"weight": "scale", "bias": "bias"}[rest.rpartition(".")[2]]
    if rest.startswith("embedding_norm."):
        return f"{stack}_emb_ln_{kind}_pre"
    if rest.startswith("final_norm."):
        return f"{stack}_top_ln_{kind}"
    _, index, part, *inner, _ = rest.split(".")
    layer = f"{stack}_l{int(index) + 1}"
    if part.endswith("_norm"):
        return f"{layer}_{_norm_prefix(part, is_pre=is_pre)}_ln_{kind}{'_pre' if is_pre else ''}"
    letter = "W" if kind == "scale" else "b"
    if part == "feed_forward":
        return f"{layer}_ffn_{letter}{1 if inner[0] == 'inner_proj' else 2}"
    if part == "recurrence":
        return f"{layer}_rnn_{letter}{'f' if inner[0] == 'forget_proj' else ''}"
    return f"{layer}_{'self' if part == 'self_attention' else 'context'}_{letter}{_PROJECTIONS[inner[0]]}"


def _norm_prefix(part: str, *, is_pre: bool) -> str:
    return {
        "self_attention_norm": "self_Wo",
        "cross_attention_norm": "context_Wo",
        "feed_forward_norm": "ffn_ffn",
        # The recurrent unit has one name before it and another one after it.
        "recurrence_norm": "rnn" if is_pre else "rnn_ffn",
    }[part]
