"""Models in Marian's own format, `.npz` or `.bin`, with their vocabularies, decoder settings and languages.

Folders are those of Marian's trainer (`model.npz`, `model.npz.decoder.yml`), Firefox (`model.ende.intgemm.alphas.bin`,
`vocab.ende.spm`, `lex.50.50.ende.s2t.bin`), translateLocally (`model_info.json`) and Mozilla's registry
(`metadata.json`).
"""

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import torch
from torch import Tensor

from model.checkpoints.checkpoint import Checkpoint, CheckpointError, Languages, Provenance, TokenizerFiles
from model.checkpoints.hugging_face_files import CheckpointFolder, read_settings
from model.checkpoints.language_codes import language_code
from model.checkpoints.weights import parameter_shapes, select_weights
from model.config import TransformerConfig
from model.families.marian.description import LAYER_NORM_EPSILON, Description, read_yaml
from model.families.marian.tensor_files import StoredTensors, is_marian_file, read_tensors
from model.families.tokenizers import all_pieces, open_sentencepiece
from model.positions import usable_length

# Output bias of tokens that Marian does not have: their probability is exactly 0, also in float16.
_IMPOSSIBLE: Final = -1e4
_OUTPUT_WEIGHT, _OUTPUT_BIAS = "decoder_ff_logit_out_W", "decoder_ff_logit_out_b"
# Multipliers of activations, which an int8 bundle computes for each row.
_ACTIVATION_MULTIPLIER: Final = "_QuantMultA"
_PROJECTIONS: Final = {"query_proj": "q", "key_proj": "k", "value_proj": "v", "out_proj": "o"}
_PAIR: Final = re.compile(r"\.([a-z]{2})([a-z]{2})\.")
_STUDENT: Final = re.compile(r"([a-z]{2})([a-z]{2})\.student\b")  # a folder of Bergamot: `ende.student.tiny11`
_MAX_YAML_BYTES: Final = 1 << 20
_VOCABULARY_ENDINGS: Final = (".spm", ".yml", ".yaml", ".json", ".txt")
END: Final = "</s>"
UNKNOWN: Final = "<unk>"
_SENTENCEPIECE_FILES: Final = ("source.spm", "target.spm")


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
            weights=select_weights(shapes, tables.tensors, files.model.name, names),
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
        source, target = (_table_name(stack, one_table=description.ties_source) for stack in ("encoder", "decoder"))
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


def _table_name(stack: str, *, one_table: bool) -> str:
    return "Wemb" if one_table else f"{stack}_Wemb"


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
    one_table, is_pre = description.ties_source, description.norm_placement == "pre"
    return {parameter: stored_name(parameter, one_table=one_table, is_pre=is_pre) for parameter in parameters}


def stored_name(parameter: str, *, one_table: bool, is_pre: bool) -> str:
    """Return Marian's name of a parameter of a model with one table of embeddings or two, and its norm placement."""
    stack, _, rest = parameter.partition(".")
    if rest == "embedding.weight":
        return _table_name(stack, one_table=one_table)
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


@dataclass(frozen=True, slots=True)
class NativeFiles:
    """Files of one model: the vocabularies of source and target; `allows_unknown` is a setting of the decoder.

    `shortlist` is None unless the folder has a binary one; `unread_shortlists` are lists of words without one.
    """

    model: Path
    vocabularies: tuple[Path, Path]
    allows_unknown: bool
    shortlist: Path | None = None
    unread_shortlists: tuple[Path, ...] = ()


def model_files(folder: Path) -> list[Path]:
    """Return the files with weights in Marian's formats, without states of the optimizer."""
    found = [path for pattern in ("*.npz", "*.bin") for path in folder.glob(pattern)]
    names = sorted(path for path in found if not path.name.startswith("lex.") and ".optimizer." not in path.name)
    return [path for path in names if is_marian_file(path)]


def find_files(folder: Path) -> NativeFiles:
    """Return the files of the model in a folder. Raises `CheckpointError` if it has several, or no vocabulary."""
    models = model_files(folder)
    settings = _decoder_settings(folder, models)
    named = _named(folder, settings.get("models"))
    model = named[0] if len(named) == 1 else next((path for path in models if path.name == "model.npz"), None)
    if len(models) == 1:
        model = models[0]
    if model is None:
        raise CheckpointError(
            f"{folder.name} has {len(models)} models: {', '.join(path.name for path in models)}; leave one in the "
            "folder, or name it in decoder.yml"
        )
    vocabularies = _named(folder, settings.get("vocabs")) or _vocabularies(folder)
    if len(vocabularies) not in (1, 2):
        raise CheckpointError(
            f"{folder.name} must have one vocabulary or two, such as vocab.ende.spm, or srcvocab.ende.spm and "
            f"trgvocab.ende.spm. Given: {', '.join(path.name for path in vocabularies) or 'none'}"
        )
    allows_unknown = settings.get("allow-unk") is True
    shortlist = _shortlist(folder, settings)
    unread = () if shortlist else _word_lists(folder)
    return NativeFiles(model, (vocabularies[0], vocabularies[-1]), allows_unknown, shortlist, unread)


def find_languages(folder: Path, files: NativeFiles) -> Languages:
    """Return the languages from the metadata next to a model, or from a file name; empty if neither has them."""
    metadata = read_settings(folder / "metadata.json", required=False).values
    source, target = metadata.get("sourceLanguage"), metadata.get("targetLanguage")
    if isinstance(source, str) and isinstance(target, str):
        return Languages((language_code(source),), (language_code(target),))
    information = read_settings(folder / "model_info.json", required=False).values
    tags, target = information.get("srcTags"), information.get("trgTag")
    if isinstance(tags, dict) and tags and isinstance(target, str):
        return Languages(tuple(language_code(str(tag)) for tag in tags), (language_code(target),))
    # Both directions share a vocabulary, which is named after one of them: `vocab.deen.spm` in `ende.student.tiny11`.
    names = (_PAIR.search(files.model.name), _STUDENT.match(folder.name))
    for found in (*names, *(_PAIR.search(path.name) for path in files.vocabularies)):
        if found:
            return Languages((language_code(found[1]),), (language_code(found[2]),))
    return Languages((), ())


def _decoder_settings(folder: Path, models: Iterable[Path]) -> dict[str, object]:
    """Return the first settings of a decoder in the folder that name a model of it."""
    candidates = [model.with_name(f"{model.name}.decoder.yml") for model in models]
    candidates += [
        folder / "decoder.yml",
        *sorted(folder.glob("[!.]*.decoder.yml")),
        *sorted(folder.glob("config*.yml")),
    ]
    for path in candidates:
        if path.is_file() and path.stat().st_size <= _MAX_YAML_BYTES:
            settings = read_yaml(path.read_text("utf-8", errors="replace"), path.name)
            if _named(folder, settings.get("models")):
                return settings
    return {}


def _named(folder: Path, listed: object) -> list[Path]:
    """Return the files of a folder with the last parts of listed paths; empty unless it has all of them."""
    names = [re.split(r"[/\\]", str(name))[-1] for name in listed] if isinstance(listed, list) else []
    paths = [folder / name for name in names if name]
    return paths if all(path.is_file() for path in paths) else []


def _shortlist(folder: Path, settings: Mapping[str, object]) -> Path | None:
    """Return the binary shortlist that the settings name, or else the only one in the folder; None without any."""
    listed = settings.get("shortlist")
    # The file is first; others are numbers. Settings that name the list of words (`lex.s2t.gz`) are those of training,
    # and the binary list next to it was made from it.
    named = [path for path in _named(folder, listed[:1]) if path.suffix == ".bin"] if isinstance(listed, list) else []
    found = named or sorted(path for path in folder.glob("lex.*bin") if path.suffix == ".bin" and path.is_file())
    if len(found) > 1:
        raise CheckpointError(
            f"{folder.name} has {len(found)} shortlists: {', '.join(path.name for path in found)}; leave one in the "
            "folder, or name it in decoder.yml"
        )
    return found[0] if found else None


def _word_lists(folder: Path) -> tuple[Path, ...]:
    """Return the shortlists of words, `lex.s2t` or `lex.s2t.gz`."""
    return tuple(sorted(path for path in folder.glob("lex.*") if path.suffix != ".bin" and path.is_file()))


def _vocabularies(folder: Path) -> list[Path]:
    paths = sorted(path for path in folder.iterdir() if path.suffix in _VOCABULARY_ENDINGS and path.is_file())
    for patterns in (("srcvocab", "trgvocab"), ("vocab.src", "vocab.trg")):
        pair = [path for pattern in patterns for path in paths if path.name.startswith(pattern)]
        if len(pair) == 2:
            return pair
    return [path for path in paths if re.match(r"(.*[.\-])?vocab\b", path.name)]


@dataclass(frozen=True, slots=True)
class NativeVocabularies:
    """Numbers of the pieces of source and target."""

    source: dict[str, int]
    target: dict[str, int]


def read_vocabularies(paths: tuple[Path, Path]) -> NativeVocabularies:
    """Read both vocabularies. Raises `CheckpointError` that names the file."""
    source = _pieces(paths[0])
    target = source if paths[1] == paths[0] else _pieces(paths[1])
    for vocabulary, path in zip((source, target), paths, strict=True):
        for name in (END, UNKNOWN):
            if name not in vocabulary:
                raise CheckpointError(f"{path.name} has no {name}")
    if source[END] != target[END] or source[UNKNOWN] != target[UNKNOWN]:
        raise CheckpointError(f"{paths[0].name} and {paths[1].name} number {END} or {UNKNOWN} differently")
    return NativeVocabularies(source, target)


def tokenizer_files(folder: Path, paths: tuple[Path, Path], vocabularies: NativeVocabularies) -> TokenizerFiles:
    """Return the tokenizer: the vocabularies if they are SentencePiece models, otherwise the models next to them."""
    converted = {"vocab.json": json.dumps(vocabularies.source).encode()}
    if vocabularies.target != vocabularies.source:
        converted["target_vocab.json"] = json.dumps(vocabularies.target).encode()
    if all(path.suffix == ".spm" for path in paths):
        if paths[0] == paths[1]:
            return TokenizerFiles("sentencepiece", {_SENTENCEPIECE_FILES[0]: paths[0]}, converted=converted)
        return TokenizerFiles("marian", dict(zip(_SENTENCEPIECE_FILES, paths, strict=True)), converted=converted)
    if all((folder / name).is_file() for name in _SENTENCEPIECE_FILES):
        return TokenizerFiles("marian", {name: folder / name for name in _SENTENCEPIECE_FILES}, converted=converted)
    raise CheckpointError(
        f"{paths[0].name} lists the pieces of a tokenizer that is not in {folder.name}; copy its "
        f"{' and '.join(_SENTENCEPIECE_FILES)} into the folder"
    )


def _pieces(path: Path) -> dict[str, int]:
    if path.suffix == ".spm":
        return {piece: index for index, piece in enumerate(all_pieces(open_sentencepiece(path)))}
    try:
        text = path.read_bytes().decode("utf-8")
    except UnicodeDecodeError as error:
        raise CheckpointError(f"{path.name} is damaged: {error}") from error
    if path.suffix == ".txt":
        return {piece: index for index, piece in enumerate(text.removesuffix("\n").split("\n"))}
    try:
        listed: object = json.loads(text)
    except (ValueError, RecursionError):
        listed = read_yaml(text, path.name)
    if not isinstance(listed, dict) or not all(type(number) is int for number in listed.values()):
        raise CheckpointError(f"{path.name} must number its pieces")
    return {str(piece): number for piece, number in listed.items()}
