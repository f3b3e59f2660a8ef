"""Runs of a bundle's graphs for a comparison, with the same outputs and names for both layouts."""

from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np
import onnxruntime as ort
from numpy.typing import NDArray

from bundle import tensors as names
from bundle.loading import Bundle
from bundle.manifest import BundleError
from kernels.layout import from_native, to_native

Arrays = dict[str, NDArray[Any]]
"""Results of ONNX Runtime by name; the graphs define their types."""

_RANKED = (names.STEP_LOGITS, names.CANDIDATE_TOKENS, names.SUPPRESSED_LOGITS)


class VerificationError(BundleError):
    """An exported graph whose outputs differ from the model's."""


class Graphs(Protocol):
    """Runs of a bundle's graphs with arrays by tensor name."""

    def encode(self, tokens: NDArray[np.int32], lengths: NDArray[np.int32]) -> Arrays:
        """Return the outputs of the encoder."""
        ...

    def step(self, inputs: Mapping[str, NDArray[Any]]) -> Arrays:
        """Run one decoder step, with inputs and outputs named as in layout `step`."""
        ...


def open_graphs(bundle: Bundle, options: ort.SessionOptions, *, is_native: bool) -> Graphs:
    """Open the graphs on the CPU. `is_native`: the native operators are registered."""
    if bundle.config.layout == "parts":
        return _Parts(bundle, options)
    return _OneStep(bundle, options, is_native=is_native)


class _OneStep:
    def __init__(self, bundle: Bundle, options: ort.SessionOptions, *, is_native: bool) -> None:
        self._is_native = is_native
        files = names.GRAPH_FILES if bundle.config.has_decoder else (names.ENCODER_FILE,)
        self._encoder, *self._decoder = (
            ort.InferenceSession(bundle.file(file), options, providers=["CPUExecutionProvider"]) for file in files
        )
        self._encoder_outputs = bundle.config.encoder_outputs
        shapes = bundle.config.shapes
        self._outputs = names.decoder_output_names(shapes.num_decoder_layers, recurrent=shapes.is_recurrent)
        self._has_shortlist = bundle.config.has_shortlist

    def encode(self, tokens: NDArray[np.int32], lengths: NDArray[np.int32]) -> Arrays:
        inputs = {names.SOURCE_TOKENS: tokens, names.SOURCE_LENGTHS: lengths}
        return dict(zip(self._encoder_outputs, self._encoder.run(self._encoder_outputs, inputs), strict=True))

    def step(self, inputs: Mapping[str, NDArray[Any]]) -> Arrays:
        (decoder,) = self._decoder
        given = dict(inputs)
        if self._has_shortlist:  # all tokens of every row are compared
            every_row = np.full(len(inputs[names.PAST_LENGTHS]), -1, np.int32)
            unused = np.zeros((1, 1), np.int32), np.ones(1, np.int32)
            given |= dict(zip(names.LIST_INPUTS, (*unused, every_row), strict=True))
        if not self._is_native:
            return dict(zip(self._outputs, decoder.run(self._outputs, given), strict=True))
        given = {name: to_native(array) if _is_int8_cache(array) else array for name, array in given.items()}
        found = dict(zip(self._outputs, decoder.run(self._outputs, given), strict=True))
        return {name: from_native(array) if _is_int8_cache(array) else array for name, array in found.items()}


def _is_int8_cache(array: NDArray[Any]) -> bool:
    """Whether an input or output of a decoder contains keys or values that the native operators read."""
    return bool(array.dtype == np.int8)


class _Parts:
    def __init__(self, bundle: Bundle, options: ort.SessionOptions) -> None:
        self._config = bundle.config
        self._encoder, self._decoder, self._choose, self._rank = (
            ort.InferenceSession(bundle.file(file), options, providers=["CPUExecutionProvider"])
            for file in (names.ENCODER_FILE, names.DECODER_FILE, names.CHOOSE_FILE, names.RANK_FILE)
        )

    def encode(self, tokens: NDArray[np.int32], lengths: NDArray[np.int32]) -> Arrays:
        width = np.array(tokens.shape[1], np.int32)
        inputs = {names.SOURCE_TOKENS: tokens, names.SOURCE_LENGTHS: lengths, names.SOURCE_WIDTH: width}
        outputs = self._config.encoder_outputs
        return dict(zip(outputs, self._encoder.run(outputs, inputs), strict=True))

    def step(self, inputs: Mapping[str, NDArray[Any]]) -> Arrays:
        """Rank all tokens, and compare the candidates of the graphs with them."""
        given = {name: inputs[name] for name in self._config.decoder_inputs}
        outputs = self._config.decoder_outputs
        found: Arrays = dict(zip(outputs, self._decoder.run(outputs, given), strict=True))
        tokens = found[names.CANDIDATE_TOKENS]
        ranked = {name: found[name] for name in _RANKED if name in found}
        (normalizer,) = self._rank.run(None, ranked)
        chosen, _ = self._choose.run(
            (names.NEXT_TOKENS, names.NEXT_LENGTHS),
            {names.CANDIDATE_TOKENS: tokens, names.PAST_LENGTHS: inputs[names.PAST_LENGTHS]},
        )
        logits = found[names.STEP_LOGITS][:, : self._config.shapes.target_vocab_size].astype(np.float32)
        best_first = np.argsort(-logits, axis=1, kind="stable")[:, : int(inputs[names.NUM_CANDIDATES][0])]
        sorted_logits = np.take_along_axis(logits, best_first, axis=1)
        # Both are rounded, one more than the other; tokens with almost equal logits can be in any order.
        rounding = 2e-3 * np.abs(sorted_logits).max()
        if not (
            np.allclose(found[names.CANDIDATE_LOGITS], sorted_logits[:, : tokens.shape[1]], 0, rounding)
            and np.allclose(found[names.CANDIDATE_LOGITS], np.take_along_axis(logits, tokens, axis=1), 0, rounding)
            and np.array_equal(chosen, tokens[:, 0])
        ):
            raise VerificationError(f"{self._config.name}: the decoder or {names.CHOOSE_FILE} returns wrong tokens")
        return found | {
            names.CANDIDATE_TOKENS: best_first,
            names.CANDIDATE_LOGITS: sorted_logits,
            names.LOG_NORMALIZER: normalizer,
            names.LOGITS: logits[inputs[names.LOGIT_ROWS]],
        }
