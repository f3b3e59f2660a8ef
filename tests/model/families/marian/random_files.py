"""Random models in Marian's own format, for comparisons with Marian itself and with engines of its students."""

import json
import random
import re
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import sentencepiece
from numpy.typing import NDArray

from model.families.marian.npz_writing import UNUSED_FIELDS

Arrays = dict[str, NDArray[np.float32]]

WORDS = (
    "the",
    "a",
    "my",
    "dog",
    "cat",
    "house",
    "river",
    "reads",
    "sees",
    "builds",
    "old",
    "new",
    "with",
    "under",
    "long",
)
_END_BIAS = 4.0  # so that answers end


@dataclass(frozen=True, slots=True)
class MarianShape:
    """Choices of a model. `tied` is all, source, output or none; texts of the vocabulary consist of `words`."""

    is_recurrent: bool = True
    d_model: int = 32
    num_heads: int = 4
    feed_forward_width: int = 48
    decoder_feed_forward_width: int = 0
    num_encoder_layers: int = 2
    num_decoder_layers: int = 2
    activation: str = "relu"
    is_pre_norm: bool = False
    tied: str = "all"
    has_output_bias: bool = True
    has_two_vocabularies: bool = False
    embedding_steps: str = "d"
    num_pieces: int = 60
    words: tuple[str, ...] = WORDS

    @property
    def description(self) -> dict[str, object]:
        """The description of the model without the sizes of its vocabularies."""
        return {
            **UNUSED_FIELDS,
            "dim-emb": self.d_model,
            "enc-depth": self.num_encoder_layers,
            "dec-depth": self.num_decoder_layers,
            "dec-cell": "ssru" if self.is_recurrent else "gru",
            "output-omit-bias": not self.has_output_bias,
            "tied-embeddings": self.tied == "output",
            "tied-embeddings-all": self.tied == "all",
            "tied-embeddings-src": self.tied == "source",
            "transformer-decoder-autoreg": "rnn" if self.is_recurrent else "self-attention",
            "transformer-decoder-dim-ffn": self.decoder_feed_forward_width,
            "transformer-dim-ffn": self.feed_forward_width,
            "transformer-ffn-activation": self.activation,
            "transformer-heads": self.num_heads,
            "transformer-preprocess": "n" if self.is_pre_norm else "",
            "transformer-postprocess": "da" if self.is_pre_norm else "dan",
            "transformer-postprocess-emb": self.embedding_steps,
            "transformer-postprocess-top": "n" if self.is_pre_norm else "",
        }


def write_random_model(folder: Path, shape: MarianShape, seed: int = 1) -> Path:
    """Write model.npz and its vocabularies; the answers of the model end now and then."""
    folder.mkdir(parents=True, exist_ok=True)
    sizes = write_vocabularies(folder, shape)
    arrays = random_arrays(shape, sizes, np.random.default_rng(seed))
    description = json.dumps(shape.description | {"dim-vocabs": list(sizes)})  # JSON is YAML
    stored = arrays | {"special:model.yml": np.frombuffer(description.encode() + b"\0", np.int8)}
    np.savez(folder / "model.npz", allow_pickle=False, **stored)
    return folder


def write_vocabularies(folder: Path, shape: MarianShape) -> tuple[int, int]:
    """Write vocab.spm, or one SentencePiece model for each side, and return their sizes."""
    names = ("srcvocab.ende.spm", "trgvocab.ende.spm") if shape.has_two_vocabularies else ("vocab.ende.spm",)
    sizes = []
    for seed, name in enumerate(names):
        choose = random.Random(seed)
        sentences = [" ".join(choose.choices(shape.words, k=7)) + "." for _ in range(400)]
        with (folder / name).open("wb") as model:
            sentencepiece.SentencePieceTrainer.train(
                sentence_iterator=iter(sentences),
                model_writer=model,
                vocab_size=shape.num_pieces + 5 * seed,
                hard_vocab_limit=False,
                bos_id=-1,
                pad_id=-1,
                eos_id=0,
                unk_id=1,
                num_threads=1,
                minloglevel=2,
            )
        sizes.append(sentencepiece.SentencePieceProcessor(model_file=str(folder / name)).get_piece_size())
    return sizes[0], sizes[-1]


def random_arrays(shape: MarianShape, sizes: tuple[int, int], generator: np.random.Generator) -> Arrays:
    """Return weights by Marian's names."""
    arrays: Arrays = {}
    width = shape.d_model

    def add(name: str, *sizes: int, scale: float | None = None) -> None:
        scale = (3.0 / (sizes[0] + sizes[1])) ** 0.5 if scale is None else scale
        arrays[name] = generator.normal(0, scale, sizes).astype(np.float32)

    def add_norm(prefix: str, suffix: str = "") -> None:
        add(f"{prefix}_ln_scale{suffix}", 1, width, scale=0.2)
        arrays[f"{prefix}_ln_scale{suffix}"] += 1
        add(f"{prefix}_ln_bias{suffix}", 1, width, scale=0.2)

    suffix = "_pre" if shape.is_pre_norm else ""
    tables = (
        {"Wemb": sizes[0]}
        if shape.tied in ("all", "source")
        else dict(zip(("encoder_Wemb", "decoder_Wemb"), sizes, strict=True))
    )
    for name, rows in tables.items():
        add(name, rows, width, scale=width**-0.5)
    if shape.tied in ("source", "none"):
        add("decoder_ff_logit_out_W", width, sizes[1], scale=width**-0.5)
    if shape.has_output_bias:
        add("decoder_ff_logit_out_b", 1, sizes[1], scale=0.3)
        arrays["decoder_ff_logit_out_b"][0, 0] += _END_BIAS
    for stack, num_layers in (("encoder", shape.num_encoder_layers), ("decoder", shape.num_decoder_layers)):
        inner = shape.feed_forward_width
        if stack == "decoder":
            inner = shape.decoder_feed_forward_width or inner
        if "n" in shape.embedding_steps:
            add_norm(f"{stack}_emb", "_pre")
        if shape.is_pre_norm:
            add_norm(f"{stack}_top")
        for number in range(1, num_layers + 1):
            layer = f"{stack}_l{number}"
            attentions = ["self"] if stack == "encoder" else ["context"] if shape.is_recurrent else ["self", "context"]
            for attention in attentions:
                for letter in "qkvo":
                    add(f"{layer}_{attention}_W{letter}", width, width)
                    add(f"{layer}_{attention}_b{letter}", 1, width, scale=0.2)
                add_norm(f"{layer}_{attention}_Wo", suffix)
            if stack == "decoder" and shape.is_recurrent:
                for name in ("W", "Wf"):
                    add(f"{layer}_rnn_{name}", width, width)
                add(f"{layer}_rnn_bf", 1, width, scale=0.5)
                add_norm(f"{layer}_rnn" if shape.is_pre_norm else f"{layer}_rnn_ffn", suffix)
            add(f"{layer}_ffn_W1", width, inner)
            add(f"{layer}_ffn_b1", 1, inner, scale=0.2)
            add(f"{layer}_ffn_W2", inner, width)
            add(f"{layer}_ffn_b2", 1, width, scale=0.2)
            add_norm(f"{layer}_ffn_ffn", suffix)
    if not shape.has_output_bias and not shape.is_pre_norm:
        # The hidden states contain this bias, so the product is that much larger.
        bias = arrays[f"decoder_l{shape.num_decoder_layers}_ffn_ffn_ln_bias"][0]
        arrays["decoder_ff_logit_out_W"][:, 0] += _END_BIAS * bias / np.square(bias).sum()
    return arrays


def write_binary(
    path: Path, arrays: Arrays, description: str, *, is_int8: bool, alphas: Mapping[str, float] | None = None
) -> None:
    """Write Marian's binary format, with weights in intgemm8 for all processors if `is_int8`.

    `alphas` are multipliers of activations by the name of the weight that they meet.
    """
    records: list[tuple[str, int, tuple[int, ...], bytes]] = []
    for name, array in arrays.items():
        # The weights of products, and tables of embeddings, which are not transposed.
        is_table = "Wemb" in name
        if is_int8 and (is_table or re.search(r"_W.?$", name)):
            quantized, multiplier = intgemm8(array)
            stored = (quantized if is_table else quantized.T).tobytes() + struct.pack("<f", multiplier)
            records.append((name, 0x4101, array.shape, stored))
        else:
            records.append((name, 0x0404, array.shape, array.astype("<f4").tobytes()))
    for name, alpha in (alphas or {}).items():
        records.append((f"{name}_QuantMultA", 0x0404, (1, 1), struct.pack("<f", alpha)))
    text = description.encode() + b"\0"
    records.append(("special:model.yml", 0x0101, (len(text),), text))
    padded = [content + bytes(-len(content) % 256) for *_, content in records]
    head = struct.pack("<QQ", 1, len(records))
    for (name, kind, shape, _), content in zip(records, padded, strict=True):
        head += struct.pack("<QQQQ", len(name.encode()) + 1, kind, len(shape), len(content))
    head += b"".join(name.encode() + b"\0" for name, *_ in records)
    head += b"".join(struct.pack(f"<{len(shape)}i", *shape) for _, _, shape, _ in records)
    gap = -(len(head) + 8) % 256
    path.write_bytes(head + struct.pack("<Q", gap) + bytes(gap) + b"".join(padded))


def intgemm8(array: NDArray[np.float32]) -> tuple[NDArray[np.int8], float]:
    """Return a matrix as int8 and its multiplier: `quantized / multiplier` restores it."""
    multiplier = np.float32(127 / np.abs(array).max())
    return np.rint(array * multiplier).clip(-127, 127).astype(np.int8), float(multiplier)
