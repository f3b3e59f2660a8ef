"""Hugging Face `generate`: `python -m benchmarks.workers.hugging_face_worker CHECKPOINT ...`."""

from collections.abc import Sequence
from pathlib import Path

import torch
import typer
from transformers import MarianMTModel

from benchmarks.workers.protocol import Job, serve


def main(checkpoint: Path, dtype: str, threads: int, batch_size: int) -> None:
    """Load a checkpoint and answer jobs, sentences of similar length in one batch."""
    torch.set_num_threads(threads)
    model = MarianMTModel.from_pretrained(checkpoint, dtype=getattr(torch, dtype)).eval()
    pad, end = model.config.pad_token_id, model.config.eos_token_id

    def decode(job: Job) -> Sequence[Sequence[int]]:
        order = sorted(range(len(job.sources)), key=lambda index: -len(job.sources[index]))
        outputs: list[list[int]] = [[] for _ in job.sources]
        for start in range(0, len(order), batch_size):
            batch = order[start : start + batch_size]
            longest = len(job.sources[batch[0]])
            tokens = torch.tensor([job.sources[i] + [pad] * (longest - len(job.sources[i])) for i in batch])
            with torch.inference_mode():
                generated = model.generate(
                    input_ids=tokens,
                    attention_mask=(tokens != pad).long(),
                    num_beams=job.beam_size,
                    max_length=job.max_new_tokens + 1,
                    length_penalty=job.length_penalty,
                )
            for index, row in zip(batch, generated[:, 1:].tolist(), strict=True):
                outputs[index] = row[: row.index(end)] if end in row else row
        return outputs

    serve(decode)


if __name__ == "__main__":
    typer.run(main)
