"""The front door: kvasir serve | translate | train | export | loadtest. Each imports what it needs when called."""

import json
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, BinaryIO, Literal, NoReturn

# `python -m` puts the working directory first: a `server.py` there would replace the package of that name.
if __name__ == "__main__" and not sys.flags.safe_path and Path(sys.path[0]) != Path(__file__).parent:
    del sys.path[0]

import typer
from typer.models import OptionInfo

if TYPE_CHECKING:
    from server.cli.translate import OfflineStats


def _option(help_text: str, rich_help_panel: str) -> OptionInfo:
    option: OptionInfo = typer.Option(help=help_text, rich_help_panel=rich_help_panel)
    return option


app = typer.Typer(
    help="Kvasir serves encoder-decoder Transformers.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)

# The options of decoding, sorted as `kvasir translate --help` shows them; README.md explains them.
_BEAMS, _SAMPLES, _RULES, _DETAILS = (
    partial(_option, rich_help_panel=panel)
    for panel in ("Beam search", "Sampling", "What may be said", "Details, with --json")
)

# Of commands that read their flags and write their help themselves, when they are called.
_FLAGS_ELSEWHERE = {"allow_extra_args": True, "ignore_unknown_options": True}

_WRONG_USE = 2  # the exit code for flags and settings that make no sense; other failures end with 1


def _end_at_once(number: int, frame: object) -> NoReturn:
    raise SystemExit(0)  # nobody has asked for anything yet


@app.command(add_help_option=False, context_settings=_FLAGS_ELSEWHERE)
def serve(context: typer.Context) -> None:
    """Serve models over HTTP. Every setting is a flag and an environment variable: see kvasir serve --help."""
    # The first process of a container gets no signal that it has not asked for, and loading takes a while.
    signal.signal(signal.SIGTERM, _end_at_once)
    from pydantic import ValidationError

    from server.operations.settings import settings_from_flags

    try:
        settings = settings_from_flags(context.args)
    except ValidationError as error:
        raise _failure(_settings_problems(error.errors()), _WRONG_USE) from error
    from server.cli.serve import serve as run

    with _one_line_errors():
        raise typer.Exit(run(settings))


@app.command()
def translate(
    context: typer.Context,
    source_file: Annotated[
        str, typer.Argument(metavar="INPUT", help="UTF-8 file, one text a line; - is standard input; or a document.")
    ] = "-",
    output: Annotated[str, typer.Option(help="File for the translations; - is standard output.")] = "-",
    model: Annotated[Path | None, typer.Option(help="Folder of a bundle; by default the one that comes along.")] = None,
    beam_size: Annotated[
        int | None, typer.Option(min=1, max=8, help="Hypotheses followed at once, by default 4; 1 is greedy.")
    ] = None,
    source: Annotated[str | None, typer.Option(help="Language of the input, where the model has several.")] = None,
    target: Annotated[str | None, typer.Option(help="Language to translate into, where the model has several.")] = None,
    threads: Annotated[int | None, typer.Option(min=1, help="CPU threads; by default every usable one.")] = None,
    cache_sentences: Annotated[
        int | None,
        typer.Option(min=0, help="Translated sentences kept for identical ones, by default 10000; 0 decodes each."),
    ] = None,
    stats: Annotated[Path | None, typer.Option(help="File for numbers about the run, as JSON.")] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Write JSON objects: scores, alternatives and details, as asked for.")
    ] = False,
    length_penalty: Annotated[float, typer.Option(help="Exponent of the length in scores.")] = 1.0,
    max_new_tokens: Annotated[
        int | None, typer.Option(help="Most tokens of a sentence; by default 3 times its source's, at least 50.")
    ] = None,
    num_hypotheses: Annotated[int, typer.Option(help="Translations of each line; see --json.")] = 1,
    early_stopping: Annotated[bool, typer.Option(help="End when beam_size * patience are complete.")] = False,
    return_scores: Annotated[bool, typer.Option(help="With --json: scores.")] = False,
    coverage_penalty: Annotated[float, _BEAMS("What source tokens without attention cost.")] = 0.0,
    patience: Annotated[float, _BEAMS("Complete hypotheses to wait for, by beam_size.")] = 1.0,
    num_beam_groups: Annotated[int, _BEAMS("Groups of beams that choose one after the other.")] = 1,
    diversity_penalty: Annotated[float, _BEAMS("Cost of a token that an earlier group has chosen.")] = 0.0,
    temperature: Annotated[float | None, _SAMPLES("Less than 1: likelier tokens; more: others, too.")] = None,
    top_k: Annotated[int | None, _SAMPLES("Draw among the k likeliest tokens.")] = None,
    top_p: Annotated[float | None, _SAMPLES("Draw among the likeliest that reach this probability.")] = None,
    min_p: Annotated[float | None, _SAMPLES("Draw among those so likely, relative to the likeliest.")] = None,
    seed: Annotated[int | None, _SAMPLES("The same seed draws the same tokens.")] = None,
    target_prefix: Annotated[str | None, _RULES("How every translation begins.")] = None,
    required_phrases: Annotated[list[str] | None, _RULES("What each has; may be repeated.")] = None,
    suppress_phrases: Annotated[list[str] | None, _RULES("What none has; may be repeated.")] = None,
    suppress_tokens: Annotated[list[int] | None, _RULES("Ids of tokens that none has; may be repeated.")] = None,
    no_repeat_ngram_size: Annotated[int, _RULES("No so many tokens come twice.")] = 0,
    repetition_penalty: Annotated[float, _RULES("More than 1: tokens once said are less likely.")] = 1.0,
    min_new_tokens: Annotated[int, _RULES("Fewest tokens of a sentence.")] = 0,
    max_length_ratio: Annotated[float | None, _RULES("Most tokens for each token of the source.")] = None,
    max_repetitions: Annotated[int, _RULES("A loop of more repetitions ends a sentence; 0: it does not.")] = 32,
    return_alternatives: Annotated[bool, _DETAILS("Different tokens behind the prefix, and how each goes on.")] = False,
    return_token_scores: Annotated[bool, _DETAILS("Log-probabilities of tokens.")] = False,
    num_token_alternatives: Annotated[int, _DETAILS("Likeliest tokens at each place.")] = 0,
    return_alignments: Annotated[bool, _DETAILS("The source token of each target token.")] = False,
    return_attention: Annotated[bool, _DETAILS("All attention.")] = False,
    alignment_layer: Annotated[int, _DETAILS("Decoder layer that is meant; -1 is the last.")] = -1,
    alignment_heads: Annotated[list[int] | None, _DETAILS("Heads that are meant; may be repeated.")] = None,
) -> None:
    """Translate a file or standard input, one line in, one line out; or a document (docx, html, ...) into --output."""
    # Like any filter: when whoever reads the output stops reading, end without a word.
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    with _one_line_errors():
        from bundle.loading import load_bundle
        from server.cli.translate import OfflineOptions, translate_document_file, translate_file
        from server.documents.formats.registry import FORMATS
        from server.interface.decoding_options import decoding_options
        from server.operations.settings import DEFAULT_MODEL
        from server.workers.sentence_cache import DEFAULT_MAX_SENTENCES

        bundle = load_bundle(model or DEFAULT_MODEL)
        options = OfflineOptions(
            source=source,
            target=target,
            beam_size=beam_size,
            threads=threads,
            cache_sentences=DEFAULT_MAX_SENTENCES if cache_sentences is None else cache_sentences,
            length_penalty=length_penalty,
            max_new_tokens=max_new_tokens,
            num_hypotheses=num_hypotheses,
            early_stopping=early_stopping,
            return_scores=return_scores,
            decoding=decoding_options(context.params),
            as_json=as_json,
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


@app.command(add_help_option=False, context_settings=_FLAGS_ELSEWHERE)
def train(context: typer.Context) -> None:
    """Train a model from parallel text: see kvasir train --help."""
    with _one_line_errors():
        with _needs_extra("train"):
            from model.training.command import app as training
        training(context.args, prog_name="kvasir train")


@app.command()
def export(
    checkpoint: Annotated[str, typer.Argument(help="Folder of a Hugging Face Marian checkpoint, or its hub name.")],
    bundle: Annotated[Path, typer.Argument(help="Folder to write the bundle to.")],
    precision: Annotated[
        Literal["float32", "int8", "float16"], typer.Option(help="Of the weights; float16 is for GPUs.")
    ] = "int8",
    name: Annotated[str | None, typer.Option(help="What the model is called; by default after the checkpoint.")] = None,
    source: Annotated[
        list[str] | None, typer.Option(help="Languages it reads, if the checkpoint does not list them; repeatable.")
    ] = None,
) -> None:
    """Turn a checkpoint into a bundle that can be served, and verify it."""
    with _one_line_errors():
        with _needs_extra("export"):
            from export.exporter import export_bundle
        written = export_bundle(
            checkpoint, bundle, precision, name, lambda message: typer.echo(message, err=True), source or ()
        )
        typer.echo(f"{written.config.name} is in {written.path}: kvasir serve --model {written.path}")


_load_tests = typer.Typer(help="How much a running server can take, and what its users feel.")
app.add_typer(_load_tests, name="loadtest")

MaxP95 = Annotated[float | None, typer.Option("--max-p95-ms", help="Exit with 2 if p95 of a stage is above.")]
MinGoodput = Annotated[float | None, typer.Option("--min-goodput", help="Exit with 2 if goodput is below.")]
MaxErrorRatio = Annotated[float | None, typer.Option("--max-error-ratio", help="Exit with 2 if more requests fail.")]


@_load_tests.callback(invoke_without_command=True)
def loadtest(
    context: typer.Context,
    url: Annotated[str, typer.Option(help="Address of the server.")] = "http://127.0.0.1:8000",
    scenario: Annotated[str, typer.Option(help="A name of --list, or a TOML file of your own.")] = "steady",
    list_scenarios: Annotated[bool, typer.Option("--list", help="Say which scenarios there are.")] = False,
    rate: Annotated[float | None, typer.Option(help="Requests a second, for scenarios with one rate.")] = None,
    seconds: Annotated[float | None, typer.Option(help="Of each stage.")] = None,
    knee: Annotated[float | None, typer.Option(help="Requests a second; if not given, it is searched.")] = None,
    seed: Annotated[int, typer.Option(help="The same seed sends the same texts at the same instants.")] = 1,
    corpus: Annotated[Path | None, typer.Option(help="Your own sentences, one a line.")] = None,
    label: Annotated[str, typer.Option(help="What the run is called in reports.")] = "",
    out: Annotated[Path | None, typer.Option(help="Folder for what is measured; by default in loadtest-runs.")] = None,
    guard_requests: Annotated[int, typer.Option(min=0, help="Answers compared with the idle server's.")] = 300,
    guard: Annotated[bool, typer.Option(help="Whether answers are compared at all.")] = True,
    server_pid: Annotated[int | None, typer.Option(help="Process of a server on this machine, to be watched.")] = None,
    urgent: Annotated[bool, typer.Option(help="Ask for priority over the server, to send on time.")] = True,
    max_p95_ms: MaxP95 = None,
    min_goodput: MinGoodput = None,
    max_error_ratio: MaxErrorRatio = None,
) -> None:
    """Load a server as a scenario says, and report latencies, goodput and whether the answers stayed the same."""
    if context.invoked_subcommand is not None:
        return
    with _one_line_errors(), _needs_extra("loadtest"):
        from loadtest.cli.command import load_test, scenario_list
        from loadtest.cli.run import RunOptions
        from loadtest.results.thresholds import Thresholds
        from loadtest.workload.scenario import load_scenario

        if list_scenarios:
            print(scenario_list())
            return
        chosen = load_scenario(scenario).with_overrides(rate, seconds, corpus)
        thresholds = Thresholds(max_p95_ms, min_goodput, max_error_ratio)
        num_guarded = guard_requests if guard else 0
        options = RunOptions(seed, label, knee, num_guarded, server_pid, urgent, thresholds=thresholds)
        raise typer.Exit(load_test(url, chosen, out, options))


@_load_tests.command("report")
def loadtest_report(
    run: Annotated[Path, typer.Argument(help="Folder of a run.")],
    max_p95_ms: MaxP95 = None,
    min_goodput: MinGoodput = None,
    max_error_ratio: MaxErrorRatio = None,
) -> None:
    """Write the report of a run again, with the thresholds it was run with where no others are given."""
    with _one_line_errors(), _needs_extra("loadtest"):
        from loadtest.cli.command import report_on
        from loadtest.results.run_folder import RunFolder
        from loadtest.results.thresholds import Thresholds

        raise typer.Exit(report_on(RunFolder(run), Thresholds(max_p95_ms, min_goodput, max_error_ratio)))


@_load_tests.command("compare")
def loadtest_compare(
    runs: Annotated[list[Path], typer.Argument(help="Folders of two or more runs; the first is the base.")],
    out: Annotated[Path, typer.Option(help="Folder for the comparison.")] = Path("loadtest-runs/comparison"),
) -> None:
    """Compare runs, with differences marked."""
    with _one_line_errors(), _needs_extra("loadtest"):
        from loadtest.cli.command import compare_runs

        compare_runs(runs, out)


def _failure(message: str, code: int = 1) -> typer.Exit:
    """An exit to raise, after one line on standard error."""
    typer.echo(f"kvasir: {' '.join(message.split())}", err=True)
    return typer.Exit(code)


@contextmanager
def _needs_extra(extra: str) -> Iterator[None]:
    """Report a package that is not installed in one line, with the extra that brings it."""
    try:
        yield
    except ModuleNotFoundError as error:
        way_out = f"run `make venv-dev` or `pip install '.[{extra}]'` in a checkout"
        raise _failure(f"`{error.name}` is not installed; {way_out}") from error


@contextmanager
def _one_line_errors() -> Iterator[None]:
    """Errors that a user can do something about end the command with their message; bugs keep their traceback."""
    from server.interface.errors import KvasirError

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
        given = f", not {problem['input']!r}" if isinstance(problem["input"], str) else ""  # it may be a variable's
        lines.append(f"{flag}{str(problem['msg']).removeprefix('Value error, ')}{given}")
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
    counts = ("lines", "sentences", "decoded", "cached", "coalesced", "source_tokens", "target_tokens")
    digits = {"seconds": 3, "tokens_per_second": 1, "rows_per_step": 2}
    rounded = {name: round(getattr(result, name), places) for name, places in digits.items()}
    return {name: getattr(result, name) for name in counts} | rounded


if __name__ == "__main__":
    app()
