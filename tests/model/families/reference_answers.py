"""Answers of Hugging Face `generate`, and their comparison with ours.

If the scores of two different answers agree to 1e-4, it is a tie decided by rounding, otherwise a mistake.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from transformers import PreTrainedModel

from server.interface.decoding_options import DecodingOptions
from server.interface.request import Completion, SentenceParams

TOLERANCE = 1e-4
BATCH = 16

SETTINGS = {
    "greedy": SentenceParams(beam_size=1),
    "beam 4": SentenceParams(beam_size=4),
    "beam 4, early stopping": SentenceParams(DecodingOptions(early_stopping=True), beam_size=4),
}


@dataclass(frozen=True, slots=True)
class Answer:
    """Tokens without start and end; the score is the log-probability divided by the number of tokens with the end."""

    token_ids: list[int]
    score: float


def within_limits(params: SentenceParams, model: PreTrainedModel) -> SentenceParams:
    """Return the parameters with the length limit and the forced token of the reference, and scores."""
    # max_length of Hugging Face includes the start token.
    return SentenceParams(
        params.options.with_changes(return_scores=True, max_repetitions=0),
        beam_size=params.beam_size,
        max_new_tokens=model.generation_config.max_length - 1,
        first_token=model.generation_config.forced_bos_token_id,
    )


def own_answer(completion: Completion) -> Answer:
    """Return the best hypothesis of a completion."""
    best = completion.hypotheses[0]
    return Answer(best.token_ids, best.score)


def reference_answers(model: PreTrainedModel, sources: Sequence[list[int]], params: SentenceParams) -> Iterator[Answer]:
    """Return the answers of `generate` in the order of `sources`. A batch has sentences of similar length."""
    pad, end = model.config.pad_token_id, model.config.eos_token_id
    # A forced token has no score.
    num_free = int(model.generation_config.forced_bos_token_id is not None)
    is_forced = model.generation_config.forced_eos_token_id is not None
    forced_length = model.generation_config.max_length - 1 if is_forced else None
    order = sorted(range(len(sources)), key=lambda index: len(sources[index]))
    answers: dict[int, Answer] = {}
    for start in range(0, len(order), BATCH):
        batch = order[start : start + BATCH]
        longest = max(len(sources[index]) for index in batch)
        tokens = torch.tensor([sources[index] + [pad] * (longest - len(sources[index])) for index in batch])
        with torch.no_grad():
            output = model.generate(
                input_ids=tokens,
                attention_mask=(tokens != pad).long(),
                num_beams=params.beam_size,
                **({"early_stopping": params.options.early_stopping} if params.beam_size > 1 else {}),
                return_dict_in_generate=True,
                output_scores=True,
                output_logits=params.beam_size == 1,
            )
        for row, index in enumerate(batch):
            generated = output.sequences[row, 1:].tolist()
            token_ids = generated[: generated.index(end)] if end in generated else generated
            if params.beam_size == 1:
                with_end = generated[: len(token_ids) + 1]
                score = _log_probability(output.logits, row, with_end, num_free, forced_length) / len(with_end)
            else:
                score = float(output.sequences_scores[row])
            answers[index] = Answer(token_ids, score)
    return (answers[index] for index in range(len(sources)))


def _log_probability(
    logits: Sequence[torch.Tensor], row: int, generated: list[int], num_free: int, forced_length: int | None
) -> float:
    """Return the log-probability of the generated tokens, without forced first and last tokens."""
    chosen = generated[:-1] if len(generated) == forced_length else generated
    scored = list(zip(logits, chosen, strict=False))[num_free:]
    return sum(float(torch.log_softmax(step[row], dim=-1)[token]) for step, token in scored)


def report(name: str, sentences: list[str], ours: list[Answer], theirs: list[Answer]) -> int:
    """Print the differences of a search, and return the number of mistakes."""
    same, largest, mistakes = 0, 0.0, 0
    for sentence, mine, reference in zip(sentences, ours, theirs, strict=True):
        difference = abs(mine.score - reference.score)
        if mine.token_ids == reference.token_ids and not math.isnan(difference):
            same += 1
            largest = max(largest, difference)
            mistakes += difference > TOLERANCE
        else:
            is_tie = difference <= TOLERANCE
            mistakes += not is_tie
            print(f"  {'tie' if is_tie else 'DIFFERENT'}: {sentence!r}\n    {mine}\n    {reference}")
    print(f"{name}: {same} of {len(sentences)} equal token for token, largest score difference {largest:.1e}")
    return mistakes
