"""CTranslate2, from its own package: `python -m benchmarks.workers.ctranslate2_worker MODEL VOCAB.json ...`."""

import json
from collections.abc import Sequence
from pathlib import Path

import ctranslate2
import typer

from benchmarks.workers.protocol import Job, serve


def main(
    model: Path,
    vocabulary: Path,
    compute_type: str = "int8",
    inter_threads: int = 1,
    intra_threads: int = 1,
) -> None:
    """Load a converted model and answer jobs: `inter_threads` translations at once, `intra_threads` threads each."""
    translator = ctranslate2.Translator(
        str(model),
        device="cpu",
        compute_type=compute_type,
        inter_threads=inter_threads,
        intra_threads=intra_threads,
    )
    tokens = {index: token for token, index in json.loads(vocabulary.read_text("utf-8")).items()}
    ids = {token: index for index, token in tokens.items()}

    def decode(job: Job) -> Sequence[Sequence[int]]:
        results = translator.translate_batch(
            [[tokens[index] for index in source] for source in job.sources],
            beam_size=job.beam_size,
            num_hypotheses=1,
            max_batch_size=job.batch_size,
            batch_type={"sentences": "examples", "tokens": "tokens"}[job.batch_by],
            max_decoding_length=job.max_new_tokens,
            length_penalty=job.length_penalty,
            max_input_length=0,
        )
        return [[ids[token] for token in result.hypotheses[0]] for result in results]

    serve(decode, ["ctranslate2"])


if __name__ == "__main__":
    typer.run(main)
