"""The front door: kvasir serve | translate | export | loadtest. Each imports what it needs when it is called."""

import json
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, BinaryIO, Literal

import typer

if TYPE_CHECKING:
    from server.offline import OfflineStats

app = typer.Typer(
    help="Kvasir serves encoder-decoder Transformers.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)

_WRONG_USE = 2  # the exit code for flags and settings that make no sense; other failures end with 1


@app.command(
    add_help_option=False,
    context_settings={"allow_extra_args": True, "ignore_unknown_options": True},
)
def serve(context: typer.Context) -> None:
    """Serve models over HTTP. Every setting is a flag and an environment variable: see kvasir serve --help."""
    from pydantic import ValidationError

    from server.settings import settings_from_flags

    try:
        settings = settings_from_flags(context.args)
    except ValidationError as error:
        raise _failure(_settings_problems(error.errors()), _WRONG_USE) from error
    from server.serve import serve as run

    with _one_line_errors():
        raise typer.Exit(run(settings))


@app.command()
def translate(
    source_file: Annotated[
        str, typer.Argument(metavar="INPUT", help="UTF-8 file, one text a line; - is standard input; or a document.")
    ] = "-",
    output: Annotated[str, typer.Option(help="File for the translations; - is standard output.")] = "-",
    model: Annotated[Path | None, typer.Option(help="Folder of a bundle; by default the one that comes along.")] = None,
    beam_size: Annotated[int, typer.Option(min=1, max=8, help="Hypotheses followed at once; 1 is greedy.")] = 4,
    source: Annotated[str | None, typer.Option(help="Language of the input, where the model has several.")] = None,
    target: Annotated[str | None, typer.Option(help="Language to translate into, where the model has several.")] = None,
    threads: Annotated[int | None, typer.Option(min=1, help="CPU threads; by default every usable one.")] = None,
    cache_sentences: Annotated[
        int | None,
        typer.Option(min=0, help="Translated sentences kept for identical ones, by default 10000; 0 decodes each."),
    ] = None,
    stats: Annotated[Path | None, typer.Option(help="File for numbers about the run, as JSON.")] = None,
) -> None:
    """Translate a file or standard input, one line in, one line out; or a document (docx, html, ...) into --output."""
    # Like any filter: when whoever reads the output stops reading, end without a word.
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    with _one_line_errors():
        from export.bundle import load_bundle
        from server.files.formats import FORMATS
        from server.offline import OfflineOptions, translate_document_file, translate_file
        from server.sentence_cache import DEFAULT_MAX_SENTENCES
        from server.settings import DEFAULT_MODEL

        bundle = load_bundle(model or DEFAULT_MODEL)
        options = OfflineOptions(
            source, target, beam_size, threads, DEFAULT_MAX_SENTENCES if cache_sentences is None else cache_sentences
        )
        extension = Path(source_file).suffix.lower()
        if extension in FORMATS and extension != ".txt":
            if Path(output).suffix.lower() != extension:
                raise _failure(f"a translated {extension} is a {extension}: name one with --output", _WRONG_USE)
            with _progress("paragraphs") as advance:
                result = translate_document_file(bundle, Path(source_file), Path(output), options, advance)
        else:
            with _opened(source_file, "rb") as lines, _opened(output, "wb") as translations, _progress() as advance:
                result = translate_file(bundle, lines, translations, options, advance)
        if stats is not None:
            stats.write_text(json.dumps(_as_json(result), indent=2) + "\n", encoding="utf-8")


@app.command()
def export(
    checkpoint: Annotated[str, typer.Argument(help="Folder of a Hugging Face Marian checkpoint, or its hub name.")],
    bundle: Annotated[Path, typer.Argument(help="Folder to write the bundle to.")],
    precision: Annotated[Literal["float32", "int8", "float16"], typer.Option(help="Of the weights.")] = "int8",
    name: Annotated[str | None, typer.Option(help="What the model is called; by default after the checkpoint.")] = None,
) -> None:
    """Turn a checkpoint into a bundle that can be served, and verify it."""
    with _one_line_errors():
        try:
            from export.to_onnx import export_bundle
        except ModuleNotFoundError as error:
            raise _failure(f'{error.name} is missing: pip install "kvasir[export]"') from error
        written = export_bundle(checkpoint, bundle, precision, name, lambda message: typer.echo(message, err=True))
        typer.echo(f"{written.config.name} is in {written.path}: kvasir serve --model {written.path}")


@app.command()
def loadtest(
    url: Annotated[str, typer.Option(help="Address of the server.")] = "http://127.0.0.1:8000",
    users: Annotated[int, typer.Option(min=1, help="Users who send one request after the other.")] = 16,
    seconds: Annotated[float, typer.Option(help="How long they do it.")] = 30.0,
    beam_share: Annotated[float, typer.Option(min=0.0, max=1.0, help="Share of requests with beam search.")] = 0.2,
    seed: Annotated[int, typer.Option(help="Of the choice of texts.")] = 1,
) -> None:
    """Send realistic sentences to a running server and report latencies and throughput."""
    with _one_line_errors():
        from loadtest.run import LoadTestFailed, run

        try:
            summary = run(url=url, users=users, seconds=seconds, beam_share=beam_share, seed=seed)
        except LoadTestFailed as error:
            raise _failure(str(error)) from error
    raise typer.Exit(summary.exit_code)


def _failure(message: str, code: int = 1) -> typer.Exit:
    """An exit to raise, after one line on standard error."""
    typer.echo(f"kvasir: {' '.join(message.split())}", err=True)
    return typer.Exit(code)


@contextmanager
def _one_line_errors() -> Iterator[None]:
    """Errors that a user can do something about end the command with their message; bugs keep their traceback."""
    from server.errors import KvasirError

    try:
        yield
    except BaseExceptionGroup as group:
        first: BaseException = group
        while isinstance(first, BaseExceptionGroup):
            first = first.exceptions[0]
        if not isinstance(first, KvasirError | ValueError | OSError):
            raise
        raise _failure(str(first)) from group
    except (KvasirError, ValueError, OSError) as error:
        raise _failure(str(error)) from error


def _settings_problems(problems: object) -> str:
    assert isinstance(problems, list)
    lines = []
    for problem in problems:
        flag = "".join(f"--{str(part).replace('_', '-')}: " for part in problem["loc"][:1])
        lines.append(f"{flag}{str(problem['msg']).removeprefix('Value error, ')}")
    return "; ".join(lines) + " (kvasir serve --help lists all flags)"


@contextmanager
def _opened(name: str, mode: str) -> Iterator[BinaryIO]:
    """A binary stream by file name; - is standard input or output, which stays open."""
    standard = sys.stdin.buffer if mode == "rb" else sys.stdout.buffer
    with nullcontext(standard) if name == "-" else Path(name).open(mode) as stream:
        yield stream  # type: ignore[misc]  # open() cannot see that the mode is binary


@contextmanager
def _progress(unit: str = "lines") -> Iterator[Callable[[int], None]]:
    """Shows on standard error how many lines or other units are done, if it is a terminal."""
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich.console import Console
    from rich.progress import MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn(), TextColumn("{task.description}"), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(unit, total=None)
        yield lambda lines: bar.advance(task, lines)


def _as_json(result: "OfflineStats") -> dict[str, float]:
    return {
        "lines": result.lines,
        "sentences": result.sentences,
        "decoded": result.decoded,
        "cached": result.cached,
        "coalesced": result.coalesced,
        "source_tokens": result.source_tokens,
        "target_tokens": result.target_tokens,
        "seconds": round(result.seconds, 3),
        "tokens_per_second": round(result.tokens_per_second, 1),
        "rows_per_step": round(result.rows_per_step, 2),
    }


if __name__ == "__main__":
    app()
