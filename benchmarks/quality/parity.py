"""Does Kvasir answer what Hugging Face answers? Token for token and score for score, over parallel text.

    python -m benchmarks.quality.parity CHECKPOINT BUNDLE FILE.tsv ... [--limit N] [--swap-columns] [--target de]

CHECKPOINT is a local Marian checkpoint and BUNDLE its float32 export. Sentences are the first column of the files,
or the second. One that differs is shown with both answers and their scores: where those agree to 1e-4 it is a tie that
rounding decided, otherwise it is a mistake and the exit code is 1.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import torch
import typer
from transformers import MarianMTModel, MarianTokenizer

from benchmarks.in_process import InProcessEngine
from benchmarks.workloads import read_lines, target_language
from bundle.loading import load_bundle
from server.interface.decoding_options import DecodingOptions
from server.interface.request import Completion, SentenceParams
from server.text.tokenizers.marian import Tokenizer

TOLERANCE = 1e-4
BATCH = 16

SETTINGS = {
    "greedy": SentenceParams(beam_size=1),
    "beam 4": SentenceParams(beam_size=4),
    "beam 4, early stopping": SentenceParams(DecodingOptions(early_stopping=True), beam_size=4),
}


@dataclass(frozen=True, slots=True)
class Answer:
    """Tokens without start and end; the score is log-probability by number of tokens, the end included."""

    token_ids: list[int]
    score: float


def main(
    checkpoint: Path,
    bundle_folder: Annotated[Path, typer.Argument(metavar="BUNDLE")],
    files: Annotated[list[Path], typer.Argument(metavar="FILE.tsv")],
    limit: Annotated[int | None, typer.Option(help="Take so many sentences of each file.")] = None,
    swap_columns: Annotated[bool, typer.Option("--swap-columns", help="Sentences are the second column.")] = False,
    target: Annotated[str | None, typer.Option(help="Target language of a bundle that has several.")] = None,
) -> None:
    """Compare a bundle's answers with Hugging Face `generate` on the checkpoint it was exported from."""
    bundle = load_bundle(bundle_folder)
    column = int(swap_columns)
    sentences = [line.split("\t")[column] for file in files for line in read_lines(file, limit)]
    model, reference_tokenizer = MarianMTModel.from_pretrained(checkpoint), MarianTokenizer.from_pretrained(checkpoint)
    model.eval()
    tokenizer, engine = Tokenizer(bundle), InProcessEngine(bundle)
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


def _within(params: SentenceParams, model: MarianMTModel) -> SentenceParams:
    # Hugging Face counts the start token in max_length.
    return SentenceParams(
        params.options.with_changes(return_scores=True, max_repetitions=0),
        beam_size=params.beam_size,
        max_new_tokens=model.generation_config.max_length - 1,
    )


def _ours(completion: Completion) -> Answer:
    best = completion.hypotheses[0]
    return Answer(best.token_ids, best.score)


def _reference(model: MarianMTModel, sources: Sequence[list[int]], params: SentenceParams) -> Iterator[Answer]:
    """Answers of `generate`, sentences of similar length in one batch, in the order of `sources`."""
    pad, end = model.config.pad_token_id, model.config.eos_token_id
    # A forced last token is no choice, and costs nothing.
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
                score = _log_probability(output.logits, row, with_end, forced_length) / len(with_end)
            else:
                score = float(output.sequences_scores[row])
            answers[index] = Answer(token_ids, score)
    return (answers[index] for index in range(len(sources)))


def _log_probability(
    logits: Sequence[torch.Tensor], row: int, generated: list[int], forced_length: int | None
) -> float:
    """Sum over the generated tokens, under the softmax of the whole vocabulary; a forced last token costs nothing."""
    chosen = generated[:-1] if len(generated) == forced_length else generated
    return sum(float(torch.log_softmax(step[row], dim=-1)[token]) for step, token in zip(logits, chosen, strict=False))


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
