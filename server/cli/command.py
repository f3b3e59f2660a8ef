"""The command line of `kvasir translate`."""

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Annotated, BinaryIO

import typer
from rich.console import Console
from rich.progress import MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from bundle.loading import load_bundle
from server.cli.one_line_errors import WRONG_USE, failure
from server.cli.option_flags import with_options
from server.cli.translate import OfflineOptions, OfflineStats, translate_document_file, translate_file
from server.documents.formats.registry import FORMATS
from server.interface.decoding_options import DecodingOptions
from server.operations.settings import DEFAULT_MODEL
from server.workers.sentence_cache import DEFAULT_MAX_SENTENCES

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@app.command()
@with_options(DecodingOptions)
def translate(
    source_file: Annotated[
        str,
        typer.Argument(metavar="INPUT", help="UTF-8 file with one text a line, a document, or - for standard input."),
    ] = "-",
    output: Annotated[str, typer.Option(help="File for the translations; - is standard output.")] = "-",
    model: Annotated[Path, typer.Option(help="Folder of a bundle.", show_default="the bundled one")] = DEFAULT_MODEL,
    source: Annotated[str | None, typer.Option(help="Language of the input, if the model has several.")] = None,
    target: Annotated[str | None, typer.Option(help="Language to translate into, if the model has several.")] = None,
    threads: Annotated[int | None, typer.Option(min=1, help="CPU threads; by default all usable ones.")] = None,
    cache_sentences: Annotated[
        int, typer.Option(min=0, help="Size of the translation cache, in sentences; 0 disables it.")
    ] = DEFAULT_MAX_SENTENCES,
    stats: Annotated[Path | None, typer.Option(help="File for statistics of the run, as JSON.")] = None,
    delimiter: Annotated[
        str | None, typer.Option(help="Delimiter of a .csv file: , ; | or tab; by default detected.")
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Write JSON objects with scores, alternatives and details.")
    ] = False,
    *,
    decoding: DecodingOptions,
) -> None:
    """Translate a file or standard input, one line in, one line out; or a document (docx, html, ...) into --output."""
    bundle = load_bundle(model)
    options = OfflineOptions(source, target, decoding, threads, cache_sentences, as_json, delimiter)
    extension = Path(source_file).suffix.lower()
    if extension in FORMATS and extension != ".txt":
        if Path(output).suffix.lower() != extension:
            raise failure(f"the output of a {extension} file must end in {extension}; set it with --output", WRONG_USE)
        with _progress("paragraphs") as advance:
            result = translate_document_file(bundle, Path(source_file), Path(output), options, advance)
    else:
        with _opened(source_file, "rb") as lines, _opened(output, "wb") as translations, _progress("lines") as advance:
            result = translate_file(bundle, lines, translations, options, advance)
    if stats is not None:
        stats.write_text(json.dumps(_as_json(result), indent=2) + "\n", encoding="utf-8")


@contextmanager
def _opened(name: str, mode: str) -> Iterator[BinaryIO]:
    """Open a binary stream by file name; - is standard input or output, which stays open."""
    standard = sys.stdin.buffer if mode == "rb" else sys.stdout.buffer
    with nullcontext(standard) if name == "-" else Path(name).open(mode) as stream:
        yield stream  # type: ignore[misc]  # open() cannot see that the mode is binary


@contextmanager
def _progress(unit: str) -> Iterator[Callable[[int], None]]:
    """Show on standard error how many lines or other units are done, if it is a terminal."""
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    columns = (SpinnerColumn(), TextColumn("{task.description}"), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(unit, total=None)
        yield lambda units: bar.advance(task, units)


def _as_json(result: OfflineStats) -> dict[str, float]:
    counts = ("lines", "sentences", "decoded", "cached", "coalesced", "source_tokens", "target_tokens")
    digits = {"seconds": 3, "tokens_per_second": 1, "rows_per_step": 2}
    rounded = {name: round(getattr(result, name), places) for name, places in digits.items()}
    return {name: getattr(result, name) for name in counts} | rounded
