"""The commands: kvasir serve, pull, translate, export, train … Each imports what it needs."""

import gc
import os
import signal
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Annotated, Literal, NoReturn

import typer

from server.cli.help_pages import ForwardingCommand, PlainCommand, plain_app, run_command
from server.cli.keys import app as keys
from server.cli.memory import app as memory
from server.cli.one_line_errors import WRONG_USE, failure, flag_problems, needs_extra, one_line_errors

app = plain_app("Kvasir serves encoder-decoder Transformers.")


def _show_version(is_wanted: bool) -> None:
    if is_wanted:
        from server.operations.version import version

        typer.echo(f"kvasir {version()}")
        raise typer.Exit


@app.callback()
def kvasir(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Kvasir serves encoder-decoder Transformers."""
    try:
        Path.cwd()
    except OSError as error:
        raise failure(f"the working directory cannot be used: {error.strerror}; change to another one") from error


def _exit_at_once(number: int, frame: object) -> NoReturn:
    raise SystemExit(0)  # there are no requests yet


_DECIDE_ON_PROCESSES = ("--device", "--engine-processes", "KVASIR_DEVICE", "KVASIR_ENGINE_PROCESSES")


@app.command(cls=ForwardingCommand)
def serve(context: typer.Context) -> None:
    """Serve models over HTTP."""
    # The first process of a container receives only signals with a handler, and loading takes seconds.
    signal.signal(signal.SIGTERM, _exit_at_once)
    gc.disable()  # until the models are loaded: nearly all objects stay, and collections would visit them in vain
    from server.workers.forkserver import start_forkserver

    # It imports the engine while this process reads the settings, unless one of them may say that it is not needed.
    if {flag.partition("=")[0] for flag in context.args}.union(os.environ).isdisjoint(_DECIDE_ON_PROCESSES):
        start_forkserver()
    from pydantic import ValidationError

    from server.cli.settings_flags import names_and_settings

    try:
        names, settings = names_and_settings(context.args)
    except ValidationError as error:
        raise failure(flag_problems(error.errors(), "kvasir serve"), WRONG_USE) from error
    if names:
        with one_line_errors(), needs_extra("export"):
            from library.command import pull_models
            from library.pull import PullOptions

            precision: Precision = "float16" if settings.device == "cuda" else "int8"
            folders = pull_models(names, PullOptions(precision))
            listed = settings.model if "model" in settings.model_fields_set else []
            settings = settings.model_copy(update={"model": [*folders, *listed]})
    if settings.device == "cpu" and settings.engine_processes is not False:
        start_forkserver()
    from server.cli.serve import serve as run

    with one_line_errors():
        raise typer.Exit(run(settings))


def _exit_on_signals() -> None:
    """Let signals that would end the process at once raise SystemExit, for the deletion of what is half made."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) == signal.SIG_DFL:  # nohup ignores SIGHUP
            signal.signal(number, _exit_with_number)


def _exit_with_number(number: int, frame: object) -> NoReturn:
    signal.signal(number, signal.SIG_IGN)  # a second one would interrupt the deletion
    raise SystemExit(128 + number)


Precision = Literal["float32", "int8", "float16"]
PrecisionFlag = Annotated[Precision, typer.Option(help="Precision of the weights; float16 is for GPUs.")]
SourceFlag = Annotated[
    list[str] | None, typer.Option(help="Source language, if the checkpoint lists none; may be repeated.")
]
TargetFlag = Annotated[
    list[str] | None, typer.Option(help="Target language, if the checkpoint lists none; may be repeated.")
]


@app.command(cls=PlainCommand)
def pull(
    names: Annotated[
        list[str],
        typer.Argument(
            metavar="NAME", help="Language pair (en-fr), name of the hub, URL, folder or archive; may be repeated."
        ),
    ],
    precision: PrecisionFlag = "int8",
    source: SourceFlag = None,
    target: TargetFlag = None,
    sha256: Annotated[str | None, typer.Option(metavar="HEX", help="Required SHA-256 of the file of a URL.")] = None,
    registry: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="Source of models of language pairs: mozilla, opus-mt, any (mozilla, then opus-mt), or a URL or file.",
        ),
    ] = "any",
    tier: Annotated[
        Literal["base", "base-memory", "tiny"] | None,
        typer.Option(help="Size of a model of Mozilla's registry; by default the best one."),
    ] = None,
    download_only: Annotated[
        bool, typer.Option("--download-only", help="Download the files of Mozilla's registry without conversion.")
    ] = False,
) -> None:
    """Download models and convert them for `kvasir serve NAME`."""
    _exit_on_signals()
    with one_line_errors(), needs_extra("export"):
        from library.command import pull_models
        from library.pull import PullOptions

        pull_models(names, PullOptions(precision, source or (), target or (), sha256, registry, tier, download_only))


@app.command(cls=PlainCommand)
def models(as_json: Annotated[bool, typer.Option("--json", help="Write JSON.")] = False) -> None:
    """List the models that `kvasir pull` made."""
    with one_line_errors():
        from library.command import list_models

        list_models(as_json=as_json)


@app.command(cls=PlainCommand)
def remove(
    names: Annotated[list[str], typer.Argument(metavar="NAME", help="Name in the list of `kvasir models`, or a pair.")],
) -> None:
    """Delete models that `kvasir pull` made."""
    with one_line_errors():
        from library.command import remove_models

        remove_models(names)


@app.command(cls=ForwardingCommand)
def translate(context: typer.Context) -> None:
    """Translate a document, a text file or standard input."""
    # A reader of the output that stops reading ends the command without a message, as it ends any filter.
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    with one_line_errors():
        gc.disable()  # what is imported stays, and collections would visit it in vain
        from server.cli.command import translate as translation

        gc.freeze()
        gc.enable()
        run_command(translation, context.args, "kvasir translate")


@app.command(cls=ForwardingCommand)
def live(context: typer.Context) -> None:
    """Translate standard input while it grows: speech that is being recognised, a chat, a stream."""
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    with one_line_errors():
        from server.cli.live import live as translation

        run_command(translation, context.args, "kvasir live")


@app.command(cls=ForwardingCommand)
def train(context: typer.Context) -> None:
    """Train a model from parallel text."""
    with one_line_errors(), needs_extra("train"):
        from model.training.command import train as training

        run_command(_with_bundles(training), context.args, "kvasir train")


@app.command("filter", cls=ForwardingCommand)
def filter_pairs(context: typer.Context) -> None:
    """Drop the least probable pairs of parallel text."""
    with one_line_errors(), needs_extra("train"):
        from model.training.command import filter_pairs as filtering

        run_command(_with_bundles(filtering), context.args, "kvasir filter")


@app.command(cls=ForwardingCommand)
def calibrate(context: typer.Context) -> None:
    """Teach a bundle what it copies, which repairs it gains from, and how good its translations are."""
    with one_line_errors(), needs_extra("train"):
        from library.calibration import calibrate as calibration

        run_command(calibration, context.args, "kvasir calibrate")


@app.command(cls=ForwardingCommand)
def shortlist(context: typer.Context) -> None:
    """Teach a bundle which tokens a translation may have, for faster decoding."""
    with one_line_errors(), needs_extra("train"):
        from library.shortlisting import shortlist as build

        run_command(build, context.args, "kvasir shortlist")


def _with_bundles(command: Callable[..., None]) -> Callable[..., None]:
    """Return a command that takes bundles as checkpoints. Their reader is imported when it runs, not for its help."""

    @wraps(command)
    def run(*arguments: object, **options: object) -> None:
        from export.recovery import KvasirBundle
        from model.families.registry import add_format

        add_format(KvasirBundle())
        command(*arguments, **options)

    return run


@app.command(cls=PlainCommand)
def mcp(
    url: Annotated[
        str | None,
        typer.Option(metavar="URL", help="Address of a running server; by default models are loaded by this command."),
    ] = None,
    api_key: Annotated[
        str | None, typer.Option(metavar="KEY", envvar="KVASIR_MCP_API_KEY", help="API key for the server at URL.")
    ] = None,
    model: Annotated[
        list[Path] | None,
        typer.Option(metavar="FOLDER", help="Bundle, or folder of bundles, to load; may be repeated."),
    ] = None,
) -> None:
    """Offer translation to language models as tools of an MCP server on standard input and output."""
    if url is not None and not url.startswith(("http://", "https://")):
        raise failure(f"--url must be like http://127.0.0.1:8000. Given: {url}", WRONG_USE)
    if url is not None and model:
        raise failure("--model has no effect with --url: the server has its own models", WRONG_USE)
    with one_line_errors(), needs_extra("mcp"):
        from kvasir_client.mcp_server import remote_client, serve_tools, serve_tools_of
        from server.cli.local_app import local_app
        from server.operations.version import version

        if url is None:
            serve_tools_of(local_app(model), version())
        else:
            serve_tools(remote_client(url, api_key), version())


@app.command(cls=PlainCommand)
def export(
    checkpoint: Annotated[
        str,
        typer.Argument(
            metavar="CHECKPOINT", help="Folder or archive of a checkpoint, a .pt file, or a name on the hub."
        ),
    ],
    bundle: Annotated[Path, typer.Argument(metavar="BUNDLE", help="Folder to write the bundle to.")],
    precision: PrecisionFlag = "int8",
    name: Annotated[str | None, typer.Option(help="Name of the model; by default from the checkpoint.")] = None,
    source: SourceFlag = None,
    target: TargetFlag = None,
    config: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="JSON file of your own model; CHECKPOINT is the file of its weights."),
    ] = None,
    to: Annotated[
        Literal["bundle", "checkpoint", "marian"],
        typer.Option(
            help="Format: a bundle; a checkpoint, where CHECKPOINT is a bundle; or the .npz of Marian's own tools."
        ),
    ] = "bundle",
) -> None:
    """Convert a checkpoint into a bundle, and verify the bundle."""
    _exit_on_signals()
    with one_line_errors():
        with needs_extra("export"):
            from export.exporter import export_bundle
        if to == "checkpoint":
            from export.recovery import export_checkpoint

            export_checkpoint(Path(checkpoint), bundle, lambda message: typer.echo(message, err=True))
            typer.echo(f"{checkpoint} is in {bundle}: kvasir train FOLDER --init {bundle} …")
            return
        if to == "marian":
            from export.staging import require_empty, staged
            from model.families.marian.npz_writing import write_marian_npz
            from model.families.registry import read_checkpoint

            require_empty(bundle)
            with staged(bundle) as staging:
                write_marian_npz(read_checkpoint(checkpoint), staging, lambda message: typer.echo(message, err=True))
            typer.echo(f"{checkpoint} is in {bundle}: marian-decoder -c {bundle}/decoder.yml")
            return
        from library.copying import add_copying

        written = export_bundle(
            checkpoint,
            bundle,
            precision,
            name,
            lambda message: typer.echo(message, err=True),
            source or (),
            target or (),
            config,
        )
        add_copying(written, lambda message: typer.echo(message, err=True))
        typer.echo(f"{written.config.name} is in {written.path}: kvasir serve --model {written.path}")


app.add_typer(keys, name="keys")
app.add_typer(memory, name="memory")

_load_tests = plain_app("Measure the capacity and the latency of a running server.")
app.add_typer(_load_tests, name="loadtest")

MaxP95 = Annotated[float | None, typer.Option("--max-p95-ms", help="Exit with 2 if p95 of a stage is above.")]
MinGoodput = Annotated[float | None, typer.Option("--min-goodput", help="Exit with 2 if goodput is below.")]
MaxErrorRatio = Annotated[float | None, typer.Option("--max-error-ratio", help="Exit with 2 if more requests fail.")]


@_load_tests.callback(invoke_without_command=True)
def loadtest(
    context: typer.Context,
    url: Annotated[str, typer.Option(metavar="URL", help="Address of the server.")] = "http://127.0.0.1:8000",
    scenario: Annotated[str, typer.Option(help="Name from --list, or a TOML file.")] = "steady",
    list_scenarios: Annotated[bool, typer.Option("--list", help="List the scenarios.")] = False,
    rate: Annotated[float | None, typer.Option(help="Requests per second, for scenarios with one rate.")] = None,
    seconds: Annotated[float | None, typer.Option(help="Seconds of each stage.")] = None,
    knee: Annotated[float | None, typer.Option(help="Knee in requests per second; by default it is searched.")] = None,
    seed: Annotated[int, typer.Option(help="Seed of texts and times; equal seeds send equal requests.")] = 1,
    corpus: Annotated[Path | None, typer.Option(metavar="FILE", help="File of sentences, one a line.")] = None,
    label: Annotated[str, typer.Option(help="Name of the run in reports.")] = "",
    output: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Folder for the results; by default in loadtest-runs.")
    ] = None,
    guard_requests: Annotated[int, typer.Option(min=0, help="Number of answers to compare.")] = 300,
    guard: Annotated[bool, typer.Option(help="Compare answers under load with those of the idle server.")] = True,
    server_pid: Annotated[int | None, typer.Option(help="Process of a local server to measure.")] = None,
    urgent: Annotated[bool, typer.Option(help="Run at a higher priority than the server, to send on time.")] = True,
    max_p95_ms: MaxP95 = None,
    min_goodput: MinGoodput = None,
    max_error_ratio: MaxErrorRatio = None,
) -> None:
    """Run a load scenario, and report latencies, goodput and whether the answers stayed the same."""
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
        raise typer.Exit(load_test(url, chosen, output, options))


@_load_tests.command("report", cls=PlainCommand)
def loadtest_report(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="Folder of a run.")],
    max_p95_ms: MaxP95 = None,
    min_goodput: MinGoodput = None,
    max_error_ratio: MaxErrorRatio = None,
) -> None:
    """Write the report of a run again, by default with the thresholds of the run."""
    with one_line_errors(), needs_extra("loadtest"):
        from loadtest.cli.command import report_on
        from loadtest.results.run_folder import RunFolder
        from loadtest.results.thresholds import Thresholds

        raise typer.Exit(report_on(RunFolder(run), Thresholds(max_p95_ms, min_goodput, max_error_ratio)))


@_load_tests.command("compare", cls=PlainCommand)
def loadtest_compare(
    runs: Annotated[
        list[Path], typer.Argument(metavar="RUN", help="Folders of two or more runs; the first is the base.")
    ],
    output: Annotated[Path, typer.Option(metavar="FOLDER", help="Folder for the comparison.")] = Path(
        "loadtest-runs/comparison"
    ),
) -> None:
    """Compare runs, and mark differences."""
    with one_line_errors(), needs_extra("loadtest"):
        from loadtest.cli.command import compare_runs

        compare_runs(runs, output)
