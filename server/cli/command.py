"""The command line of `kvasir translate`, with a flag for each decoding option."""

import inspect
import json
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import wraps
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, TypeVar, Union, cast, get_args, get_origin

import typer
from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo

from bundle.loading import Bundle, load_bundle
from server.cli.files import STANDARD, check_document_output, check_input, check_output, input_format, opened
from server.cli.offline_options import OfflineOptions, check_document_options, check_line_options
from server.cli.one_line_errors import WRONG_USE, failure, flag_problems
from server.cli.translate.lines import translate_file
from server.cli.translate.stats import OfflineStats
from server.documents.formats.option_fields import FormatFields
from server.documents.formats.registry import DocumentFormat
from server.interface.decoding_options import DecodingOptions
from server.interface.option_table import bounds, section
from server.operations.bundle_search import bundle_folders
from server.operations.defaults import DEFAULT_MODEL, DEFAULT_PIVOT
from server.translation.pipeline import Pipeline
from server.translation.router import Router
from server.workers.cache import DEFAULT_MAX_SENTENCES


@dataclass(frozen=True, slots=True)
class _NotStarted:
    """A bundle in the place of its pipeline: routes are found by manifests alone, before engines start."""

    bundle: Bundle


def chosen_bundles(folder: Path, source: str | None, target: str | None) -> list[Bundle]:
    """Return the bundle for this pair of languages, or two through the pivot language.

    `folder` is a bundle or contains bundles. Without a source language, a model of several serves if it does not read
    which one a text is in. Raises `BundleError`, and `UnsupportedPair` with the available pairs.
    """
    bundles = [load_bundle(each) for each in bundle_folders([folder])]
    router = Router([cast(Pipeline, _NotStarted(bundle)) for bundle in bundles], DEFAULT_PIVOT)
    route = (router.from_any_language(target) if source is None else None) or router.find(source, target)
    return [step.pipeline.bundle for step in route.steps]


Command = TypeVar("Command", bound=Callable[..., None])


def with_options(
    parameter: str, options: type[BaseModel], heading: Callable[[str, FieldInfo], str]
) -> Callable[[Command], Command]:
    """Give a command a flag for each field of `options`. The command receives their values as this parameter.

    Flags have the types, ranges, defaults and descriptions of the fields; `heading` names the section of each.
    """
    flags = [_flag(name, field, heading(name, field)) for name, field in options.model_fields.items()]

    def decorate(command: Command) -> Command:
        @wraps(command)
        def call(**values: object) -> None:
            given = {flag.name: values.pop(flag.name) for flag in flags}
            try:
                chosen = options.model_validate({name: value for name, value in given.items() if value is not None})
            except ValidationError as error:
                raise failure(flag_problems(error.errors(), "kvasir translate"), WRONG_USE) from error
            command(**values, **{parameter: chosen})

        parameters = [each for each in inspect.signature(command).parameters.values() if each.name != parameter]
        parameters += flags
        call.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        call.__annotations__ = {each.name: each.annotation for each in parameters}
        return call  # type: ignore[return-value]  # it takes the flags in place of the parameter

    return decorate


def _flag(name: str, field: FieldInfo, heading: str) -> inspect.Parameter:
    lower, upper = bounds(field)
    description = field.description or ""
    option = typer.Option(
        min=lower,
        max=upper,
        help=f"{description[:1].upper()}{description[1:]}.",
        rich_help_panel=heading,
        show_default=field.default is not False,
    )
    default = None if field.default == () else field.default
    annotation = Annotated[_flag_type(field.annotation), option]  # type: ignore[valid-type]  # known at run time only
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def _flag_type(annotation: object) -> object:
    """Return the type of a flag: a list, which may be repeated, for a tuple; the first type of a union."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return _flag_type(arguments[0])
    if origin in (Union, UnionType):
        first = next(each for each in arguments if each is not NoneType)
        return Union[_flag_type(first), None]  # noqa: UP007 - known at run time only
    if origin is tuple:
        return Union[list[_flag_type(arguments[0])], None]  # type: ignore[misc]  # noqa: UP007 - the same
    return annotation


ModelFolder = Annotated[
    Path,
    typer.Option(
        metavar="FOLDER",
        help="Bundle, or folder of bundles: --source and --target choose among them.",
        show_default="the bundled one",
    ),
]
SourceLanguage = Annotated[
    str | None, typer.Option(metavar="LANGUAGE", help="Language of the input, if the models have several.")
]
TargetLanguage = Annotated[
    str | None, typer.Option(metavar="LANGUAGE", help="Language to translate into, if the models have several.")
]


@with_options("decoding", DecodingOptions, section)
@with_options("document", FormatFields, lambda *_: "Documents")
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
    model: ModelFolder = DEFAULT_MODEL,
    source: SourceLanguage = None,
    target: TargetLanguage = None,
    threads: Annotated[int | None, typer.Option(min=1, help="CPU threads; by default all usable ones.")] = None,
    cache_sentences: Annotated[
        int, typer.Option(min=0, help="Size of the translation cache, in sentences; 0 disables it.")
    ] = DEFAULT_MAX_SENTENCES,
    stats: Annotated[Path | None, typer.Option(metavar="FILE", help="File for statistics of the run, as JSON.")] = None,
    as_json: Annotated[
        bool,
        typer.Option(
            "--json",
            show_default=False,
            help="Write a JSON object for each line, with scores, alternatives and details.",
        ),
    ] = False,
    memory: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Translation memory: .tmx, .tsv or .po. Its sentences are not decoded."),
    ] = None,
    memory_threshold: Annotated[
        int | None,
        typer.Option(
            min=0,
            max=100,
            help="Least score of similar sentences that are used; by default 75.",
            show_default=False,
        ),
    ] = None,
    *,
    document: FormatFields,
    decoding: DecodingOptions,
) -> None:
    """Translate a text file or standard input, one line in, one line out; or a document into --output."""
    check_input(source_file)
    check_output(output, "--output", source_file)
    if stats is not None:
        check_output(str(stats), "--stats", source_file)
    format_options = document.options()
    options = OfflineOptions(source, target, decoding, threads, cache_sentences, as_json, format_options)
    kind = input_format(source_file, format_options, document.format)
    if kind is not None:
        check_document_options(options)
        check_document_output(output, kind, is_named=document.format is not None)
    else:
        check_line_options(options)
    bundles = chosen_bundles(model, source, target)
    with _imported(memory, source, target) as memory_file:
        options = replace(options, memory_file=memory_file, memory_threshold=memory_threshold)
        result = _translated(bundles, source_file, output, kind, options)
    if stats is not None:
        stats.write_text(json.dumps(_as_json(result), indent=2) + "\n", encoding="utf-8")


def _translated(
    bundles: Sequence[Bundle], source_file: str, output: str, kind: DocumentFormat | None, options: OfflineOptions
) -> OfflineStats:
    if kind is not None:
        from server.cli.translate.documents import translate_document_file

        with _progress("paragraphs") as advance:
            result = translate_document_file(bundles, Path(source_file), Path(output), kind, options, advance)
        typer.echo(f"{result.translated_texts} of {result.texts} texts translated{_captions(result)}", err=True)
    else:
        with opened(source_file, "rb") as lines, opened(output, "wb") as translations, _progress("lines") as advance:
            result = translate_file(bundles, lines, translations, options, advance)
    return result


@contextmanager
def _imported(memory: Path | None, source: str | None, target: str | None) -> Iterator[Path | None]:
    """Yield a temporary store with the translation memory of a file."""
    if memory is None:
        yield None
        return
    from server.memory.jobs import import_file
    from server.memory.store import MemoryStore

    with tempfile.TemporaryDirectory() as folder:
        store = MemoryStore(Path(folder) / "memory")
        import_file(store, memory, source=source, target=target)
        store.close()  # worker processes open it again
        yield store.path


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
