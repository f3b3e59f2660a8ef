"""Greedy decoding in PyTorch, for validation during training; the server has a faster one."""

import torch
from torch import Tensor

from model.transformer import DecoderCache, Transformer


@torch.inference_mode()
def decode_greedily(model: Transformer, source: Tensor, source_mask: Tensor, max_new_tokens: int) -> Tensor:
    """Return the most probable tokens [rows, at most max_new_tokens]; padding follows the end-of-sequence token."""
    config = model.config
    memory = model.decoder.project_memory(model.encode(source, source_mask))
    rows = source.shape[0]
    tokens = torch.full((rows, 1), config.decoder_start_token_id, dtype=torch.int64, device=source.device)
    has_ended = torch.zeros(rows, dtype=torch.bool, device=source.device)
    suppressed = [*config.suppressed_token_ids, config.pad_token_id]
    answer: list[Tensor] = []
    past: DecoderCache | None = None
    for _ in range(max_new_tokens):
        logits, past = model.decode(tokens, memory, source_mask, past)
        logits[..., suppressed] = -torch.inf
        tokens = logits.argmax(dim=-1).masked_fill(has_ended[:, None], config.pad_token_id)
        answer.append(tokens)
        has_ended |= tokens[:, 0] == config.eos_token_id
        if bool(has_ended.all()):
            break
    return torch.cat(answer, dim=1)
