"""Time of a decoder step: Python's share and the share of each operator.

    python -m benchmarks.decoder_steps.operator_shares BUNDLE [--data FILE.tsv] [--limit N] [--rows 32] [--threads 1]

Sentences are decoded to their ends, and others join as rows become free. Python's part therefore includes admission,
search and retirement; calls of Kvasir's library, which moves rows and advances searches, have a column of their own.
Times are processor times of the calling thread: other load lengthens them less.
"""

import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Annotated

import typer

from benchmarks.decoder_steps.native_calls import native_calls
from benchmarks.decoder_steps.observed_sessions import observed_sessions
from benchmarks.in_process import InProcessEngine
from benchmarks.paths import DEFAULT_BUNDLE, SENTENCES
from benchmarks.workloads import read_lines, target_language
from bundle.loading import Bundle, load_bundle
from server.interface.request import SentenceParams, TokenIds
from server.text.tokenizers.registry import open_tokenizer

SEARCHES = {"greedy": 1, "beam 4": 4}
NUM_OPERATORS = 12


def main(
    bundle_folder: Annotated[Path, typer.Argument(metavar="BUNDLE")] = DEFAULT_BUNDLE,
    data: Annotated[Path, typer.Option(help="sentences, in the first column")] = SENTENCES,
    limit: Annotated[int, typer.Option(min=1, help="maximum number of sentences")] = 500,
    rows: Annotated[int, typer.Option(min=4, help="rows of the engine")] = 32,
    threads: Annotated[int, typer.Option(min=1)] = 1,
    target: Annotated[str | None, typer.Option(help="target language, for a bundle with several")] = None,
) -> None:
    """Print both tables."""
    bundle = load_bundle(bundle_folder)
    tokenizer = open_tokenizer(bundle)
    lines = read_lines(data, limit)
    language = target_language(bundle, target)
    sources = [tokenizer.encode(line.split("\t")[0], language) for line in lines]
    print(f"{bundle.config.name} {bundle.config.precision}, {len(sources)} sentences, {rows} rows, {threads} threads\n")
    places = ("the decoder graph", "the encoder graph", "native calls", "Python")
    print(f"| search | steps | ms a step | {' | '.join(f'in {place}' for place in places)} | Python's share |")
    print("|---|---|---|---|---|---|---|---|")
    for search in SEARCHES:
        print(_python_share(bundle, sources, search, rows, threads))
    for search in SEARCHES:
        print("\n" + _operators(bundle, sources, search, rows, threads))


def _params(search: str, bundle: Bundle) -> SentenceParams:
    return SentenceParams(beam_size=SEARCHES[search], max_new_tokens=bundle.config.shapes.max_target_tokens)


def _python_share(bundle: Bundle, sources: list[TokenIds], search: str, rows: int, threads: int) -> str:
    """Return a row of the first table. Shares exclude the encoder's runs."""
    with observed_sessions() as observation, native_calls() as calls:
        engine = InProcessEngine(bundle, threads, rows)
        engine.decode(sources, _params(search, bundle))  # allocates the buffers of every number of rows
        observation.clear()
        calls.seconds = 0.0
        start = time.thread_time()
        engine.decode(sources, _params(search, bundle))
        total = time.thread_time() - start
    steps = observation.num_runs(is_encoder=False)
    decoder, encoder = observation.seconds(is_encoder=False), observation.seconds(is_encoder=True)
    python = total - decoder - encoder - calls.seconds
    milliseconds = [f"{seconds / steps * 1e3:.3f}" for seconds in (total, decoder, encoder, calls.seconds, python)]
    return f"| {search} | {steps} | {' | '.join(milliseconds)} | {python / (total - encoder):.1%} |"


def _operators(bundle: Bundle, sources: list[TokenIds], search: str, rows: int, threads: int) -> str:
    """Return a table for each graph with its slowest operators."""
    with tempfile.TemporaryDirectory() as folder, observed_sessions(Path(folder)) as observation:
        InProcessEngine(bundle, threads, rows).decode(sources, _params(search, bundle))
        graphs = {
            "decoder": observation.operator_seconds(is_encoder=False),
            "encoder": observation.operator_seconds(is_encoder=True),
        }
    return "\n".join(_table(f"{graph}, {search}", seconds) for graph, seconds in graphs.items())


def _table(title: str, seconds: Counter[str]) -> str:
    total = seconds.total()
    lines = [f"| {title} | share |", "|---|---|"]
    lines += [f"| {operator} | {spent / total:.1%} |" for operator, spent in seconds.most_common(NUM_OPERATORS)]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    typer.run(main)
