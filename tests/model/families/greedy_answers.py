"""Greedy answers of a checkpoint's model in PyTorch, by the settings that its reader found."""

import torch
from torch import Tensor

from model.checkpoints.checkpoint import Checkpoint
from model.checkpoints.weights import build_model


@torch.no_grad()
def greedy_answers(checkpoint: Checkpoint, source: Tensor, mask: Tensor, max_new_tokens: int) -> list[list[int]]:
    """Return the tokens after the start token, the end included, of sources [rows, source_len]."""
    model, config = build_model(checkpoint).double(), checkpoint.config
    suppressed = list(config.suppressed_token_ids)
    answers = []
    for row in range(len(source)):
        tokens = [config.decoder_start_token_id]
        while len(tokens) <= max_new_tokens and tokens[1:][-1:] != [config.eos_token_id]:
            logits = model(source[row : row + 1], mask[row : row + 1], torch.tensor([tokens]))[0, -1]
            logits[suppressed] = -torch.inf
            best = int(logits.argmax())
            if len(tokens) == 1 and config.forced_first_token_id is not None:
                best = config.forced_first_token_id
            elif len(tokens) == max_new_tokens and config.forced_eos:
                best = config.eos_token_id
            tokens.append(best)
        answers.append(tokens[1:])
    return answers
