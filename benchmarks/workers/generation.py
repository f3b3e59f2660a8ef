"""Batched `generate`, for PyTorch and optimum."""

from collections.abc import Callable, Sequence
from typing import Protocol

import torch
from transformers import GenerationConfig, PretrainedConfig

from benchmarks.workers.protocol import Job


class Generator(Protocol):
    """Interface of a model."""

    config: PretrainedConfig
    generation_config: GenerationConfig

    def generate(self, **options: object) -> torch.Tensor:
        """Return token ids [rows, target_len], the start token first."""
        ...


def batched_generation(model: Generator) -> Callable[[Job], Sequence[Sequence[int]]]:
    """Return a function that decodes a job in batches of similar length, the longest first."""
    pad, end = model.config.pad_token_id, model.config.eos_token_id

    def decode(job: Job) -> Sequence[Sequence[int]]:
        assert job.batch_by == "sentences", "generate has no batches by tokens"
        order = sorted(range(len(job.sources)), key=lambda index: -len(job.sources[index]))
        outputs: list[list[int]] = [[] for _ in job.sources]
        for start in range(0, len(order), job.batch_size):
            batch = order[start : start + job.batch_size]
            longest = len(job.sources[batch[0]])
            tokens = torch.tensor([job.sources[i] + [pad] * (longest - len(job.sources[i])) for i in batch])
            with torch.inference_mode():
                generated = model.generate(
                    input_ids=tokens,
                    attention_mask=(tokens != pad).long(),
                    num_beams=job.beam_size,
                    max_length=job.max_new_tokens + 1,  # the start token counts
                    length_penalty=job.length_penalty,
                )
            for index, row in zip(batch, generated[:, 1:].tolist(), strict=True):
                outputs[index] = [token for token in (row[: row.index(end)] if end in row else row) if token != pad]
        return outputs

    return decode
