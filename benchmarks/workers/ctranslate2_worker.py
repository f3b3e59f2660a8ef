"""CTranslate2, from its own package: `python -m benchmarks.workers.ctranslate2_worker MODEL VOCAB.json ...`."""

import json
from collections.abc import Sequence
from pathlib import Path

import ctranslate2
import typer

from benchmarks.workers.protocol import Job, serve


def main(
    model: Path, vocabulary: Path, compute_type: str, inter_threads: int, intra_threads: int, batch_tokens: int
) -> None:
    """Load a converted model and answer jobs. `batch_tokens` is `max_batch_size` with `batch_type="tokens"`."""
    translator = ctranslate2.Translator(
        str(model),
        device="cpu",
        compute_type=compute_type,
        inter_threads=inter_threads,
        intra_threads=intra_threads,
    )
    pieces = {index: piece for piece, index in json.loads(vocabulary.read_text("utf-8")).items()}
    ids = {piece: index for index, piece in pieces.items()}

    def decode(job: Job) -> Sequence[Sequence[int]]:
        results = translator.translate_batch(
            [[pieces[index] for index in source] for source in job.sources],
            beam_size=job.beam_size,
            max_batch_size=batch_tokens,
            batch_type="tokens",
            max_decoding_length=job.max_new_tokens,
            length_penalty=job.length_penalty,
            max_input_length=0,
        )
        return [[ids[piece] for piece in result.hypotheses[0]] for result in results]

    serve(decode)


if __name__ == "__main__":
    typer.run(main)
