"""CTranslate2 from text to text: `python -m benchmarks.offline.ctranslate2_texts MODEL CHECKPOINT FILE ...`.

SentencePiece's own batches split and join, with all its threads. Prints seconds without loading, as JSON.
"""

import json
import time
from pathlib import Path
from typing import Annotated

import ctranslate2
import typer
from sentencepiece import SentencePieceProcessor

MAX_TOKENS = 256  # of a sentence, on both sides


def main(
    model: Path,
    checkpoint: Path,
    file: Path,
    beam_size: int = 1,
    inter_threads: int = 1,
    intra_threads: int = 1,
    batch_tokens: Annotated[int, typer.Option(help="padded source tokens of a batch")] = 2048,
    limit: int | None = None,
) -> None:
    """Translate all lines once, and print the seconds from the lines to their translations."""
    source, target = (
        SentencePieceProcessor(model_file=str(checkpoint / f"{side}.spm")) for side in ("source", "target")
    )
    translator = ctranslate2.Translator(
        str(model), device="cpu", compute_type="int8", inter_threads=inter_threads, intra_threads=intra_threads
    )
    lines = file.read_text("utf-8").split("\n")[:limit]
    lines = lines[:-1] if not lines[-1] else lines
    translator.translate_batch([["</s>"]])
    start = time.perf_counter()
    pieces = [[*each[: MAX_TOKENS - 1], "</s>"] for each in source.encode(lines, out_type=str)]
    results = translator.translate_batch(
        pieces,
        beam_size=beam_size,
        max_batch_size=batch_tokens,
        batch_type="tokens",
        max_decoding_length=MAX_TOKENS,
        max_input_length=0,
    )
    translations = target.decode([result.hypotheses[0] for result in results])
    seconds = time.perf_counter() - start
    tokens = sum(len(result.hypotheses[0]) for result in results)
    print(json.dumps({"seconds": seconds, "target_tokens": tokens, "lines": len(translations)}))


if __name__ == "__main__":
    typer.run(main)
