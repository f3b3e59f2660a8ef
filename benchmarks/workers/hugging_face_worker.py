"""Hugging Face `generate`: `python -m benchmarks.workers.hugging_face_worker CHECKPOINT ...`."""

from pathlib import Path

import torch
import typer
from transformers import MarianMTModel

from benchmarks.workers.generation import batched_generation
from benchmarks.workers.protocol import serve


def main(checkpoint: Path, dtype: str = "float32", threads: int = 1) -> None:
    """Load a checkpoint and answer jobs."""
    torch.set_num_threads(threads)
    model = MarianMTModel.from_pretrained(checkpoint, dtype=getattr(torch, dtype)).eval()
    serve(batched_generation(model), ["transformers", "torch"])


if __name__ == "__main__":
    typer.run(main)
