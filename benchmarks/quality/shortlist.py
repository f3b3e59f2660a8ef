"""BLEU and processor time of a bundle with its shortlist and without.

    python -m benchmarks.quality.shortlist BUNDLE --data PAIRS.tsv [--beam-size 4] [--sentences 1000] [--rounds 3]

The engine decodes the sources in this process with 64 rows and one thread, with and without the shortlist in turns; the
time is the median of the rounds.
"""

import statistics
import time
from pathlib import Path
from typing import Annotated

import sacrebleu
import typer

from benchmarks.in_process import InProcessEngine
from bundle.loading import load_bundle
from server.interface.request import SentenceParams
from server.text.tokenizers.registry import open_tokenizer


def main(
    bundle: Annotated[Path, typer.Argument(help="a bundle with a shortlist")],
    data: Annotated[Path, typer.Option(help="tab-separated sources and references")],
    beam_size: int = 4,
    sentences: int = 1000,
    rounds: int = 3,
) -> None:
    """Print a row for each search, and the share of equal answers."""
    loaded = load_bundle(bundle)
    if not loaded.config.has_shortlist:
        raise typer.BadParameter(f"{bundle} has no shortlist; make one with kvasir shortlist")
    lines = [line.split("\t") for line in data.read_text("utf-8").splitlines()[:sentences]]
    tokenizer, engine = open_tokenizer(loaded), InProcessEngine(loaded)
    sources = [tokenizer.encode(source) for source, _ in lines]
    times: dict[bool, list[float]] = {True: [], False: []}
    answers: dict[bool, list[str]] = {}
    for _ in range(rounds):
        for uses_shortlist, measured in times.items():
            params = SentenceParams(beam_size=beam_size, max_new_tokens=128, uses_shortlist=uses_shortlist)
            begun = time.process_time()
            done = engine.decode(sources, params)
            measured.append(time.process_time() - begun)
            answers[uses_shortlist] = [tokenizer.decode(each.hypotheses[0].token_ids) for each in done]
    for uses_shortlist, measured in times.items():
        bleu = sacrebleu.corpus_bleu(answers[uses_shortlist], [[reference for _, reference in lines]]).score
        name = "with shortlist" if uses_shortlist else "all tokens"
        print(f"{name:14}  BLEU {bleu:5.2f}  {statistics.median(measured):6.2f} s of processor")
    num_equal = sum(with_it == without for with_it, without in zip(answers[True], answers[False], strict=True))
    print(f"{num_equal} of {len(lines)} answers are equal")


if __name__ == "__main__":
    typer.run(main)
