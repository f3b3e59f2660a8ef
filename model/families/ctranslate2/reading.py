"""CTranslate2 models: a folder with `model.bin`, vocabularies and a tokenizer."""

import hashlib
from pathlib import Path
from typing import Literal

import torch
from torch import Tensor

from model.checkpoints.checkpoint import Checkpoint, Languages, Provenance
from model.checkpoints.errors import CheckpointError
from model.checkpoints.hugging_face_files import WEIGHT_FILES, CheckpointFolder
from model.checkpoints.weights import parameter_shapes, select_weights
from model.config import SinusoidLayout, TransformerConfig
from model.families.ctranslate2.attributes import Attributes
from model.families.ctranslate2.binary import read_variables
from model.families.ctranslate2.languages import vocabulary_languages
from model.families.ctranslate2.vocabulary import layer_norm_epsilon, read_special_names, read_vocabularies
from model.families.ctranslate2.weights import WeightReader
from model.families.listed_vocabulary import SpecialNames, Vocabularies, read_tokenizer
from model.families.position_tables import sinusoid_of, usable_length

WEIGHTS_FILE = "model.bin"
_PADDINGS = ("<pad>", "<blank>")
_QUANTIZED_NOTE = (
    "the weights of the checkpoint are int8: embeddings keep their values in an int8 bundle, weights of products are "
    "rounded once more; `--precision float32` keeps all values"
)


class CTranslate2:
    """Reader of CTranslate2 models: a `FolderFormat`."""

    name = "ctranslate2"

    def matches(self, folder: CheckpointFolder) -> bool:
        """Return whether a folder contains such a model, and none in Hugging Face's format."""
        is_hugging_face = any((folder.path / name).is_file() for name in WEIGHT_FILES)
        return (folder.path / WEIGHTS_FILE).is_file() and not is_hugging_face

    def read(self, folder: CheckpointFolder) -> Checkpoint:
        """Read the model in a folder. Raises `CheckpointError` that names the file, variable or token."""
        return read_model(folder, folder.path, self.name)


def read_model(folder: CheckpointFolder, tokenizer_folder: Path, family: str) -> Checkpoint:
    """Read a model whose tokenizer can be in another folder."""
    path = folder.path / WEIGHTS_FILE
    variables = read_variables(path)
    attributes = Attributes(variables)
    special = read_special_names(folder.path, attributes, variables.version)
    vocabularies = read_vocabularies(folder.path)
    model = _ModelReader(folder, attributes, special, vocabularies, variables.version)
    with path.open("rb") as stream:
        digest = hashlib.file_digest(stream, "sha256").hexdigest()
    languages = vocabulary_languages(vocabularies.source, has_zero_start=model.has_zero_start)
    shapes = parameter_shapes(model.config)
    return Checkpoint(
        config=model.config,
        weights=select_weights(shapes, model.tensors, {name: [name] for name in shapes}, (), folder.name),
        tokenizer=read_tokenizer(
            tokenizer_folder, vocabularies, special, begins_source=languages is None and model.is_bart
        ),
        languages=languages or Languages((), ()),
        provenance=Provenance(folder.name, family, digest),
        notes=(_QUANTIZED_NOTE,) if attributes.is_quantized else (),
    )


class _ModelReader:
    """Configuration and tensors of one model."""

    def __init__(
        self,
        folder: CheckpointFolder,
        attributes: Attributes,
        special: SpecialNames,
        vocabularies: Vocabularies,
        version: int,
    ) -> None:
        self._attributes, self._special, self._vocabularies = attributes, special, vocabularies
        self._weights = WeightReader(attributes)
        self.has_zero_start = attributes.flag("decoder/start_from_zero_embedding", False)
        self.tensors: dict[str, Tensor] = self._weights.tensors
        self._is_rms = "encoder.layers.0.self_attention_norm.bias" not in self.tensors
        epsilon = layer_norm_epsilon(folder.path, version, rms=self._is_rms)
        self._weights.fill_biases()
        self._ties_output = self._read_tables()
        self.config = self._config(epsilon)
        attributes.require_all_read()

    @property
    def is_bart(self) -> bool:
        """Whether the model has the architecture of BART, whose sources begin with a token."""
        return self.config.positions == "learned" and self.config.embedding_norm and not self.has_zero_start

    def _read_tables(self) -> bool:
        """Read embeddings and the output projection; return whether one table is both."""
        attributes = self._attributes
        name = "encoder/embeddings_0/weight"
        source = attributes.tensor(name if name in attributes else "encoder/embeddings/weight")
        target = attributes.tensor("decoder/embeddings/weight")
        output = attributes.tensor("decoder/projection/weight")
        bias = attributes.tensor("decoder/projection/bias") if "decoder/projection/bias" in attributes else None
        for table, tokens, what in (
            (source, self._vocabularies.source, "source"),
            (target, self._vocabularies.target, "target"),
            (output, self._vocabularies.target, "target"),
        ):
            if table.dim() != 2 or table.shape[0] < len(tokens):
                raise CheckpointError(
                    f"model.bin: tables of shape {list(table.shape)} for {len(tokens)} tokens of the {what} vocabulary"
                )
        ties_output = torch.equal(target, output)
        # Marian's decoder starts from zeros: an additional token has them as its embedding.
        num_rows = max(len(source), len(target)) + 1 if self.has_zero_start else None
        self.tensors["encoder.embedding.weight"] = _with_rows(source, num_rows)
        if source.shape != target.shape or not torch.equal(source, target):
            self.tensors["decoder.embedding.weight"] = _with_rows(target, num_rows)
        if not ties_output:
            self.tensors["output_projection.weight"] = _with_rows(output, num_rows)
        if bias is not None:
            missing = 0 if num_rows is None else num_rows - len(bias)
            self.tensors["output_bias"] = torch.nn.functional.pad(bias, (0, missing))
        return ties_output

    def _config(self, epsilon: float) -> TransformerConfig:
        weights, attributes, tensors = self._weights, self._attributes, self.tensors
        source = tensors["encoder.embedding.weight"]
        target = tensors.get("decoder.embedding.weight", source)
        d_model = source.shape[1]
        kind, layout, offset, max_tokens = self._positions()
        buckets = tensors.get("encoder.relative_bias.weight")
        shared = weights.num_heads["encoder"] * weights.head_dim
        ids = {token: index for index, token in reversed(list(enumerate(self._vocabularies.target)))}
        pad = len(target) - 1 if self.has_zero_start else next((ids[t] for t in _PADDINGS if t in ids), None)
        end = self._id_of(self._special.end, ids)
        pad = end if pad is None else pad
        try:
            return TransformerConfig(
                vocab_size=len(source),
                target_vocab_size=len(target),
                pad_token_id=pad,
                eos_token_id=end,
                decoder_start_token_id=pad if self.has_zero_start else self._start(ids),
                d_model=d_model,
                num_heads=weights.num_heads["encoder"],
                decoder_num_heads=weights.num_heads["decoder"],
                head_dim=None if shared == d_model else weights.head_dim,
                feed_forward_width=len(tensors["encoder.layers.0.feed_forward.inner_proj.weight"]),
                decoder_feed_forward_width=len(tensors["decoder.layers.0.feed_forward.inner_proj.weight"]),
                num_encoder_layers=weights.num_layers["encoder"],
                num_decoder_layers=weights.num_layers["decoder"],
                dropout=0.0,
                activation=weights.activation,
                gated="encoder.layers.0.feed_forward.gate_proj.weight" in tensors,
                biases=weights.has_biases,
                attention_scale=weights.attention_scale,
                norm_placement="pre" if weights.shared("pre_norm", "1") else "post",
                norm="rms" if self._is_rms else "layer",
                final_norm="encoder.final_norm.weight" in tensors,
                layer_norm_epsilon=epsilon,
                positions=kind,
                sinusoid_layout=layout,
                position_offset=offset,
                relative_buckets=0 if buckets is None else len(buckets),
                relative_max_distance=128 if buckets is None else weights.relative_distance(),
                embedding_norm="encoder.embedding_norm.weight" in tensors,
                scale_embedding=weights.scales_embeddings(d_model),
                tie_embeddings="decoder.embedding.weight" not in tensors,
                tie_output=self._ties_output,
                output_bias="output_bias" in tensors,
                output_scale=attributes.number("decoder/scale_outputs", 1.0),
                max_source_tokens=max_tokens,
                max_target_tokens=max_tokens,
                suppressed_token_ids=tuple(range(len(self._vocabularies.target), len(target))),
            )
        except CheckpointError:
            raise
        except ValueError as error:
            raise CheckpointError(f"model.bin: {error}") from error

    def _positions(self) -> tuple[Literal["sinusoidal", "learned", "none"], SinusoidLayout, int, int]:
        attributes = self._attributes
        if "encoder.relative_bias.weight" in self.tensors:
            return "none", "interleaved", 0, usable_length(None)
        names = [f"{stack}/position_encodings/encodings" for stack in ("encoder", "decoder")]
        if not any(name in attributes for name in names):
            return "sinusoidal", "halves_inclusive", 1, usable_length(None)
        tables = [attributes.tensor(name) for name in names]
        tables = [table[0] if table.dim() == 3 and len(table) == 1 else table for table in tables]
        if any(table.dim() != 2 for table in tables):
            raise CheckpointError(f"model.bin: {names[0]} must be a matrix. Given: {list(tables[0].shape)}")
        sinusoids = [sinusoid_of(table) for table in tables]
        if sinusoids[0] is not None and sinusoids[0] == sinusoids[1]:
            return "sinusoidal", *sinusoids[0], usable_length(len(tables[0]))
        if len(tables[0]) != len(tables[1]):
            raise CheckpointError(f"model.bin: position tables differ in length: {[len(table) for table in tables]}")
        self.tensors |= {"encoder.positions.weight": tables[0], "decoder.positions.weight": tables[1]}
        return "learned", "interleaved", 0, len(tables[0])

    def _start(self, ids: dict[str, int]) -> int:
        if self._special.decoder_start is None:
            raise CheckpointError("config.json: `decoder_start_token` must be a token. Given: null")
        return self._id_of(self._special.decoder_start, ids)

    def _id_of(self, token: str, ids: dict[str, int]) -> int:
        if token not in ids:
            raise CheckpointError(f"the vocabulary has no {token}")
        return ids[token]


def _with_rows(table: Tensor, num_rows: int | None) -> Tensor:
    missing = 0 if num_rows is None else num_rows - len(table)
    return torch.nn.functional.pad(table, (0, 0, 0, missing)) if missing else table
