"""The command line of `kvasir translate`."""

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from server.cli.bundle_choice import chosen_bundles
from server.cli.files import STANDARD, check_input, check_output, opened
from server.cli.input_format import check_document_output, input_format
from server.cli.offline_options import OfflineOptions, check_document_options, check_line_options
from server.cli.option_flags import with_options
from server.cli.translate.lines import translate_file
from server.cli.translate.stats import OfflineStats
from server.documents.formats.options import MAX_READING_SPEED, READING_SPEED, FormatOptions, split_columns
from server.interface.decoding_options import DecodingOptions
from server.operations.defaults import DEFAULT_MODEL
from server.workers.cache import DEFAULT_MAX_SENTENCES


@with_options(DecodingOptions)
def translate(
    source_file: Annotated[
        str,
        typer.Argument(
            metavar="INPUT",
            show_default=False,
            help="Document, text file with one text a line, or - for standard input (the default).",
        ),
    ] = STANDARD,
    output: Annotated[
        str, typer.Option(metavar="FILE", help="File for the translations; - is standard output.")
    ] = STANDARD,
    model: Annotated[
        Path,
        typer.Option(
            metavar="FOLDER",
            help="Bundle, or folder of bundles: --source and --target choose among them.",
            show_default="the bundled one",
        ),
    ] = DEFAULT_MODEL,
    source: Annotated[
        str | None, typer.Option(metavar="LANGUAGE", help="Language of the input, if the models have several.")
    ] = None,
    target: Annotated[
        str | None, typer.Option(metavar="LANGUAGE", help="Language to translate into, if the models have several.")
    ] = None,
    threads: Annotated[int | None, typer.Option(min=1, help="CPU threads; by default all usable ones.")] = None,
    cache_sentences: Annotated[
        int, typer.Option(min=0, help="Size of the translation cache, in sentences; 0 disables it.")
    ] = DEFAULT_MAX_SENTENCES,
    stats: Annotated[Path | None, typer.Option(metavar="FILE", help="File for statistics of the run, as JSON.")] = None,
    format_name: Annotated[
        str | None,
        typer.Option("--format", metavar="FORMAT", help="Format of INPUT, such as srt; by default its extension."),
    ] = None,
    encoding: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Encoding of a text file, such as utf-16 or latin-1; by default detected."),
    ] = None,
    delimiter: Annotated[
        str | None, typer.Option(help="Delimiter of a .csv file: , ; | or tab; by default detected.")
    ] = None,
    columns: Annotated[
        str | None,
        typer.Option(
            metavar="NAME,...",
            help="Columns of a .csv file to translate: names in its first row, or numbers from 1; by default all.",
        ),
    ] = None,
    join_captions: Annotated[
        bool | None,
        typer.Option(
            "--join-captions/--no-join-captions",
            help="Translate captions of subtitles together that one sentence runs over; by default yes.",
            show_default=False,
        ),
    ] = None,
    reading_speed: Annotated[
        float | None,
        typer.Option(
            min=1,
            max=MAX_READING_SPEED,
            help=f"Characters a second that viewers of subtitles read; by default {READING_SPEED:g}.",
            show_default=False,
        ),
    ] = None,
    as_json: Annotated[
        bool,
        typer.Option(
            "--json",
            show_default=False,
            help="Write a JSON object for each line, with scores, alternatives and details.",
        ),
    ] = False,
    *,
    decoding: DecodingOptions,
) -> None:
    """Translate a text file or standard input, one line in, one line out; or a document into --output."""
    check_input(source_file)
    check_output(output, "--output", source_file)
    if stats is not None:
        check_output(str(stats), "--stats", source_file)
    format_options = FormatOptions(delimiter, split_columns(columns), encoding, None, join_captions, reading_speed)
    options = OfflineOptions(source, target, decoding, threads, cache_sentences, as_json, format_options)
    kind = input_format(source_file, format_options, format_name)
    if kind is not None:
        check_document_options(options)
        check_document_output(output, kind, is_named=format_name is not None)
    else:
        check_line_options(options)
    bundles = chosen_bundles(model, source, target)
    if kind is not None:
        from server.cli.translate.documents import translate_document_file

        with _progress("paragraphs") as advance:
            result = translate_document_file(bundles, Path(source_file), Path(output), kind, options, advance)
        typer.echo(f"{result.translated_texts} of {result.texts} texts translated{_captions(result)}", err=True)
    else:
        with opened(source_file, "rb") as lines, opened(output, "wb") as translations, _progress("lines") as advance:
            result = translate_file(bundles, lines, translations, options, advance)
    if stats is not None:
        stats.write_text(json.dumps(_as_json(result), indent=2) + "\n", encoding="utf-8")


def _captions(stats: OfflineStats) -> str:
    """Return what to report of captions, behind the number of texts."""
    counts = (
        (stats.captions_joined, "captions joined"),
        (stats.caption_cuts, "cuts"),
        (stats.captions_too_fast, "captions longer than their time to read them"),
    )
    return "".join(f"; {count} {what}" for count, what in counts if count)


@contextmanager
def _progress(unit: str) -> Iterator[Callable[[int], None]]:
    """Show on standard error how many lines or other units are done, if it is a terminal."""
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich.console import Console
    from rich.progress import MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn(), TextColumn("{task.description}"), MofNCompleteColumn(), TimeElapsedColumn())
    bar = Progress(*columns, console=Console(stderr=True), transient=True)
    task = bar.add_task(unit, total=None)

    def advance(units: int) -> None:
        bar.start()  # not before: it starts a thread, and worker processes are forked
        bar.advance(task, units)

    try:
        yield advance
    finally:
        bar.stop()


def _as_json(result: OfflineStats) -> dict[str, float]:
    counts = ["lines", "sentences", "decoded", "cached", "coalesced", "source_tokens", "target_tokens"]
    if result.texts:
        counts += ["texts", "translated_texts"]
    if _captions(result):
        counts += ["captions_joined", "caption_cuts", "captions_too_fast"]
    digits = {"seconds": 3, "tokens_per_second": 1, "rows_per_step": 2}
    rounded = {name: round(getattr(result, name), places) for name, places in digits.items()}
    quality = {} if result.quality is None else {"quality": round(result.quality, 4), "low_quality": result.low_quality}
    return {name: getattr(result, name) for name in counts} | rounded | quality
