"""Runner over the graphs as PyTorch modules, before their export to ONNX."""

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import cast

import numpy as np
import torch
from numpy.typing import NDArray

from benchmarks.in_process import InProcessEngine
from bundle.loading import Bundle
from export.exporter import describe_bundle
from export.graphs.layers import padded_head_dim
from export.graphs.step_layout import DecoderStepGraph, EncoderGraph, LayerCaches
from model.checkpoints.checkpoint import Checkpoint
from model.checkpoints.weights import build_model
from model.transformer import Transformer
from server.engine.kv_cache import CacheShapes, CrossKeysValues, KVCache, RowIndices
from server.engine.model_runner import NO_ROWS, Candidates
from server.interface.request import Pooling, TokenIds


class EagerRunner:
    """Runner that decodes with PyTorch over the same cache; caches are returned as copies and written back."""

    def __init__(self, transformer: Transformer, max_rows: int) -> None:
        config = transformer.config
        shape = config.decoder_shape
        self.start_token = config.decoder_start_token_id
        self.has_decoder = True
        self.token_lists = None
        self.prefill = None
        self.attention_scale = shape.head_dim**-0.5
        self._vocab = shape.vocab_size
        self._encoder, self._decoder = EncoderGraph(transformer).eval(), DecoderStepGraph(transformer).eval()
        self.cache = KVCache(
            CacheShapes(
                config.num_decoder_layers,
                shape.num_heads,
                padded_head_dim(shape.head_dim),
                config.max_source_tokens,
                config.max_target_tokens,
            ),
            max_rows,
        )

    def embed(self, sources: Sequence[TokenIds], poolings: Sequence[Pooling]) -> list[NDArray[np.float32]]:
        """Raise NotImplementedError."""
        raise NotImplementedError

    @torch.no_grad()
    def encode(self, sources: Sequence[TokenIds]) -> list[CrossKeysValues]:
        """Encode one sentence after the other."""
        return [self._encode(source) for source in sources]

    def _encode(self, source: TokenIds) -> CrossKeysValues:
        tokens = torch.from_numpy(source)[None]
        cross: torch.Tensor = self._encoder(tokens, torch.tensor([len(source)], dtype=torch.int32))
        return cross[:, 0].numpy()

    @torch.no_grad()
    def decode(
        self,
        num_rows: int,
        num_candidates: int,
        with_scores: bool,
        logit_rows: RowIndices = NO_ROWS,
        with_queries: bool = False,
    ) -> Candidates:
        """Run one step of the first rows."""
        cache = self.cache
        layers = []
        for key in range(0, 2 * cache.shapes.num_layers, 2):
            buffers = [
                buffer[plane, :num_rows]
                for buffer in (cache.self_cache, cache.cross_cache, cache.last_cross)
                for plane in (key, key + 1)
            ]
            layers.append(cast(LayerCaches, tuple(torch.from_numpy(buffer) for buffer in buffers)))
        inputs = [
            torch.from_numpy(array[:num_rows])
            for array in (cache.previous_tokens, cache.past_lengths, cache.source_lengths)
        ]
        limit = torch.tensor([min(num_candidates, self._vocab)])
        whole_rows = torch.from_numpy(logit_rows.astype(np.int64))
        logits, tokens, log_normalizer, whole, *present = self._decoder(*inputs, limit, whole_rows, layers)
        for layer in range(cache.shapes.num_layers):
            for plane in (0, 1):  # the cross caches do not change
                cache.self_cache[2 * layer + plane, :num_rows] = present[5 * layer + plane].numpy()
        cache.past_lengths[:num_rows] += 1
        return Candidates(
            tokens.numpy(),
            (logits - log_normalizer[:, None]).numpy(),
            log_normalizer.numpy(),
            whole.numpy(),
            tuple(queries[:, 0].numpy() for queries in present[4::5]) if with_queries else (),
        )


def open_eagerly(checkpoint: Checkpoint, folder: Path, unknown_token_id: int) -> tuple[Bundle, InProcessEngine]:
    """Return a bundle without graphs, in a new folder, and an engine over the modules that they would be traced from.

    An export compares its graphs with the model, so that a test of what a model answers needs none.
    """
    folder.mkdir()
    for name, path in checkpoint.tokenizer.files.items():
        shutil.copyfile(path, folder / name)
    for name, content in checkpoint.tokenizer.converted.items():
        (folder / name).write_bytes(content)
    bundle = Bundle(folder, describe_bundle(checkpoint, folder, "float32", folder.name, unknown_token_id))
    return bundle, InProcessEngine.over(EagerRunner(build_model(checkpoint), max_rows=64), bundle)
