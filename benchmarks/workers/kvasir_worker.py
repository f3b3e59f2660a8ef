"""Kvasir in process: `python -m benchmarks.workers.kvasir_worker BUNDLE ...`."""

import asyncio
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import typer

from benchmarks.workers.protocol import Job, serve
from export.bundle import load_bundle
from server.replicas import ReplicaOptions, Replicas
from server.request import GenerationParams, Request, Timings


def main(bundle: Path, replicas: int, threads_per_replica: int, max_rows: int, max_encoder_tokens: int) -> None:
    """Load a bundle and answer jobs."""
    options = ReplicaOptions(
        replicas=replicas,
        threads_per_replica=threads_per_replica,
        max_rows=max_rows,
        max_waiting=2**31,
        max_encoder_tokens=max_encoder_tokens,
    )
    engines = Replicas.open(load_bundle(bundle), options)

    def decode(job: Job) -> Sequence[Sequence[int]]:
        params = GenerationParams(job.beam_size, job.length_penalty, job.max_new_tokens)
        now = time.monotonic()
        requests = [Request(np.array(source, np.int32), params, Timings(now)) for source in job.sources]
        # Longest first, as `kvasir translate` does.
        completions = asyncio.run(engines.generate(sorted(requests, key=lambda request: -len(request.source))))
        by_request = {completion.request: completion for completion in completions}
        return [by_request[request].hypotheses[0].token_ids for request in requests]

    serve(decode)
    engines.close()


if __name__ == "__main__":
    typer.run(main)
