"""Kvasir in process: `python -m benchmarks.workers.kvasir_worker BUNDLE ...`.

The engine's replicas, without server, cache or coalescing.
"""

import asyncio
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from benchmarks.workers.protocol import Job, serve
from bundle.loading import load_bundle
from server.interface.decoding_options import DecodingOptions
from server.interface.request import Request, SentenceParams, Timings
from server.workers.pool import EnginePool, PoolOptions


def main(
    bundle: Path,
    replicas: int = 1,
    threads_per_replica: int = 1,
    max_rows: Annotated[int, typer.Option(help="rows of each replica")] = 64,
) -> None:
    """Load a bundle and answer jobs. The engine forms its own batches and ignores a job's `batch_size`."""
    options = PoolOptions(
        replicas=replicas, threads_per_replica=threads_per_replica, max_rows=max_rows, max_waiting=2**31
    )
    engines = EnginePool.open(load_bundle(bundle), options)

    def decode(job: Job) -> Sequence[Sequence[int]]:
        params = SentenceParams(
            # The other engines do not detect loops, and random models only loop.
            DecodingOptions(length_penalty=job.length_penalty, max_repetitions=0),
            beam_size=job.beam_size,
            max_new_tokens=job.max_new_tokens,
        )
        now = time.monotonic()
        requests = [Request(np.array(source, np.int32), params, Timings(now)) for source in job.sources]
        # Longest first, as `kvasir translate` does.
        completions = asyncio.run(engines.generate(sorted(requests, key=lambda request: -len(request.source))))
        by_request = {completion.request: completion for completion in completions}
        return [by_request[request].hypotheses[0].token_ids for request in requests]

    serve(decode, ["kvasir-server", "onnxruntime", "numpy"])
    engines.close()


if __name__ == "__main__":
    typer.run(main)
