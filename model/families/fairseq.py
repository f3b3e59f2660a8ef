"""Transformer checkpoints of fairseq: options and weights in a file, dictionaries in `dict.<language>.txt`."""

from collections.abc import Mapping
from pathlib import Path

from torch import Tensor

from model.checkpoints.archives import sha256_of
from model.checkpoints.checkpoint import Checkpoint, CheckpointError, Languages, Provenance
from model.checkpoints.hugging_face_files import CheckpointFolder, Settings, errors_of
from model.checkpoints.language_codes import language_code
from model.checkpoints.weights import parameter_shapes, select_weights
from model.config import Activation, TransformerConfig
from model.families.bart import RENAMED_PARTS
from model.families.listed_vocabulary import SpecialNames, Vocabularies, read_tokenizer
from model.families.pickled_checkpoint import (
    checkpoint_file,
    load_pickled,
    options_of,
    tensors_of,
    without_equal_tables,
)

_ACTIVATIONS: dict[str, Activation] = {
    "relu": "relu",
    "gelu": "gelu",
    "gelu_accurate": "gelu_tanh",
    "gelu_fast": "gelu_tanh",
    "swish": "silu",
}
# A dictionary begins with these, which its file leaves out.
_SPECIAL = ("<s>", "<pad>", "</s>", "<unk>")
_BEGINNING, _PADDING, _END, _UNKNOWN = range(4)
# Positions begin after that of padding.
_OFFSET = _PADDING + 1
_EPSILON = 1e-5
_IGNORED = ("version", "embed_positions._float_tensor", "embed_positions.weights")
_UNSUPPORTED_FLAGS = (
    "no_token_positional_embeddings",
    "adaptive_input",
    "character_embeddings",
    "no_cross_attention",
    "cross_self_attention",
    "lang_tok_replacing_bos_eos",
)


class Fairseq:
    """Reader of fairseq checkpoints: a `FolderFormat`."""

    name = "fairseq"

    def matches(self, folder: CheckpointFolder) -> bool:
        """Return whether there is one `.pt` file next to dictionaries."""
        return checkpoint_file(folder) is not None and any(folder.path.glob("dict.*.txt"))

    def read(self, folder: CheckpointFolder) -> Checkpoint:
        """Read a checkpoint. Raises `CheckpointError` that names the file, option or weights."""
        path = checkpoint_file(folder)
        assert path is not None
        content = load_pickled(path)
        if "model" not in content:
            raise CheckpointError(f"{path.name} is not a fairseq checkpoint: it lacks model")
        options = _options(path, content)
        tensors = _our_tensors(tensors_of(path, content["model"], "model"))
        source, target = options.text("source_lang", ""), options.text("target_lang", "")
        vocabularies = Vocabularies(_dictionary(folder.path, source), _dictionary(folder.path, target))
        config = _config(options, tensors, vocabularies)
        special = SpecialNames("<unk>", "<s>", "</s>", "</s>", adds_beginning=False, adds_end=True)
        return Checkpoint(
            config=config,
            weights=select_weights(parameter_shapes(config), tensors, path.name),
            tokenizer=read_tokenizer(folder.path, vocabularies, special, begins_source=False),
            languages=Languages((language_code(source),), (language_code(target),)),
            provenance=Provenance(folder.name, self.name, sha256_of(path)),
        )


def _options(path: Path, content: Mapping[str, object]) -> Settings:
    """Return the options of the model, completed by those of the task, which names the languages."""
    configured = content.get("cfg")
    if content.get("args") is not None:
        return options_of(path, content["args"])
    if not isinstance(configured, Mapping) or "model" not in configured:
        raise CheckpointError(f"{path.name} is not a fairseq checkpoint: it has neither `args` nor `cfg`")
    model = options_of(path, configured["model"])
    task = options_of(path, configured.get("task") or {})
    return Settings(path.name, {**task.values, **model.values})


def _our_tensors(stored: Mapping[str, Tensor]) -> dict[str, Tensor]:
    tensors: dict[str, Tensor] = {}
    for name, tensor in stored.items():
        if name.endswith(_IGNORED):
            continue
        ours = f"model.{name}"
        if name in ("decoder.output_projection.weight", "decoder.embed_out"):
            ours = "lm_head.weight"
        for theirs, renamed in RENAMED_PARTS:
            ours = ours.replace(theirs, renamed)
        tensors[ours] = tensor
    return without_equal_tables(tensors)


def _dictionary(folder: Path, language: str) -> list[str]:
    path = folder / f"dict.{language}.txt"
    try:
        lines = path.read_bytes().decode("utf-8").split("\n")
    except FileNotFoundError:
        raise CheckpointError(f"{path} is missing; the options of the checkpoint name its language") from None
    except UnicodeDecodeError as error:
        raise CheckpointError(f"{path.name} is not UTF-8: {error}") from error
    tokens = list(_SPECIAL)
    for number, line in enumerate(lines, 1):
        if not line:
            continue
        token, blank, count = line.removesuffix(" #fairseq:overwrite").rpartition(" ")
        if not blank or not count.isdigit():
            raise CheckpointError(f"{path.name}, line {number} must be a token and a count. Given: {line[:60]!r}")
        if token in _SPECIAL and line.endswith("#fairseq:overwrite"):
            raise CheckpointError(f"{path.name}, line {number}: another place of {token} is not supported")
        tokens.append(token)
    return tokens


def _config(options: Settings, tensors: Mapping[str, Tensor], vocabularies: Vocabularies) -> TransformerConfig:
    for name in _UNSUPPORTED_FLAGS:
        if options.boolean(name, False):
            options.reject(name, "must be false")
    pre_norm, other = (options.boolean(f"{stack}_normalize_before", False) for stack in ("encoder", "decoder"))
    if pre_norm != other:
        options.reject("decoder_normalize_before", "must be that of the encoder")
    activation = options.text("activation_fn", "relu")
    if activation not in _ACTIVATIONS:
        options.reject("activation_fn", f"must be one of {', '.join(_ACTIVATIONS)}")
    is_learned, other = (options.boolean(f"{stack}_learned_pos", False) for stack in ("encoder", "decoder"))
    if is_learned != other:
        options.reject("decoder_learned_pos", "must be that of the encoder")
    source = tensors.get("encoder.embedding.weight")
    if source is None:
        raise CheckpointError(f"{options.file_name}: encoder.embed_tokens.weight is missing")
    target = tensors.get("decoder.embedding.weight", source)
    for table, tokens in ((source, vocabularies.source), (target, vocabularies.target)):
        if len(table) != len(tokens):
            raise CheckpointError(
                f"{options.file_name}: {len(table)} embeddings for {len(tokens)} tokens of a dictionary"
            )
    default_ffn = options.integer("encoder_ffn_embed_dim", 2048)
    with errors_of(options.file_name):
        return TransformerConfig(
            vocab_size=len(source),
            target_vocab_size=len(target),
            pad_token_id=_PADDING,
            eos_token_id=_END,
            decoder_start_token_id=_END,
            d_model=source.shape[1],
            num_heads=options.integer("encoder_attention_heads", 8),
            decoder_num_heads=options.integer("decoder_attention_heads", 8),
            feed_forward_width=default_ffn,
            decoder_feed_forward_width=options.integer("decoder_ffn_embed_dim", default_ffn),
            num_encoder_layers=options.integer("encoder_layers", 6),
            num_decoder_layers=options.integer("decoder_layers", 6),
            dropout=0.0,
            activation=_ACTIVATIONS[activation],
            norm_placement="pre" if pre_norm else "post",
            final_norm="encoder.final_norm.weight" in tensors,
            layer_norm_epsilon=_EPSILON,
            embedding_norm="encoder.embedding_norm.weight" in tensors,
            positions="learned" if is_learned else "sinusoidal",
            sinusoid_layout="halves_inclusive",
            position_offset=_OFFSET,
            scale_embedding=not options.boolean("no_scale_embedding", False),
            tie_embeddings="decoder.embedding.weight" not in tensors,
            tie_output="output_projection.weight" not in tensors,
            max_source_tokens=options.integer("max_source_positions", 1024),
            max_target_tokens=options.integer("max_target_positions", 1024),
        )
