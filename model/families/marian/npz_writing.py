"""Writer of Marian's own format: weights with their description in one `.npz`, vocabulary, decoder configuration.

Names and description are those of marian-dev (src/models/transformer.h). Marian multiplies from the left, has no
padding token, and starts its decoder from zeros.
"""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from model.atomic_files import replacing
from model.checkpoints.checkpoint import Checkpoint, CheckpointError
from model.checkpoints.weights import parameter_shapes
from model.config import TransformerConfig
from model.families.marian.native import stored_name
from model.transformer import Transformer

MODEL_FILE: Final = "model.npz"
DECODER_FILE: Final = "decoder.yml"

Weights = dict[str, NDArray[np.generic]]
_ACTIVATIONS = {"relu": "relu", "silu": "swish"}
_END, _UNKNOWN, _UNKNOWN_ID = "</s>", "<unk>", 1
# Marian requires every field of a Transformer, used or not.
UNUSED_FIELDS: Final[Mapping[str, object]] = {
    "bert-train-type-embeddings": True,
    "bert-type-vocab-size": 2,
    "dec-cell-base-depth": 2,
    "dec-cell-high-depth": 1,
    "dim-rnn": 1024,
    "enc-cell": "gru",
    "enc-cell-depth": 1,
    "enc-type": "bidirectional",
    "factors-combine": "sum",
    "factors-dim-emb": 0,
    "input-types": [],
    "layer-normalization": False,
    "lemma-dependency": "",
    "lemma-dim-emb": 0,
    "output-omit-bias": False,
    "right-left": False,
    "skip": False,
    "tied-embeddings-src": False,
    "transformer-aan-activation": "swish",
    "transformer-aan-depth": 2,
    "transformer-aan-nogate": False,
    "transformer-decoder-ffn-depth": 0,
    "transformer-depth-scaling": False,
    "transformer-dim-aan": 2048,
    "transformer-ffn-depth": 2,
    "transformer-guided-alignment-layer": "last",
    "transformer-no-affine": False,
    "transformer-no-bias": False,
    "transformer-no-projection": False,
    "transformer-output-omit-bias": False,
    "transformer-pool": False,
    "transformer-postprocess": "dan",
    "transformer-postprocess-emb": "d",
    "transformer-postprocess-top": "",
    "transformer-preprocess": "",
    "transformer-rnn-projection": False,
    "transformer-tied-layers": [],
    "transformer-train-position-embeddings": False,
    "type": "transformer",
    "ulr": False,
    "ulr-dim-emb": 0,
    "ulr-trainable-transformation": False,
    "version": "v1.12.0",
}


def write_marian_npz(checkpoint: Checkpoint, folder: Path, report: Callable[[str], None] = lambda _: None) -> None:
    """Write a checkpoint into an empty or missing folder. `report` receives what Marian computes differently.

    Raises `CheckpointError` with every property of the model that the format cannot represent.
    """
    config = checkpoint.config
    problems = _problems(checkpoint)
    if problems:
        raise CheckpointError("Marian's format cannot represent the model: " + "; ".join(problems))
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise CheckpointError(f"{folder} must be an empty or missing folder")
    if config.sinusoid_layout == "halves":
        report("Marian computes other sinusoids than the checkpoint's library: some translations will differ")
    allows_unknown = _UNKNOWN_ID not in config.suppressed_token_ids
    extra = set(config.suppressed_token_ids) - {config.pad_token_id, _UNKNOWN_ID}
    if extra:
        report(f"Marian generates tokens that the checkpoint suppresses: {sorted(extra)}")
    folder.mkdir(parents=True, exist_ok=True)
    vocabularies = _vocabularies(checkpoint)
    names = ["vocab.yml", "vocab.yml"] if vocabularies[0] == vocabularies[1] else ["source.yml", "target.yml"]
    for name, vocabulary in zip(names, vocabularies, strict=True):
        lines = (f"{json.dumps(piece, ensure_ascii=False)}: {index}\n" for index, piece in enumerate(vocabulary))
        (folder / name).write_text("".join(lines), "utf-8")
    for name, path in checkpoint.tokenizer.files.items():
        if name.endswith(".spm"):
            (folder / name).write_bytes(path.read_bytes())
    _write_decoder(folder, names, allows_unknown=allows_unknown)
    languages = checkpoint.languages
    if languages.source and languages.target:
        _write_languages(folder, languages.source[0], languages.target[0])
    _write_model(folder, config, checkpoint.weights, (len(vocabularies[0]), len(vocabularies[1])))


def write_student(model: Transformer, folder: Path, source_language: str, target_language: str) -> None:
    """Write model.npz, decoder.yml and the languages into a folder that has the vocabulary, vocab.json.

    Raises ValueError if the format cannot represent the model, OSError if a file cannot be written.
    """
    config = model.config
    require_marian_npz(config)
    weights = {name: parameter.detach().cpu() for name, parameter in model.named_parameters()}
    _write_decoder(folder, ["vocab.json", "vocab.json"], allows_unknown=True)
    _write_languages(folder, source_language, target_language)
    _write_model(folder, config, weights, (config.pad_token_id, config.pad_token_id))


def _write_languages(folder: Path, source: str, target: str) -> None:
    metadata = {"sourceLanguage": source, "targetLanguage": target}
    (folder / "metadata.json").write_text(json.dumps(metadata) + "\n", "utf-8")


def _write_decoder(folder: Path, vocabularies: list[str], *, allows_unknown: bool) -> None:
    settings = {
        "relative-paths": True,
        "models": [MODEL_FILE],
        "vocabs": vocabularies,
        "allow-unk": allows_unknown,  # other libraries generate this token, too
        "beam-size": 4,
        "normalize": 1,
    }
    (folder / DECODER_FILE).write_text(json.dumps(settings) + "\n", "utf-8")


def _write_model(
    folder: Path, config: TransformerConfig, tensors: Mapping[str, Tensor], sizes: tuple[int, int]
) -> None:
    weights = _renamed(config, tensors)
    description = json.dumps(_description(config, *sizes))  # JSON is YAML
    weights["special:model.yml"] = np.frombuffer(description.encode() + b"\0", np.int8)
    with replacing(folder / MODEL_FILE) as partial, partial.open("wb") as stream:
        np.savez(stream, allow_pickle=False, **weights)


def require_marian_npz(config: TransformerConfig) -> None:
    """Raise `CheckpointError` with every property of a model that the format cannot represent."""
    if problems := _config_problems(config):
        raise CheckpointError("Marian's format cannot represent the model: " + "; ".join(problems))


def _config_problems(config: TransformerConfig) -> list[str]:
    required: dict[str, tuple[object, ...]] = {
        "norm_placement": ("post",),
        "norm": ("layer",),
        "final_norm": (False,),
        "embedding_norm": (False,),
        "relative_buckets": (0,),
        "gated": (False,),
        "biases": (True,),
        "attention_scale": (None,),
        "output_scale": (1.0,),
        "head_dim": (None,),
        "positions": ("sinusoidal",),
        "sinusoid_layout": ("halves", "halves_inclusive"),
        "position_offset": (0,),
        "scale_embedding": (True,),
        "tie_output": (True,),
        "forced_first_token_id": (None,),
        "eos_token_id": (0,),
        "activation": tuple(_ACTIVATIONS),
        "layer_norm_epsilon": (1e-5, 1e-6),
        "decoder_num_heads": (None, config.num_heads),
    }
    problems = [
        f"`{name}` must be {' or '.join(map(repr, allowed))}. Given: {getattr(config, name)!r}"
        for name, allowed in required.items()
        if getattr(config, name) not in allowed
    ]
    last = config.decoder_shape.vocab_size - 1
    if config.decoder_start_token_id != config.pad_token_id or config.pad_token_id != last:
        problems.append(f"`decoder_start_token_id` and `pad_token_id` must be the last token {last}")
    return problems


def _problems(checkpoint: Checkpoint) -> list[str]:
    config = checkpoint.config
    problems = _config_problems(config)
    last = config.decoder_shape.vocab_size - 1
    tables = [checkpoint.weights[name] for name in _table_names(config)]
    if config.pad_token_id == last and any(bool(table[last].any()) for table in tables[-1:]):
        problems.append("the embedding of `decoder_start_token_id` must be zeros")
    if checkpoint.tokenizer.kind not in ("marian", "sentencepiece"):
        problems.append(f"the tokenizer must consist of SentencePiece models. Given: {checkpoint.tokenizer.kind}")
    return problems


def _table_names(config: TransformerConfig) -> list[str]:
    return ["encoder.embedding.weight", *([] if config.tie_embeddings else ["decoder.embedding.weight"])]


def _vocabularies(checkpoint: Checkpoint) -> list[list[str]]:
    """Return the tokens of source and target in the order of their ids, without padding."""
    tokenizer, config = checkpoint.tokenizer, checkpoint.config
    contents = []
    for name in ("vocab.json", "target_vocab.json"):
        if name in tokenizer.files:
            contents.append(tokenizer.files[name].read_bytes())
        elif name in tokenizer.converted:
            contents.append(tokenizer.converted[name])
    vocabularies = []
    for content in (contents * 2)[:2]:
        numbers = {int(number): piece for piece, number in json.loads(content).items()}
        pieces = [numbers.get(index, f"<unused_{index}>") for index in range(config.pad_token_id)]
        if pieces[:2] != [_END, _UNKNOWN]:
            raise CheckpointError(f"the vocabulary must begin with {_END} and {_UNKNOWN}. Given: {pieces[:2]}")
        vocabularies.append(pieces)
    return vocabularies


def _description(config: TransformerConfig, source_size: int, target_size: int) -> dict[str, object]:
    encoder, decoder = config.encoder_shape, config.decoder_shape
    same_width = encoder.feed_forward_width == decoder.feed_forward_width
    return {
        **UNUSED_FIELDS,
        "dec-cell": "ssru" if config.has_recurrent_decoder else "gru",
        "transformer-decoder-autoreg": "rnn" if config.has_recurrent_decoder else "self-attention",
        "dim-vocabs": [source_size, target_size],
        "dim-emb": config.d_model,
        "enc-depth": encoder.num_layers,
        "dec-depth": decoder.num_layers,
        "tied-embeddings": not config.tie_embeddings,
        "tied-embeddings-all": config.tie_embeddings,
        "transformer-heads": encoder.num_heads,
        "transformer-dim-ffn": encoder.feed_forward_width,
        "transformer-decoder-dim-ffn": 0 if same_width else decoder.feed_forward_width,
        "transformer-ffn-activation": _ACTIVATIONS[config.activation],
    }


def _renamed(config: TransformerConfig, tensors: Mapping[str, Tensor]) -> Weights:
    weights: Weights = {}
    num_tokens = config.pad_token_id  # the last token, which Marian does not have
    for parameter in parameter_shapes(config):
        values: NDArray[np.float32] = tensors[parameter].to(torch.float32).numpy()
        name = stored_name(parameter, one_table=config.tie_embeddings, is_pre=config.norm_placement == "pre")
        if parameter.endswith("embedding.weight") or parameter == "output_bias":
            values = values[:num_tokens]
        elif values.ndim == 2:
            values = values.T
        weights[name] = np.ascontiguousarray(values[None] if values.ndim == 1 else values)
    if not config.output_bias:
        weights[stored_name("output_bias", one_table=True, is_pre=False)] = np.zeros((1, num_tokens), np.float32)
    return weights
