"""The graphs of a bundle run for a comparison: those of both layouts give the same outputs by the same names."""

from collections.abc import Mapping
from typing import Protocol

import numpy as np
import onnxruntime as ort
from numpy.typing import NDArray

from export import bundle as names
from export.bundle import Bundle, BundleError

Arrays = dict[str, NDArray[np.generic]]


class VerificationError(BundleError):
    """A graph whose outputs differ from the model's."""


class Graphs(Protocol):
    """A bundle's graphs, arrays by tensor name in and out."""

    def encode(self, tokens: NDArray[np.int32], lengths: NDArray[np.int32]) -> NDArray[np.number]:
        """Cross-attention keys and values."""
        ...

    def step(self, inputs: Mapping[str, NDArray[np.generic]]) -> Arrays:
        """One decoder step, inputs and outputs named as in layout `step`."""
        ...


def open_graphs(bundle: Bundle, options: ort.SessionOptions) -> Graphs:
    """The graphs, to be run on the CPU."""
    return (_Parts if bundle.config.layout == "parts" else _OneStep)(bundle, options)


class _OneStep:
    def __init__(self, bundle: Bundle, options: ort.SessionOptions) -> None:
        self._encoder, self._decoder = (
            ort.InferenceSession(bundle.file(file), options, providers=["CPUExecutionProvider"])
            for file in (names.ENCODER_FILE, names.DECODER_FILE)
        )
        self._outputs = names.decoder_output_names(bundle.config.shapes.num_decoder_layers)

    def encode(self, tokens: NDArray[np.int32], lengths: NDArray[np.int32]) -> NDArray[np.number]:
        cross: NDArray[np.number]
        (cross,) = self._encoder.run(None, {names.SOURCE_TOKENS: tokens, names.SOURCE_LENGTHS: lengths})
        return cross

    def step(self, inputs: Mapping[str, NDArray[np.generic]]) -> Arrays:
        return dict(zip(self._outputs, self._decoder.run(self._outputs, dict(inputs)), strict=True))


class _Parts:
    def __init__(self, bundle: Bundle, options: ort.SessionOptions) -> None:
        self._config = bundle.config
        self._encoder, self._decoder, self._choose, self._rank = (
            ort.InferenceSession(bundle.file(file), options, providers=["CPUExecutionProvider"])
            for file in (names.ENCODER_FILE, names.DECODER_FILE, names.CHOOSE_FILE, names.RANK_FILE)
        )

    def encode(self, tokens: NDArray[np.int32], lengths: NDArray[np.int32]) -> NDArray[np.number]:
        width = np.array(tokens.shape[1], np.int32)
        inputs = {names.SOURCE_TOKENS: tokens, names.SOURCE_LENGTHS: lengths, names.SOURCE_WIDTH: width}
        cross: NDArray[np.number]
        (cross,) = self._encoder.run(None, inputs)
        return cross

    def step(self, inputs: Mapping[str, NDArray[np.generic]]) -> Arrays:
        """All tokens are candidates here; those that `rank` and `choose` find are held against them."""
        given = {name: inputs[name] for name in self._config.decoder_inputs}
        found = dict(zip(self._config.decoder_outputs, self._decoder.run(None, given), strict=True))
        step_logits = found[names.STEP_LOGITS]
        logits = step_logits[:, : self._config.shapes.target_vocab_size].astype(np.float32)
        suppressed = {name: found[name] for name in (names.SUPPRESSED_LOGITS,) if name in found}
        ranked_names = (names.CANDIDATE_TOKENS, names.CANDIDATE_LOGITS, names.LOG_NORMALIZER)
        ranked = dict(
            zip(ranked_names, self._rank.run(ranked_names, {names.STEP_LOGITS: step_logits} | suppressed), strict=True)
        )
        chosen, _ = self._choose.run(
            (names.NEXT_TOKENS, names.NEXT_LENGTHS),
            {names.STEP_LOGITS: step_logits, names.PAST_LENGTHS: inputs[names.PAST_LENGTHS]},
        )
        best_first = np.argsort(-logits, axis=1, kind="stable")[:, : int(inputs[names.NUM_CANDIDATES][0])]
        sorted_logits = np.take_along_axis(logits, best_first, axis=1)
        tokens, found_logits = ranked[names.CANDIDATE_TOKENS], ranked[names.CANDIDATE_LOGITS]
        # Tokens of equal logits may come in any order.
        if not (
            np.array_equal(found_logits, sorted_logits[:, : found_logits.shape[1]])
            and np.array_equal(np.take_along_axis(logits, tokens, axis=1), found_logits)
            and np.array_equal(np.take_along_axis(logits, chosen[:, None], axis=1), sorted_logits[:, :1])
        ):
            raise VerificationError(f"{self._config.name}: {names.RANK_FILE} or {names.CHOOSE_FILE} names wrong tokens")
        return found | {
            names.CANDIDATE_TOKENS: best_first,
            names.CANDIDATE_LOGITS: sorted_logits,
            names.LOG_NORMALIZER: ranked[names.LOG_NORMALIZER],
            names.LOGITS: logits[inputs[names.LOGIT_ROWS]],
        }
