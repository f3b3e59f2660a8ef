"""Conversion of a Hugging Face Marian checkpoint into Marian's own format: weights, description, vocabulary.

    python -m benchmarks.engines.marian_format CHECKPOINT FOLDER

Marian finds weights by name (encoder_l1_self_Wq and so on), multiplies from the left, and reads their description from
a YAML text among the weights. It has no padding token: the last row, which is Hugging Face's, is left out.
"""

import json
from pathlib import Path

import numpy as np
import typer
from numpy.typing import NDArray
from safetensors.numpy import load_file

Weights = dict[str, NDArray[np.generic]]

ATTENTIONS = {"self_attn": "self", "encoder_attn": "context"}
PROJECTIONS = {"q_proj": "q", "k_proj": "k", "v_proj": "v", "out_proj": "o"}

# Fields that Marian requires for every transformer, used or not.
DESCRIPTION = """\
type: transformer
version: v1.12.0
dim-vocabs: [{vocab_size}, {vocab_size}]
dim-emb: {d_model}
dim-rnn: 1024
enc-depth: {encoder_layers}
dec-depth: {decoder_layers}
enc-type: bidirectional
enc-cell: gru
enc-cell-depth: 1
dec-cell: gru
dec-cell-base-depth: 2
dec-cell-high-depth: 1
input-types: []
layer-normalization: false
lemma-dim-emb: 0
lemma-dependency: ""
factors-combine: sum
factors-dim-emb: 0
output-omit-bias: false
right-left: false
skip: false
tied-embeddings: false
tied-embeddings-all: true
tied-embeddings-src: false
transformer-aan-activation: swish
transformer-aan-depth: 2
transformer-aan-nogate: false
transformer-decoder-autoreg: self-attention
transformer-decoder-dim-ffn: 0
transformer-decoder-ffn-depth: 0
transformer-depth-scaling: false
transformer-dim-aan: 2048
transformer-dim-ffn: {encoder_ffn_dim}
transformer-ffn-activation: {activation_function}
transformer-ffn-depth: 2
transformer-guided-alignment-layer: last
transformer-heads: {encoder_attention_heads}
transformer-no-affine: false
transformer-no-bias: false
transformer-no-projection: false
transformer-output-omit-bias: false
transformer-pool: false
transformer-postprocess: dan
transformer-postprocess-emb: d
transformer-postprocess-top: ""
transformer-preprocess: ""
transformer-rnn-projection: false
transformer-tied-layers: []
transformer-train-position-embeddings: false
ulr: false
ulr-dim-emb: 0
ulr-trainable-transformation: false
bert-train-type-embedding: true
bert-type-vocab-size: 2
"""


def main(checkpoint: Path, folder: Path) -> None:
    """Write model.npz and vocab.yml."""
    config = json.loads((checkpoint / "config.json").read_text("utf-8"))
    vocabulary = json.loads((checkpoint / "vocab.json").read_text("utf-8"))
    if not config["share_encoder_decoder_embeddings"] or config["pad_token_id"] != config["vocab_size"] - 1:
        raise typer.BadParameter("the checkpoint must have one vocabulary for both sides with padding at its end")
    folder.mkdir()
    pieces = sorted(vocabulary.items(), key=lambda entry: int(entry[1]))[:-1]
    lines = [f"{json.dumps(piece, ensure_ascii=False)}: {index}\n" for piece, index in pieces]
    (folder / "vocab.yml").write_text("".join(lines), "utf-8")
    weights = _renamed(load_file(checkpoint / "model.safetensors"), config["encoder_layers"], config["decoder_layers"])
    description = DESCRIPTION.format_map(config | {"vocab_size": len(pieces)})
    weights["special:model.yml"] = np.frombuffer(description.encode() + b"\0", np.int8)
    np.savez(folder / "model.npz", allow_pickle=False, **weights)


def _renamed(found: Weights, encoder_layers: int, decoder_layers: int) -> Weights:
    shared = found.get("model.shared.weight", found.get("model.encoder.embed_tokens.weight"))
    assert shared is not None, "a Marian checkpoint has embeddings"
    weights: Weights = {"Wemb": shared[:-1], "decoder_ff_logit_out_b": found["final_logits_bias"][:, :-1]}
    for side, num_layers in (("encoder", encoder_layers), ("decoder", decoder_layers)):
        for layer in range(num_layers):
            theirs, ours = f"model.{side}.layers.{layer}.", f"{side}_l{layer + 1}_"
            for attention, name in ATTENTIONS.items():
                if f"{theirs}{attention}.q_proj.weight" not in found:
                    continue  # an encoder layer has one attention only
                for projection, letter in PROJECTIONS.items():
                    weights[f"{ours}{name}_W{letter}"] = found[f"{theirs}{attention}.{projection}.weight"].T.copy()
                    weights[f"{ours}{name}_b{letter}"] = found[f"{theirs}{attention}.{projection}.bias"][None]
                _rename_norm(weights, f"{ours}{name}_Wo", found, f"{theirs}{attention}_layer_norm")
            for number in (1, 2):
                weights[f"{ours}ffn_W{number}"] = found[f"{theirs}fc{number}.weight"].T.copy()
                weights[f"{ours}ffn_b{number}"] = found[f"{theirs}fc{number}.bias"][None]
            _rename_norm(weights, f"{ours}ffn_ffn", found, f"{theirs}final_layer_norm")
    return weights


def _rename_norm(weights: Weights, ours: str, found: Weights, theirs: str) -> None:
    weights[f"{ours}_ln_scale"] = found[f"{theirs}.weight"][None]
    weights[f"{ours}_ln_bias"] = found[f"{theirs}.bias"][None]


if __name__ == "__main__":
    typer.run(main)
