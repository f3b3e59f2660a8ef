"""Parity with Hugging Face over parallel text: equal tokens and equal scores.

    python -m benchmarks.quality.parity CHECKPOINT BUNDLE FILE.tsv ... [--limit N] [--swap-columns] [--target de]

CHECKPOINT is a local Marian checkpoint and BUNDLE its float32 export. Sentences are the first column of the files, or
the second. Different answers are printed with their scores. If the scores agree to 1e-4 it is a tie decided by
rounding, otherwise a mistake; the exit code is then 1.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import torch
import typer
from transformers import MarianMTModel, MarianTokenizer, PreTrainedModel

from benchmarks.in_process import InProcessEngine
from benchmarks.workloads import read_lines, target_language
from bundle.loading import load_bundle
from server.interface.decoding_options import DecodingOptions
from server.interface.request import Completion, SentenceParams
from server.text.tokenizers.registry import open_tokenizer

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


def main(
    checkpoint: Path,
    bundle_folder: Annotated[Path, typer.Argument(metavar="BUNDLE")],
    files: Annotated[list[Path], typer.Argument(metavar="FILE.tsv")],
    limit: Annotated[int | None, typer.Option(help="maximum number of sentences of each file")] = None,
    swap_columns: Annotated[bool, typer.Option("--swap-columns", help="read sentences from the second column")] = False,
    target: Annotated[str | None, typer.Option(help="target language, for a bundle with several")] = None,
) -> None:
    """Compare a bundle's answers with Hugging Face `generate` on the checkpoint it was exported from."""
    bundle = load_bundle(bundle_folder)
    column = int(swap_columns)
    sentences = [line.split("\t")[column] for file in files for line in read_lines(file, limit)]
    model, reference_tokenizer = MarianMTModel.from_pretrained(checkpoint), MarianTokenizer.from_pretrained(checkpoint)
    model.eval()
    tokenizer, engine = open_tokenizer(bundle), InProcessEngine(bundle)
    language = target_language(bundle, target)
    # The reference reads the language token as the first word of the text.
    prefix = bundle.config.target_language_tokens.get(language, "")
    sources = [tokenizer.encode(sentence, language) for sentence in sentences]
    different_ids = sum(
        source.tolist() != reference_tokenizer(f"{prefix} {sentence}" if prefix else sentence).input_ids
        for source, sentence in zip(sources, sentences, strict=True)
    )
    print(f"{len(sentences)} sentences; source token ids differ in {different_ids}")
    mistakes = different_ids
    for name, params in SETTINGS.items():
        ours = [_ours(completion) for completion in engine.decode(sources, _within(params, model))]
        theirs = list(_reference(model, [source.tolist() for source in sources], params))
        mistakes += _report(name, sentences, ours, theirs)
    raise typer.Exit(1 if mistakes else 0)


def _within(params: SentenceParams, model: PreTrainedModel) -> SentenceParams:
    # max_length of Hugging Face includes the start token.
    return SentenceParams(
        params.options.with_changes(return_scores=True, max_repetitions=0),
        beam_size=params.beam_size,
        max_new_tokens=model.generation_config.max_length - 1,
        first_token=model.generation_config.forced_bos_token_id,
    )


def _ours(completion: Completion) -> Answer:
    best = completion.hypotheses[0]
    return Answer(best.token_ids, best.score)


def _reference(model: PreTrainedModel, sources: Sequence[list[int]], params: SentenceParams) -> Iterator[Answer]:
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


def _report(name: str, sentences: list[str], ours: list[Answer], theirs: list[Answer]) -> int:
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


if __name__ == "__main__":
    typer.run(main)
