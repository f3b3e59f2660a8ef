"""Marian's Transformer in NumPy, written after marian-dev (src/models/transformer.h) and independent of ours."""

import numpy as np
from numpy.typing import NDArray

from tests.model.families.marian.random_files import Arrays, MarianShape

Matrix = NDArray[np.float64]


class NumpyMarian:
    """One sentence at a time, teacher-forced."""

    def __init__(self, arrays: Arrays, shape: MarianShape) -> None:
        self._arrays = {name: array.astype(np.float64) for name, array in arrays.items()}
        self._shape = shape

    def logits(self, source: list[int], target: list[int]) -> Matrix:
        """Logits [len(target) + 1, vocab] of the token after each beginning of `target`."""
        memory = self._stack("encoder", self._embed("encoder", source), None)
        width = self._shape.d_model
        # The decoder begins with zeros instead of a token.
        shifted = np.concatenate([np.zeros((1, width)), self._rows("decoder", target)])
        hidden = self._stack("decoder", self._placed("decoder", shifted), memory)
        output = (
            self._arrays["decoder_ff_logit_out_W"]
            if "decoder_ff_logit_out_W" in self._arrays
            else self._table("decoder").T
        )
        logits: Matrix = hidden @ output + self._arrays.get("decoder_ff_logit_out_b", 0.0)
        return logits

    def _table(self, stack: str) -> Matrix:
        return self._arrays["Wemb"] if "Wemb" in self._arrays else self._arrays[f"{stack}_Wemb"]

    def _rows(self, stack: str, tokens: list[int]) -> Matrix:
        rows: Matrix = self._table(stack)[tokens]
        return rows

    def _embed(self, stack: str, tokens: list[int]) -> Matrix:
        return self._placed(stack, self._rows(stack, tokens))

    def _placed(self, stack: str, vectors: Matrix) -> Matrix:
        length, width = vectors.shape
        timescales = width // 2
        rates = np.exp(-np.arange(timescales) * np.log(10000.0) / (timescales - 1))
        angles = np.arange(length)[:, None] * rates
        placed = vectors * width**0.5 + np.concatenate([np.sin(angles), np.cos(angles)], axis=1)
        if "n" in self._shape.embedding_steps:
            return self._norm(placed, f"{stack}_emb", "_pre")
        return np.asarray(placed)

    def _norm(self, vectors: Matrix, prefix: str, suffix: str = "") -> Matrix:
        centred = vectors - vectors.mean(axis=1, keepdims=True)
        deviation = np.sqrt((centred**2).mean(axis=1, keepdims=True) + 1e-6)
        scale, bias = (self._arrays[f"{prefix}_ln_{kind}{suffix}"] for kind in ("scale", "bias"))
        normalised: Matrix = centred / deviation * scale + bias
        return normalised

    def _before(self, vectors: Matrix, prefix: str) -> Matrix:
        return self._norm(vectors, prefix, "_pre") if self._shape.is_pre_norm else vectors

    def _after(self, output: Matrix, vectors: Matrix, prefix: str) -> Matrix:
        return output + vectors if self._shape.is_pre_norm else self._norm(output + vectors, prefix)

    def _affine(self, vectors: Matrix, layer: str, letter: str) -> Matrix:
        product: Matrix = vectors @ self._arrays[f"{layer}_W{letter}"] + self._arrays[f"{layer}_b{letter}"]
        return product

    def _stack(self, stack: str, hidden: Matrix, memory: Matrix | None) -> Matrix:
        depth = self._shape.num_encoder_layers if stack == "encoder" else self._shape.num_decoder_layers
        for number in range(1, depth + 1):
            layer = f"{stack}_l{number}"
            if stack == "decoder" and self._shape.is_recurrent:
                hidden = self._recurrence(hidden, f"{layer}_rnn")
            else:
                hidden = self._attention(hidden, None, f"{layer}_self", is_causal=stack == "decoder")
            if memory is not None:
                hidden = self._attention(hidden, memory, f"{layer}_context", is_causal=False)
            hidden = self._feed_forward(hidden, f"{layer}_ffn")
        return self._norm(hidden, f"{stack}_top") if self._shape.is_pre_norm else hidden

    def _attention(self, hidden: Matrix, memory: Matrix | None, layer: str, *, is_causal: bool) -> Matrix:
        query = self._before(hidden, f"{layer}_Wo")
        read = query if memory is None else memory
        num_heads = self._shape.num_heads
        queries, keys, values = (
            self._affine(vectors, layer, letter).reshape(len(vectors), num_heads, -1).transpose(1, 0, 2)
            for vectors, letter in ((query, "q"), (read, "k"), (read, "v"))
        )
        scores = queries @ keys.transpose(0, 2, 1) / np.sqrt(queries.shape[-1])
        if is_causal:
            scores = np.where(np.tri(len(query), dtype=bool), scores, -np.inf)
        weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
        weights /= weights.sum(axis=-1, keepdims=True)
        joined = (weights @ values).transpose(1, 0, 2).reshape(len(query), -1)
        return self._after(self._affine(joined, layer, "o"), hidden, f"{layer}_Wo")

    def _recurrence(self, hidden: Matrix, layer: str) -> Matrix:
        read = self._before(hidden, layer)
        gates = 1 / (1 + np.exp(-self._affine(read, layer, "f")))
        inputs = read @ self._arrays[f"{layer}_W"]
        state = np.zeros(self._shape.d_model)
        outputs = []
        for gate, entry in zip(gates, inputs, strict=True):
            state = gate * state + (1 - gate) * entry
            outputs.append(np.maximum(state, 0))
        return self._after(np.array(outputs), hidden, f"{layer}_ffn")

    def _feed_forward(self, hidden: Matrix, layer: str) -> Matrix:
        inner = self._affine(self._before(hidden, f"{layer}_ffn"), layer, "1")
        inner = np.maximum(inner, 0) if self._shape.activation == "relu" else inner / (1 + np.exp(-inner))
        return self._after(self._affine(inner, layer, "2"), hidden, f"{layer}_ffn")
