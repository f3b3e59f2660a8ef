"""Runs the two graphs, as PyTorch modules or as exported, the way a server does: ragged rows over caches of NaN."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np
import onnxruntime as ort
import torch
from numpy.typing import NDArray
from torch import Tensor

from bundle import tensors as names
from bundle.manifest import Shapes
from export.graphs.layers import describe_shapes
from export.graphs.step_layout import DecoderStepGraph, EncoderGraph, LayerCaches
from kernels.layout import from_native, to_native
from kernels.onnx_registration import ONNX_RUNTIME, register, running_kernels
from model.transformer import Transformer

Arrays = dict[str, NDArray[np.generic]]


class Graphs(Protocol):
    """The two graphs, arrays by tensor name in and out."""

    def encode(self, inputs: Arrays) -> NDArray[np.float32]: ...

    def step(self, inputs: Arrays) -> Arrays: ...


class OnnxGraphs:
    """Exported graphs, loaded as the server loads them; or without the native operators, where they were not built."""

    def __init__(self, encoder: Path, decoder: Path, *, is_native: bool = True) -> None:
        options = ort.SessionOptions()
        options.intra_op_num_threads = 1
        if is_native:
            register(options)
        self._is_native = is_native and running_kernels() != ONNX_RUNTIME
        self._encoder, self._decoder = (
            ort.InferenceSession(
                path, options, providers=["CPUExecutionProvider"], disabled_optimizers=["SkipLayerNormFusion"]
            )
            for path in (encoder, decoder)
        )
        self._output_names = [output.name for output in self._decoder.get_outputs()]

    def encode(self, inputs: Arrays) -> NDArray[np.float32]:
        cross: NDArray[np.float32] = self._encoder.run([names.CROSS_KEYS_VALUES], inputs)[0]
        return cross

    def step(self, inputs: Arrays) -> Arrays:
        if not self._is_native:
            return dict(zip(self._output_names, self._decoder.run(None, inputs), strict=True))
        # The library reads int8 keys and values in an order of its own.
        given = {name: to_native(array) if array.dtype == np.int8 else array for name, array in inputs.items()}
        found = dict(zip(self._output_names, self._decoder.run(None, given), strict=True))
        return {name: from_native(array) if array.dtype == np.int8 else array for name, array in found.items()}


class EagerGraphs:
    """The modules that graphs are exported from."""

    def __init__(self, transformer: Transformer) -> None:
        self._encoder, self._decoder = EncoderGraph(transformer).eval(), DecoderStepGraph(transformer).eval()
        self._num_layers = transformer.config.num_decoder_layers
        self._recurrent = transformer.config.has_recurrent_decoder

    @torch.no_grad()
    def encode(self, inputs: Arrays) -> NDArray[np.float32]:
        cross: Tensor = self._encoder(*(torch.from_numpy(array) for array in inputs.values()))
        return cross.numpy()

    @torch.no_grad()
    def step(self, inputs: Arrays) -> Arrays:
        input_names = names.decoder_input_names(self._num_layers, recurrent=self._recurrent)
        ordered = [torch.from_numpy(inputs[name]) for name in input_names if name != names.WITH_SCORES]
        per_layer = 5 if self._recurrent else 6
        caches: list[LayerCaches] = [tuple(ordered[i : i + per_layer]) for i in range(5, len(ordered), per_layer)]
        outputs = self._decoder(*ordered[:5], caches)
        return {
            name: output.numpy()
            for name, output in zip(
                names.decoder_output_names(self._num_layers, recurrent=self._recurrent), outputs, strict=True
            )
        }


@dataclass(frozen=True, slots=True)
class Step:
    """Results of one decoder step, for every row."""

    tokens: NDArray[np.int64]
    logits: NDArray[np.float32]
    log_normalizer: NDArray[np.float32]
    logits_of_rows: NDArray[np.float32]  # [logit_rows, vocab]
    cross_queries: list[NDArray[np.float32]]  # of every layer


class Rows:
    """Rows of a decode batch; `past_lengths` is the caller's to raise."""

    def __init__(self, graphs: Graphs, shapes: Shapes, sources: Sequence[Sequence[int]]) -> None:
        self._graphs = graphs
        self._lengths = np.array([len(source) for source in sources], np.int32)
        num_rows = len(sources)
        # What stands behind a row's end is any token, and must not matter.
        tokens = np.random.default_rng(0).integers(0, shapes.vocab_size, (num_rows, int(self._lengths.max())), np.int32)
        for row, source in enumerate(sources):
            tokens[row, : len(source)] = source
        self.cross = graphs.encode({names.SOURCE_TOKENS: tokens, names.SOURCE_LENGTHS: self._lengths})
        self.past_lengths = np.zeros(num_rows, np.int32)
        self._num_layers = shapes.num_decoder_layers
        self._caches: Arrays = {}
        dtype, unwritten = self.cross.dtype, 127 if self.cross.dtype == np.int8 else np.nan
        for layer in range(shapes.num_decoder_layers):
            *own, cross_keys, cross_values = names.cache_names(layer, recurrent=shapes.is_recurrent)
            target = (num_rows, shapes.num_heads, shapes.max_target_tokens, shapes.head_dim)
            source_shape = (num_rows, shapes.num_heads, shapes.max_source_tokens, shapes.head_dim)
            for name in own:
                self._caches[name] = (
                    np.full((num_rows, 1, shapes.state_width), np.nan, np.float32)
                    if shapes.is_recurrent
                    else np.full(target, unwritten, dtype)
                )
            last = (names.LAST_CROSS_KEY.format(layer=layer), names.LAST_CROSS_VALUE.format(layer=layer))
            for kind, (name, last_name) in enumerate(zip((cross_keys, cross_values), last, strict=True)):
                plane = self.cross[2 * layer + kind]
                cache = np.full(source_shape, unwritten, dtype)
                for row, length in enumerate(self._lengths):
                    cache[row, :, :length] = plane[row, :, :length]
                self._caches[name] = cache
                last_position = np.stack(
                    [plane[row, :, length - 1].reshape(1, -1) for row, length in enumerate(self._lengths)]
                )
                is_int8 = dtype == np.int8
                self._caches[last_name] = (
                    last_position * np.float32(names.INT8_CACHE_STEP) if is_int8 else last_position
                )

    def step(
        self, previous: Sequence[int], num_candidates: int, *, with_scores: bool = True, logit_rows: Sequence[int] = ()
    ) -> Step:
        """One token for every row, written at its past length."""
        inputs: Arrays = {
            names.PREVIOUS_TOKENS: np.array(previous, np.int32),
            names.PAST_LENGTHS: self.past_lengths.copy(),
            names.SOURCE_LENGTHS: self._lengths,
            names.NUM_CANDIDATES: np.array([num_candidates], np.int64),
            names.LOGIT_ROWS: np.array(logit_rows, np.int64),
            names.WITH_SCORES: np.array([with_scores]),
        }
        found = self._graphs.step(inputs | self._caches)
        for name in self._caches:
            if names.PRESENT + name in found:
                self._caches[name] = found[names.PRESENT + name]
        return Step(
            found[names.CANDIDATE_TOKENS].astype(np.int64),
            found[names.CANDIDATE_LOGITS].astype(np.float32),
            found[names.LOG_NORMALIZER].astype(np.float32),
            found[names.LOGITS].astype(np.float32),
            [found[names.CROSS_QUERIES.format(layer=layer)].astype(np.float32) for layer in range(self._num_layers)],
        )


def random_tokens(random: np.random.Generator, vocab_size: int, length: int) -> list[int]:
    return [int(token) for token in random.integers(0, vocab_size, length)]


def assert_equal_to_the_model(graphs: Graphs, transformer: Transformer, tolerance: float = 2e-5) -> None:
    """Several steps over rows of different source lengths that joined at different times, one of them last of all.

    Every output is compared with `Transformer.encode` and `decode` of each row alone.
    """
    config, random = transformer.config, np.random.default_rng(1)
    shapes = describe_shapes(config)
    sources = [random_tokens(random, config.vocab_size, length) for length in (5, 1, 3, 9)]
    joins_at = np.array([0, 2, 0, 1])
    rows = Rows(graphs, shapes, sources)
    num_candidates = shapes.target_vocab_size - len(config.suppressed_token_ids)
    targets = [[config.decoder_start_token_id, *random_tokens(random, shapes.target_vocab_size, 4)] for _ in sources]
    with torch.no_grad():
        for row, source in enumerate(sources):
            _assert_cross_equal(rows.cross[:, row, :, : len(source)], transformer, source, tolerance)
        for number in range(5):
            found = rows.step(
                [target[past] for target, past in zip(targets, rows.past_lengths, strict=True)], num_candidates
            )
            for row, source in enumerate(sources):
                past = int(rows.past_lengths[row])
                logits = _logits(transformer, source, targets[row][: past + 1])
                np.testing.assert_allclose(found.log_normalizer[row], torch.logsumexp(logits, 0), atol=tolerance)
                assert not set(found.tokens[row]) & set(config.suppressed_token_ids)
                assert len(set(found.tokens[row])) == num_candidates
                np.testing.assert_allclose(found.logits[row], logits[found.tokens[row]], atol=tolerance)
                assert (np.diff(found.logits[row]) <= 0).all()
            rows.past_lengths += joins_at <= number


def _assert_cross_equal(
    found: NDArray[np.float32], transformer: Transformer, source: list[int], tolerance: float
) -> None:
    tokens = torch.tensor([source])
    memory = transformer.encode(tokens, torch.ones_like(tokens, dtype=torch.bool))
    planes = [plane[0] for keys_values in transformer.decoder.project_memory(memory) for plane in keys_values]
    for plane, expected in zip(found, planes, strict=True):
        head_dim = expected.shape[-1]
        np.testing.assert_allclose(plane[..., :head_dim], expected, atol=tolerance)
        assert not plane[..., head_dim:].any()


def _logits(transformer: Transformer, source: list[int], target: list[int]) -> Tensor:
    tokens = torch.tensor([source])
    mask = torch.ones_like(tokens, dtype=torch.bool)
    logits, _ = transformer.decode(torch.tensor([target]), transformer.encode(tokens, mask), mask)
    return logits[0, -1]


def decode_together(rows: Rows, targets: Sequence[Sequence[int]], num_candidates: int) -> list[Step]:
    """Decode all rows together, each its own tokens."""
    steps = []
    for previous in zip(*targets, strict=True):
        steps.append(rows.step(previous, num_candidates))
        rows.past_lengths += 1
    return steps
