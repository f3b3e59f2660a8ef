"""Kvasir's engines on tokens, without texts: `python -m benchmarks.offline.engine_tokens BUNDLE FILE ...`.

One process for each engine, as `kvasir translate` has them, and half of the sentences in each: the limit of what the
command can reach. Prints seconds without loading, as JSON.
"""

import json
import multiprocessing
import time
from collections.abc import Sequence
from multiprocessing.connection import Connection
from pathlib import Path

import numpy as np
import typer

from benchmarks.in_process import InProcessEngine
from benchmarks.machine import usable_cpus
from bundle.loading import load_bundle
from server.interface.request import SentenceParams, TokenIds
from server.text.tokenizers.registry import open_tokenizer

MAX_TARGET_FACTOR, SHORT_TARGET_TOKENS = 3, 50  # the limits that `kvasir translate` sets


def main(bundle: Path, file: Path, beam_size: int = 1, rows: int = 128, limit: int | None = None) -> None:
    """Decode all lines once, and print the seconds from the first step to the last."""
    loaded = load_bundle(bundle)
    tokenizer, shapes = open_tokenizer(loaded), loaded.config.shapes
    lines = [line for line in file.read_text("utf-8").split("\n")[:limit] if line]
    sources = [tokenizer.encode(line)[-shapes.max_source_tokens :] for line in lines]
    sources.sort(key=len, reverse=True)
    num_engines = usable_cpus()
    context = multiprocessing.get_context("spawn")
    pipes = [context.Pipe() for _ in range(num_engines)]
    processes = [
        context.Process(target=_decode, args=(theirs, bundle, sources[first::num_engines], beam_size, rows))
        for first, (_, theirs) in enumerate(pipes)
    ]
    for process in processes:
        process.start()
    for ours, _ in pipes:
        ours.recv()
    start = time.perf_counter()
    for ours, _ in pipes:
        ours.send(None)
    tokens = sum(ours.recv() for ours, _ in pipes)
    seconds = time.perf_counter() - start
    for process in processes:
        process.join()
    print(json.dumps({"seconds": seconds, "target_tokens": tokens, "lines": len(lines)}))


def _decode(connection: Connection, bundle: Path, sources: Sequence[TokenIds], beam_size: int, rows: int) -> None:
    engine = InProcessEngine(load_bundle(bundle), 1, rows)
    engine.decode([np.array([sources[-1][-1]], np.int32)], SentenceParams())
    connection.send(None)
    connection.recv()
    limits = [min(max(MAX_TARGET_FACTOR * len(source), SHORT_TARGET_TOKENS), 256) for source in sources]
    params = [SentenceParams(beam_size=beam_size, max_new_tokens=limit) for limit in limits]
    completions = engine.decode_each(sources, params)
    connection.send(sum(len(completion.hypotheses[0].token_ids) for completion in completions))


if __name__ == "__main__":
    typer.run(main)
