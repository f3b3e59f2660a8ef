"""CTranslate2 models: a folder with `model.bin`, vocabularies and a tokenizer; and packages of Argos Translate."""

import json
import math
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal

import torch
from torch import Tensor

from model.checkpoints.archives import sha256_of
from model.checkpoints.checkpoint import Checkpoint, CheckpointError, Languages, Provenance
from model.checkpoints.hugging_face_files import (
    CONFIG_FILE,
    WEIGHT_FILES,
    CheckpointFolder,
    Settings,
    errors_of,
    read_settings,
)
from model.checkpoints.language_codes import language_code
from model.checkpoints.weights import parameter_shapes, select_weights
from model.config import Activation, SinusoidLayout, TransformerConfig
from model.families.bart import is_small100
from model.families.ctranslate2.binary import Attributes, layer_indices, read_variables
from model.families.listed_vocabulary import SpecialNames, Vocabularies, read_tokenizer
from model.families.marian.hugging_face import language_tokens as marian_language_tokens
from model.families.tokenizers import (
    LANGUAGE_TOKEN,
    TARGET_TOKEN,
    selected_by_prefixes,
    selected_by_prompts,
    selected_by_tokens,
)
from model.positions import sinusoid_of, usable_length

WEIGHTS_FILE = "model.bin"
_PADDINGS = ("<pad>", "<blank>")
_METADATA, _MODEL = "metadata.json", "model"
# Codes of Argos that are no language codes, or those of other languages.
_SPELLINGS = {"pb": "pt-BR", "zt": "zh-Hant"}
_ACTIVATIONS: tuple[Activation | None, ...] = ("relu", "gelu_tanh", "silu", "gelu", None, None, None)
_STACKS = ("encoder", "decoder")
_SHARED, _SOURCE, _TARGET = "shared_vocabulary", "source_vocabulary", "target_vocabulary"
_M2M100 = re.compile(r"__([a-z]{2,3})__")
_MIN_TOKENS = 2  # one such token can be a word


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
    languages = vocabulary_languages(
        vocabularies.source, tokenizer_folder, model.num_layers, has_zero_start=model.has_zero_start
    )
    return Checkpoint(
        config=model.config,
        weights=select_weights(parameter_shapes(model.config), model.tensors, folder.name),
        tokenizer=read_tokenizer(
            tokenizer_folder, vocabularies, special, begins_source=languages is None and model.is_bart
        ),
        languages=languages or Languages((), ()),
        provenance=Provenance(folder.name, family, sha256_of(path)),
        is_quantized=attributes.is_quantized,
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
    def num_layers(self) -> tuple[int, int]:
        """Numbers of layers of encoder and decoder."""
        return self.config.num_encoder_layers, self.config.num_decoder_layers

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
        with errors_of(WEIGHTS_FILE):
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


class Argos:
    """Reader of an extracted package: a `FolderFormat`."""

    name = "argos"

    def matches(self, folder: CheckpointFolder) -> bool:
        """Return whether a folder is such a package."""
        return (folder.path / _METADATA).is_file() and (folder.path / _MODEL / WEIGHTS_FILE).is_file()

    def read(self, folder: CheckpointFolder) -> Checkpoint:
        """Read a package. Raises `CheckpointError` that names the file or the setting."""
        metadata = read_settings(folder.path / _METADATA)
        if metadata.text("type", "translate") != "translate":
            metadata.reject("type", 'must be "translate"')
        checkpoint = read_model(CheckpointFolder(folder.path / _MODEL, folder.name), folder.path, self.name)
        source, target = (_codes(metadata, name) for name in ("from", "to"))
        languages = Languages(source, target)
        if prefix := metadata.text("target_prefix", ""):
            languages = replace(languages, first_tokens=dict.fromkeys(target, _token(checkpoint, prefix)))
        return replace(checkpoint, languages=languages)


def _codes(metadata: Settings, side: str) -> tuple[str, ...]:
    written = metadata.text(f"{side}_code", "")
    listed = metadata.values.get(f"{side}_codes") or []
    if not isinstance(listed, list) or not all(isinstance(code, str) for code in listed):
        metadata.reject(f"{side}_codes", "must be a list of language codes")
    codes = [code for code in (written, *listed) if code]
    if not codes:
        metadata.reject(f"{side}_code", "must be a language code")
    return tuple(dict.fromkeys(language_code(_SPELLINGS.get(code, code)) for code in codes))


def _token(checkpoint: Checkpoint, prefix: str) -> int:
    vocabulary = checkpoint.tokenizer.target_vocabulary
    if prefix not in vocabulary:
        raise CheckpointError(f"{_METADATA}: `target_prefix` must be a token of the vocabulary. Given: {prefix}")
    return vocabulary[prefix]


class WeightReader:
    """Collects tensors by our names, and settings that all layers must share."""

    def __init__(self, attributes: Attributes) -> None:
        self._attributes = attributes
        self.tensors: dict[str, Tensor] = {}
        self._attention_scales: dict[float, str] = {}
        self._head_dims: dict[int, str] = {}
        self.num_layers = {stack: len(layer_indices(attributes, stack)) for stack in _STACKS}
        self.num_heads = {stack: attributes.integer(f"{stack}/num_heads", 8) for stack in _STACKS}
        for stack in _STACKS:
            if self.num_heads[stack] < 1:
                raise CheckpointError(f"model.bin: {stack}/num_heads must be at least 1")
            for index in range(self.num_layers[stack]):
                self._read_layer(stack, index)
            for norm, ours in (("layer_norm", "final_norm"), ("layernorm_embedding", "embedding_norm")):
                self._copy_norm(f"{stack}/{norm}", f"{stack}.{ours}")
        self._read_relative_bias()

    def shared(self, name: str, value: str) -> float:
        """Return a scalar that both stacks must have alike."""
        encoder, decoder = (self._attributes.number(f"{stack}/{name}", float(value)) for stack in _STACKS)
        if encoder != decoder:
            raise CheckpointError(f"model.bin: {name} differs: {encoder} in the encoder, {decoder} in the decoder")
        return encoder

    @property
    def activation(self) -> Activation:
        """Activation of the feed-forwards."""
        number = int(self.shared("activation", "0"))
        activation = _ACTIVATIONS[number] if 0 <= number < len(_ACTIVATIONS) else None
        if activation is None:
            raise CheckpointError(f"model.bin: activation {number} is not supported. Supported: 0, 1, 2, 3")
        return activation

    @property
    def attention_scale(self) -> float | None:
        """Factor of the products of queries and keys; None is the usual one."""
        default = self.head_dim**-0.5
        scales = list(self._attention_scales) or [default]
        if len(scales) > 1 or math.isclose(scales[0], default, rel_tol=1e-6):
            if len(scales) > 1:
                raise CheckpointError(f"model.bin: queries_scale differs between layers: {scales}")
            return None
        return scales[0]

    @property
    def head_dim(self) -> int:
        """Width of a head in all layers."""
        if len(self._head_dims) > 1:
            raise CheckpointError(f"model.bin: heads of layers differ in width: {sorted(self._head_dims)}")
        return next(iter(self._head_dims))

    @property
    def has_biases(self) -> bool:
        """Whether the projections have biases; where only some have, the others get zeros."""
        return any(name.endswith("_proj.bias") for name in self.tensors)

    def fill_biases(self) -> None:
        """Add zeros for missing biases of projections and normalisations."""
        if self.has_biases:
            for name in [name for name in self.tensors if name.endswith("_proj.weight")]:
                bias = name.removesuffix("weight") + "bias"
                self.tensors.setdefault(bias, torch.zeros(self.tensors[name].shape[0]))

    def scales_embeddings(self, d_model: int) -> bool:
        """Return whether embeddings are multiplied by the root of their width; another factor is an error."""
        factors = {stack: self._embedding_scale(stack, d_model) for stack in _STACKS}
        for stack, factor in factors.items():
            if not any(math.isclose(factor, usual, rel_tol=1e-3) for usual in (1.0, math.sqrt(d_model))):
                raise CheckpointError(
                    f"model.bin: {stack}/scale_embeddings must be 1 or {math.sqrt(d_model):.4f}. Given: {factor}"
                )
        scaled = {stack: not math.isclose(factor, 1.0, rel_tol=1e-3) for stack, factor in factors.items()}
        if scaled["encoder"] != scaled["decoder"]:
            raise CheckpointError("model.bin: scale_embeddings differs between encoder and decoder")
        return scaled["encoder"]

    def _embedding_scale(self, stack: str, d_model: int) -> float:
        attributes = self._attributes
        for name in (f"{stack}/scale_embeddings", f"{stack}/embeddings/multiply_by_sqrt_depth"):
            if name in attributes:
                value = attributes.number(name)
                return (math.sqrt(d_model) if value else 1.0) if attributes.is_flag(name) else value
        return math.sqrt(d_model)

    def _read_layer(self, stack: str, index: int) -> None:
        theirs, ours = f"{stack}/layer_{index}", f"{stack}.layers.{index}"
        self._read_attention(f"{theirs}/self_attention", f"{ours}.self_attention", stack, is_self=True)
        if stack == "decoder":
            self._read_attention(f"{theirs}/attention", f"{ours}.cross_attention", stack, is_self=False)
        for linear, projection in (
            ("linear_0", "inner_proj"),
            ("linear_0_noact", "gate_proj"),
            ("linear_1", "outer_proj"),
        ):
            if linear != "linear_0_noact" or f"{theirs}/ffn/{linear}/weight" in self._attributes:
                self._split(f"{theirs}/ffn/{linear}", [f"{ours}.feed_forward.{projection}"])
        self._copy_norm(f"{theirs}/ffn/layer_norm", f"{ours}.feed_forward_norm")

    def _read_attention(self, theirs: str, ours: str, stack: str, *, is_self: bool) -> None:
        projections = [f"{ours}.{name}" for name in ("query_proj", "key_proj", "value_proj")]
        if is_self:
            self._split(f"{theirs}/linear_0", projections)
            self._split(f"{theirs}/linear_1", [f"{ours}.out_proj"])
        else:
            self._split(f"{theirs}/linear_0", projections[:1])
            self._split(f"{theirs}/linear_1", projections[1:])
            self._split(f"{theirs}/linear_2", [f"{ours}.out_proj"])
        self._copy_norm(f"{theirs}/layer_norm", f"{ours}_norm")
        width = self.tensors[f"{ours}.out_proj.weight"].shape[-1]
        if width % self.num_heads[stack]:
            raise CheckpointError(f"model.bin: {theirs} of width {width} has {self.num_heads[stack]} heads")
        self._head_dims[width // self.num_heads[stack]] = theirs
        if f"{theirs}/queries_scale" in self._attributes:
            self._attention_scales[self._attributes.number(f"{theirs}/queries_scale")] = theirs

    def _split(self, theirs: str, ours: Sequence[str]) -> None:
        """Read a linear layer that contains one or several projections, one below the other."""
        for kind in ("weight", "bias"):
            if kind == "bias" and f"{theirs}/bias" not in self._attributes:
                continue
            tensor = self._attributes.tensor(f"{theirs}/{kind}")
            if tensor.dim() != (2 if kind == "weight" else 1) or tensor.shape[0] % len(ours):
                raise CheckpointError(
                    f"model.bin: {theirs}/{kind} of shape {list(tensor.shape)} does not contain {len(ours)} projections"
                )
            for name, part in zip(ours, tensor.chunk(len(ours)), strict=True):
                self.tensors[f"{name}.{kind}"] = part.contiguous()

    def _copy_norm(self, theirs: str, ours: str) -> None:
        for name, kind in (("gamma", "weight"), ("beta", "bias")):
            if f"{theirs}/{name}" in self._attributes:
                self.tensors[f"{ours}.{kind}"] = self._attributes.tensor(f"{theirs}/{name}")

    def _read_relative_bias(self) -> None:
        for stack in _STACKS:
            first: Tensor | None = None
            for index in range(self.num_layers[stack]):
                name = f"{stack}/layer_{index}/self_attention/relative_attention_bias"
                if name not in self._attributes:
                    continue
                bias = self._attributes.tensor(name)
                if first is not None and not torch.equal(first, bias):
                    raise CheckpointError(f"model.bin: {name} differs from that of the first layer")
                first = bias
            if first is not None:
                self.tensors[f"{stack}.relative_bias.weight"] = first

    def relative_distance(self) -> int:
        """Return the distance from which all tokens are in the last bucket."""
        distances = {
            self._attributes.integer(name)
            for stack in _STACKS
            for index in range(self.num_layers[stack])
            if (name := f"{stack}/layer_{index}/self_attention/relative_attention_max_distance") in self._attributes
        }
        if len(distances) != 1:
            raise CheckpointError(f"model.bin: relative_attention_max_distance must be one number: {sorted(distances)}")
        return distances.pop()


def read_special_names(folder: Path, attributes: Attributes, version: int) -> SpecialNames:
    """Return the special tokens: in config.json since binary version 6, in model.bin before."""
    if version >= 6:
        settings = read_settings(folder / CONFIG_FILE)
        start = settings.values.get("decoder_start_token", "<s>")
        return SpecialNames(
            settings.text("unk_token", "<unk>"),
            settings.text("bos_token", "<s>"),
            settings.text("eos_token", "</s>"),
            None if start is None else settings.text("decoder_start_token", "<s>"),
            settings.boolean("add_source_bos", False),
            settings.boolean("add_source_eos", False),
        )
    beginning, end = attributes.text("bos_token", "<s>"), attributes.text("eos_token", "</s>")
    start = beginning if attributes.flag("with_target_bos", True) else end
    return SpecialNames(
        attributes.text("unk_token", "<unk>"),
        beginning,
        end,
        None if attributes.flag("user_decoder_start_tokens", False) else start,
        attributes.flag("with_source_bos", False),
        attributes.flag("with_source_eos", False),
    )


def layer_norm_epsilon(folder: Path, version: int, *, rms: bool) -> float:
    """Return the epsilon of all normalisations; its default depends on their kind."""
    default = 1e-6 if rms else 1e-5
    return read_settings(folder / CONFIG_FILE).number("layer_norm_epsilon", default) if version >= 6 else default


def read_vocabularies(folder: Path) -> Vocabularies:
    """Return the vocabularies, as JSON or with one token a line. Raises `CheckpointError` if a file is missing."""
    shared = _tokens(folder, _SHARED)
    if shared is not None:
        return Vocabularies(shared, shared)
    source, target = _tokens(folder, _SOURCE), _tokens(folder, _TARGET)
    if source is None or target is None:
        raise CheckpointError(f"{folder} has neither {_SHARED}.json or .txt nor {_SOURCE} and {_TARGET}")
    return Vocabularies(source, target)


def _tokens(folder: Path, name: str) -> list[str] | None:
    path = folder / f"{name}.json"
    try:
        if path.is_file():
            tokens = json.loads(path.read_text("utf-8"))
            if not isinstance(tokens, list) or not all(isinstance(token, str) for token in tokens):
                raise CheckpointError(f"{path.name} must be a list of tokens")
            return tokens
        path = folder / f"{name}.txt"
        if not path.is_file():
            return None
        # Only line feeds end a line: tokens can be other separators.
        lines = path.read_bytes().decode("utf-8").split("\n")
    except CheckpointError:
        raise
    except (ValueError, RecursionError) as error:
        raise CheckpointError(f"{path.name} is damaged: {error}") from error
    if lines and not lines[-1]:
        lines.pop()
    if lines and all(line.endswith("\r") for line in lines):
        lines = [line[:-1] for line in lines]
    return lines


def vocabulary_languages(
    tokens: Sequence[str], tokenizer_folder: Path, num_layers: tuple[int, int], *, has_zero_start: bool
) -> Languages | None:
    """Return the languages that tokens of the vocabulary select; None for a model without such tokens.

    They are those of M2M100, SMaLL-100, NLLB-200, mBART-50 or MADLAD-400. With `has_zero_start`, as in Marian, a token
    before the source selects the target. Raises `CheckpointError` if M2M100 and SMaLL-100 cannot be told apart.
    """
    if has_zero_start:
        prefixes = marian_language_tokens(tokens)
        return Languages((), tuple(prefixes), source_prefix=prefixes) if prefixes else None
    by_prompt = [found[1] for token in tokens if (found := TARGET_TOKEN.fullmatch(token))]
    if len(by_prompt) >= _MIN_TOKENS:
        return selected_by_prompts(by_prompt)
    m2m100 = {found[1]: index for index, token in enumerate(tokens) if (found := _M2M100.fullmatch(token))}
    if len(m2m100) >= _MIN_TOKENS:
        return selected_by_prefixes(m2m100) if is_small100(tokenizer_folder, num_layers) else selected_by_tokens(m2m100)
    ids = {token: index for index, token in enumerate(tokens) if LANGUAGE_TOKEN.fullmatch(token)}
    return selected_by_tokens(ids) if len(ids) >= _MIN_TOKENS else None
