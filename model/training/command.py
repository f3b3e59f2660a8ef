"""The commands `kvasir train` and `kvasir filter`."""

import inspect
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import fields
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated, Literal

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from model.training.settings import DataFile, TrainingSettings

if TYPE_CHECKING:
    from model.training.trainer import Progress as RunProgress


def train(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="Folder of the run; the same command resumes it.")],
    data: Annotated[
        list[str],
        typer.Option(
            metavar="FILE[@SHARE]", help="Pairs; may be repeated. @0.2 takes a fifth each epoch, @3 all thrice."
        ),
    ],
    source: Annotated[str, typer.Option(help="Language of the source.")],
    target: Annotated[str, typer.Option(help="Language of the target.")],
    swap_columns: Annotated[
        bool, typer.Option("--swap-columns", show_default=False, help="The second column is the source.")
    ] = False,
    validation: Annotated[
        str | None, typer.Option(metavar="FILE", help="Pairs for validation, not for training.")
    ] = None,
    initial: Annotated[
        str | None,
        typer.Option("--init", metavar="CHECKPOINT", help="Checkpoint, bundle or hub name to start from."),
    ] = None,
    seed: Annotated[int, typer.Option(help="The same seed produces the same weights on the same machine.")] = 1,
    device: Annotated[Literal["cpu", "cuda"] | None, typer.Option(help="Default: cuda if available.")] = None,
    threads: Annotated[int | None, typer.Option(min=1, help="CPU threads; default: PyTorch's.")] = None,
    precision: Annotated[
        Literal["float32", "bfloat16"] | None,
        typer.Option(help="Precision of multiplications; default: bfloat16 on a GPU. Weights are float32."),
    ] = None,
    **flags: object,
) -> None:
    """Train a translation model from parallel text; the result is a checkpoint for kvasir export."""
    # Imported here, so that --help works without PyTorch.
    import torch

    from model.training.trainer import Trainer

    if threads is not None:
        torch.set_num_threads(threads)
    device = device or ("cuda" if torch.cuda.is_available() else "cpu")
    settings = TrainingSettings(
        data=tuple(DataFile.parse(written) for written in data),
        source_language=source,
        target_language=target,
        swap_columns=swap_columns,
        validation=validation,
        initial=initial,
        precision=precision or ("bfloat16" if device == "cuda" else "float32"),
        device=device,
        seed=seed,
        **flags,  # type: ignore[arg-type]  # typer has checked them
    )
    if settings.precision == "bfloat16" and device == "cpu" and not _has_bfloat16_instructions():
        typer.echo(
            "this processor has no bfloat16 instructions; updates take about ten times as long as with "
            "--precision float32",
            err=True,
        )
    trainer = Trainer(settings, folder)
    corpus = trainer.corpus
    if corpus.num_left_out:
        typer.echo(
            f"{corpus.num_left_out} of {corpus.num_left_out + len(corpus.sources)} pairs have a side of more than "
            f"{settings.max_sentence_tokens} tokens and are skipped (--max-sentence-tokens)",
            err=True,
        )
    with _stopped_by_signals() as is_stopped, _progress(settings.max_steps) as report:
        is_done = trainer.run(report, is_stopped)
    step = trainer.position.step
    if not is_done:
        typer.echo(f"interrupted after {step} updates; run the same command to resume", err=True)
        raise typer.Exit(1)
    best = f"; best BLEU {trainer.position.best_bleu:.1f} after {trainer.position.best_step}" if validation else ""
    checkpoint = trainer.run_folder.checkpoint
    typer.echo(f"{step} updates{best}: kvasir export {checkpoint} BUNDLE")


def _with_flags_of_settings(signature: inspect.Signature) -> inspect.Signature:
    """Return a signature with a flag for each setting that has a help text, in place of `**flags`."""
    *parameters, _ = signature.parameters.values()
    flags = [
        inspect.Parameter(
            setting.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=setting.default,
            annotation=Annotated[
                setting.type,
                typer.Option(help=setting.metadata["help"], rich_help_panel=setting.metadata["panel"]),
            ],
        )
        for setting in fields(TrainingSettings)
        if "help" in setting.metadata
    ]
    return signature.replace(parameters=[*parameters, *flags])


train.__signature__ = _with_flags_of_settings(inspect.signature(train))  # type: ignore[attr-defined]


def _has_bfloat16_instructions() -> bool:
    """Return whether the processor has bfloat16 instructions; their names differ between x86 and ARM."""
    import torch

    capabilities = torch.cpu.get_capabilities()
    return any(capabilities.get(name) for name in ("avx512_bf16", "amx_bf16", "bf16"))


@contextmanager
def _stopped_by_signals() -> Iterator[Callable[[], bool]]:
    """Yield a function that returns whether SIGINT or SIGTERM arrived. A second SIGINT interrupts at once."""
    received: list[int] = []

    def remember(number: int, _: FrameType | None) -> None:
        received.append(number)
        signal.signal(signal.SIGINT, signal.default_int_handler)

    before = {number: signal.signal(number, remember) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield lambda: bool(received)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def _progress(max_steps: int) -> "Iterator[Callable[[RunProgress], None]]":
    """Yield a function that updates a progress bar on standard error, if that is a terminal."""
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    columns = (
        TextColumn("epoch {task.fields[epoch]}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        TextColumn("loss {task.fields[loss]:.3f}{task.fields[scores]}"),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=max_steps, epoch=0, loss=float("nan"), scores="")

        def report(progress: "RunProgress") -> None:
            scores = progress.scores
            written = "" if scores is None else f"  BLEU {scores.bleu:.1f}  chrF {scores.chrf:.1f}"
            bar.update(task, completed=progress.step, epoch=progress.epoch, loss=progress.loss, scores=written)

        yield report


def filter_pairs(
    data: Annotated[list[Path], typer.Argument(metavar="FILE ...", help="Pairs, in any format of kvasir train.")],
    model: Annotated[str, typer.Option(metavar="CHECKPOINT", help="Checkpoint, bundle or hub name that judges.")],
    source: Annotated[str, typer.Option(help="Language of the source.")],
    target: Annotated[str, typer.Option(help="Language of the target.")],
    output: Annotated[Path, typer.Option(metavar="FILE", help="File for the pairs that are kept, tab-separated.")],
    drop: Annotated[float, typer.Option(min=0, max=1, help="Share of the pairs of similar length to drop.")] = 0.1,
    dropped: Annotated[
        Path | None, typer.Option(metavar="FILE", help="File for the other pairs, with their loss in a third column.")
    ] = None,
    swap_columns: Annotated[
        bool, typer.Option("--swap-columns", show_default=False, help="The second column is the source, in both files.")
    ] = False,
    max_sentence_tokens: Annotated[int, typer.Option(min=1, help="Pairs with a longer side are dropped.")] = 256,
    threads: Annotated[int | None, typer.Option(min=1, help="CPU threads; default: PyTorch's.")] = None,
) -> None:
    """Drop the pairs of parallel text that a model finds least probable."""
    # Imported here, so that --help works without PyTorch.
    import torch

    from model.checkpoints.hugging_face_files import find_checkpoint
    from model.checkpoints.weights import build_model
    from model.families.registry import read_checkpoint
    from model.training.corpus import Corpus, TokenSequences
    from model.training.filtering import kept_pairs, pair_losses
    from model.training.parallel_text import read_pairs
    from model.training.vocabulary import read_vocabulary

    if threads is not None:
        torch.set_num_threads(threads)
    folder = find_checkpoint(model)
    vocabulary = read_vocabulary(folder.path, target)
    judge = build_model(read_checkpoint(folder))
    pairs = [pair for file in data for pair in read_pairs(file, (source, target), swap_columns=swap_columns)]
    if not pairs:
        raise ValueError(f"{data[0]} has no pairs")
    sources, targets = zip(*pairs, strict=True)
    encoded = vocabulary.encode(sources), vocabulary.encode_targets(targets)
    is_short = [max(map(len, sides)) <= max_sentence_tokens for sides in zip(*encoded, strict=True)]
    pairs = [pair for pair, each in zip(pairs, is_short, strict=True) if each]
    sides = [TokenSequences.of(ids for ids, each in zip(side, is_short, strict=True) if each) for side in encoded]
    start = judge.config.decoder_start_token_id
    corpus = Corpus(sides[0], sides[1], (len(pairs),), vocabulary.padding, start, 0)
    with Progress(console=Console(stderr=True), transient=True, disable=not sys.stderr.isatty()) as bar:
        task = bar.add_task("", total=len(pairs))
        losses = pair_losses(judge, corpus, torch.device("cpu"), lambda done: bar.update(task, completed=done))
    kept = kept_pairs(losses, corpus.targets.lengths, drop)
    with ExitStack() as files:
        kept_file = files.enter_context(output.open("w", encoding="utf-8"))
        dropped_file = None if dropped is None else files.enter_context(dropped.open("w", encoding="utf-8"))
        for pair, loss, is_kept in zip(pairs, losses, kept, strict=True):
            line = "\t".join(pair[::-1] if swap_columns else pair)
            if is_kept:
                kept_file.write(line + "\n")
            elif dropped_file is not None:
                dropped_file.write(f"{line}\t{loss:.2f}\n")
    too_long = f"; {is_short.count(False)} are longer than {max_sentence_tokens} tokens" * (False in is_short)
    typer.echo(f"{int(kept.sum())} of {len(is_short)} pairs are in {output}{too_long}")
