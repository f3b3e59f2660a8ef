"""The command line: kvasir serve | translate | train | export | loadtest. Each command imports what it needs."""

import signal
import sys
from pathlib import Path
from typing import Annotated, Literal, NoReturn

# `python -m` puts the working directory first: a `server.py` there would replace the package of that name.
if __name__ == "__main__" and not sys.flags.safe_path and Path(sys.path[0]) != Path(__file__).parent:
    del sys.path[0]

import typer
from typer.core import TyperCommand

from server.cli.one_line_errors import WRONG_USE, failure, flag_problems, needs_extra, one_line_errors


class _Forwarding(TyperCommand):
    """A command that hands its arguments on unread, to a parser that is imported when the command is called."""

    def parse_args(self, ctx: typer.Context, args: list[str]) -> list[str]:  # type: ignore[override]
        """Keep the arguments, `--help` and `--` included."""
        ctx.args = list(args)
        return ctx.args


app = typer.Typer(
    help="Kvasir serves encoder-decoder Transformers.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


def _end_at_once(number: int, frame: object) -> NoReturn:
    raise SystemExit(0)  # there are no requests yet


@app.command(cls=_Forwarding)
def serve(context: typer.Context) -> None:
    """Serve models over HTTP. Every setting is a flag and an environment variable: see kvasir serve --help."""
    # The first process of a container gets no signal that it has not asked for, and loading takes a while.
    signal.signal(signal.SIGTERM, _end_at_once)
    from pydantic import ValidationError

    from server.operations.settings import settings_from_flags

    try:
        settings = settings_from_flags(context.args)
    except ValidationError as error:
        raise failure(flag_problems(error.errors(), "kvasir serve"), WRONG_USE) from error
    from server.cli.serve import serve as run

    with one_line_errors():
        raise typer.Exit(run(settings))


@app.command(cls=_Forwarding)
def translate(context: typer.Context) -> None:
    """Translate a file or standard input, line by line, or a document: see kvasir translate --help."""
    # A reader of the output that stops reading ends the command without a message, as it ends any filter.
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    with one_line_errors():
        from server.cli.command import app as translation

        translation(context.args, prog_name="kvasir translate")


@app.command(cls=_Forwarding)
def train(context: typer.Context) -> None:
    """Train a model from parallel text: see kvasir train --help."""
    with one_line_errors():
        with needs_extra("train"):
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
    with one_line_errors():
        with needs_extra("export"):
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
    with one_line_errors(), needs_extra("loadtest"):
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
    with one_line_errors(), needs_extra("loadtest"):
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
    with one_line_errors(), needs_extra("loadtest"):
        from loadtest.cli.command import compare_runs

        compare_runs(runs, out)


if __name__ == "__main__":
    app()
