"""Transformer checkpoints of OpenNMT-py 3: options, vocabularies and weights in one file (onmt/models there)."""

import re

import torch
from torch import Tensor

from model.checkpoints.archives import sha256_of
from model.checkpoints.checkpoint import Checkpoint, CheckpointError, Languages, Provenance
from model.checkpoints.hugging_face_files import CheckpointFolder, Settings, errors_of
from model.checkpoints.weights import parameter_shapes, select_weights
from model.config import Activation, TransformerConfig
from model.families.listed_vocabulary import SpecialNames, Vocabularies, read_tokenizer
from model.families.pickled_checkpoint import (
    checkpoint_file,
    load_pickled,
    options_of,
    tensors_of,
    without_equal_tables,
)
from model.positions import sinusoid_of, usable_length

_ACTIVATIONS: dict[str, Activation] = {"relu": "relu", "gelu": "gelu", "fast_gelu": "gelu_tanh", "silu": "silu"}
_PADDING, _BEGINNING, _END, _UNKNOWN = "<blank>", "<s>", "</s>", "<unk>"
# (OpenNMT-py's name, ours) of parts of a name, in this order.
_PARTS = (
    ("encoder.transformer.", "encoder.layers."),
    ("decoder.transformer_layers.", "decoder.layers."),
    (".embeddings.make_embedding.emb_luts.0.", ".embedding."),
    (".feed_forward.layer_norm.", ".feed_forward_norm."),
    (".feed_forward.w_1.", ".feed_forward.inner_proj."),
    (".feed_forward.w_2.", ".feed_forward.outer_proj."),
    (".feed_forward.w_3.", ".feed_forward.gate_proj."),
    (".self_attn.", ".self_attention."),
    (".context_attn.", ".cross_attention."),
    (".linear_query.", ".query_proj."),
    (".linear_keys.", ".key_proj."),
    (".linear_values.", ".value_proj."),
    (".final_linear.", ".out_proj."),
    (".layer_norm_1.", ".self_attention_norm."),
    (".layer_norm_2.", ".cross_attention_norm."),
    (".a_2", ".weight"),
    (".b_2", ".bias"),
)
_LAYER_NORM = re.compile(r"(encoder\.layers\.\d+)\.layer_norm\.")
_POSITIONS = ("encoder.embeddings.make_embedding.pe.pe", "decoder.embeddings.make_embedding.pe.pe")


class OpenNMTPy:
    """Reader of OpenNMT-py checkpoints: a `FolderFormat`."""

    name = "opennmt-py"

    def matches(self, folder: CheckpointFolder) -> bool:
        """Return whether there is one `.pt` file."""
        return checkpoint_file(folder) is not None

    def read(self, folder: CheckpointFolder) -> Checkpoint:
        """Read a checkpoint. Raises `CheckpointError` that names the file, option or weights."""
        path = checkpoint_file(folder)
        assert path is not None
        content = load_pickled(path)
        if missing := [part for part in ("model", "generator", "opt", "vocab") if part not in content]:
            raise CheckpointError(f"{path.name} is not an OpenNMT-py checkpoint: it lacks {', '.join(missing)}")
        options = options_of(path, content["opt"])
        stored = tensors_of(path, content["model"], "model")
        generator = tensors_of(path, content["generator"], "generator")
        vocabularies = _vocabularies(path.name, content["vocab"])
        tables = [stored.pop(name, None) for name in _POSITIONS]
        tensors = {_our_name(name): tensor for name, tensor in stored.items()}
        for name, tensor in generator.items():
            ours = "output_bias" if name.endswith("bias") else "output_projection.weight"
            tensors[ours] = tensor
        tensors = without_equal_tables(tensors)
        config = _config(options, tensors, tables, vocabularies)
        shapes = parameter_shapes(config)
        if config.biases:
            for name in shapes:
                if name.endswith("_proj.bias"):  # an option leaves out those of queries, keys and values
                    tensors.setdefault(name, torch.zeros(shapes[name]))
        special = SpecialNames(_UNKNOWN, _BEGINNING, _END, _BEGINNING, adds_beginning=False, adds_end=False)
        return Checkpoint(
            config=config,
            weights=select_weights(shapes, tensors, path.name),
            tokenizer=read_tokenizer(folder.path, vocabularies, special, begins_source=False),
            languages=Languages((), ()),
            provenance=Provenance(folder.name, self.name, sha256_of(path)),
        )


def _our_name(name: str) -> str:
    for theirs, ours in _PARTS:
        name = name.replace(theirs, ours)
    name = _LAYER_NORM.sub(r"\1.self_attention_norm.", name)
    return re.sub(r"^(encoder|decoder)\.layer_norm\.", r"\1.final_norm.", name)


def _vocabularies(file: str, stored: object) -> Vocabularies:
    sides = [stored.get(side) for side in ("src", "tgt")] if isinstance(stored, dict) else []
    if not sides or not all(isinstance(side, list) and all(isinstance(t, str) for t in side) for side in sides):
        raise CheckpointError(f"{file}: `vocab` must have the tokens of `src` and `tgt`; checkpoints of version 3 do")
    if any(key.startswith("src_feats") and value for key, value in stored.items()):  # type: ignore[attr-defined]
        raise CheckpointError(f"{file}: features of source tokens are not supported")
    return Vocabularies(*sides)  # type: ignore[arg-type]  # lists of strings


def _config(
    options: Settings, tensors: dict[str, Tensor], tables: list[Tensor | None], vocabularies: Vocabularies
) -> TransformerConfig:
    for name, allowed in (
        ("encoder_type", ("transformer",)),
        ("decoder_type", ("transformer",)),
        ("self_attn_type", ("scaled-dot", "scaled-dot-flash")),
        ("layer_norm", ("standard",)),
    ):
        if options.text(name, allowed[0]) not in allowed:
            options.reject(name, f"must be {allowed[0]}")
    for name in ("max_relative_positions", "num_kv", "num_experts"):
        if options.integer(name, 0):
            options.reject(name, "must be 0")
    for name in ("multiquery", "parallel_residual", "aan_useffn"):
        if options.boolean(name, False):
            options.reject(name, "must be false")
    activation = options.text("pos_ffn_activation_fn", "relu")
    if activation not in _ACTIVATIONS:
        options.reject("pos_ffn_activation_fn", f"must be one of {', '.join(_ACTIVATIONS)}")
    source = tensors.get("encoder.embedding.weight")
    inner = tensors.get("encoder.layers.0.feed_forward.inner_proj.weight")
    if source is None or inner is None or source.dim() != 2:
        raise CheckpointError(f"{options.file_name}: the encoder has no embeddings or no layers")
    target = tensors.get("decoder.embedding.weight", source)
    sinusoids = [None if table is None else sinusoid_of(table.reshape(len(table), -1)) for table in tables]
    if sinusoids[0] is None or sinusoids[0] != sinusoids[1]:
        raise CheckpointError(f"{options.file_name}: only sinusoidal positions are supported; `position_encoding`")
    numbers = {token: index for index, token in reversed(list(enumerate(vocabularies.target)))}
    if lacking := [token for token in (_PADDING, _END, _BEGINNING) if token not in numbers]:
        raise CheckpointError(f"{options.file_name}: the target vocabulary lacks {', '.join(lacking)}")
    start = options.text("decoder_start_token", _BEGINNING)
    max_tokens = usable_length(len(tables[0])) if tables[0] is not None else usable_length(None)
    layout, offset = sinusoids[0]
    with errors_of(options.file_name):
        return TransformerConfig(
            vocab_size=len(source),
            target_vocab_size=len(target),
            pad_token_id=numbers[_PADDING],
            eos_token_id=numbers[_END],
            decoder_start_token_id=numbers.get(start, numbers[_BEGINNING]),
            d_model=source.shape[1],
            num_heads=options.integer("heads", 8),
            feed_forward_width=len(inner),
            num_encoder_layers=options.integer("enc_layers"),
            num_decoder_layers=options.integer("dec_layers"),
            dropout=0.0,
            activation=_ACTIVATIONS[activation],
            gated="encoder.layers.0.feed_forward.gate_proj.weight" in tensors,
            biases=any(name.endswith("_proj.bias") for name in tensors),
            norm_placement="pre",
            final_norm=True,
            layer_norm_epsilon=options.number("norm_eps", 1e-6),
            sinusoid_layout=layout,
            position_offset=offset,
            scale_embedding=True,
            tie_embeddings="decoder.embedding.weight" not in tensors,
            tie_output="output_projection.weight" not in tensors,
            output_bias="output_bias" in tensors,
            max_source_tokens=max_tokens,
            max_target_tokens=max_tokens,
        )
