"""optimum-onnx: `generate` over ONNX Runtime; `python -m benchmarks.workers.optimum_worker FOLDER ...`."""

from pathlib import Path

import onnxruntime as ort
import typer
from optimum.onnxruntime import ORTModelForSeq2SeqLM

from benchmarks.workers.generation import batched_generation
from benchmarks.workers.protocol import serve


def main(folder: Path, threads: int = 1) -> None:
    """Load optimum's export and answer jobs."""
    options = ort.SessionOptions()
    options.intra_op_num_threads = threads
    model = ORTModelForSeq2SeqLM.from_pretrained(
        folder, provider="CPUExecutionProvider", session_options=options, use_cache=True
    )
    serve(batched_generation(model), ["optimum-onnx", "transformers", "torch", "onnxruntime"])


if __name__ == "__main__":
    typer.run(main)
