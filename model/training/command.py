"""The commands `kvasir train` and `kvasir filter`."""

import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated, Literal

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from typer.models import OptionInfo

from model.training.settings import DataFile, TrainingSettings
from model.training.settings import Decoder as DecoderName
from model.training.settings import Schedule as ScheduleName

if TYPE_CHECKING:
    from model.training.trainer import Progress as RunProgress


def _option(help_text: str, rich_help_panel: str) -> OptionInfo:
    option: OptionInfo = typer.Option(help=help_text, rich_help_panel=rich_help_panel)
    return option


_SIZES, _PAIRS, _UPDATES, _MEASURING = (
    partial(_option, rich_help_panel=panel)
    for panel in ("A new model", "Additional pairs", "Updates", "Averaging and measuring")
)


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
    vocab_size: Annotated[int, _SIZES("Tokens of the joint vocabulary.")] = 8000,
    d_model: Annotated[int, _SIZES("Width.")] = 256,
    num_heads: Annotated[int, _SIZES("Attention heads.")] = 4,
    feed_forward_width: Annotated[int, _SIZES("Width inside feed-forward layers.")] = 1024,
    num_encoder_layers: Annotated[int, _SIZES("Layers.")] = 6,
    num_decoder_layers: Annotated[int, _SIZES("Layers.")] = 3,
    decoder: Annotated[
        DecoderName, _SIZES("ssru: a recurrent unit instead of self-attention, for fast students.")
    ] = "self-attention",
    max_sentence_tokens: Annotated[int, _SIZES("Pairs with a longer side are skipped.")] = 256,
    copied_pairs: Annotated[
        float, _PAIRS("Pairs with numbers, names, dates and addresses to copy, for each pair of an epoch.")
    ] = 0.0,
    noisy_pairs: Annotated[
        float, _PAIRS("Pairs in capitals, in lower case, without full stop or with a typo, for each pair of an epoch.")
    ] = 0.0,
    joined_pairs: Annotated[float, _PAIRS("Pairs of two to four sentences, for each pair of an epoch.")] = 0.0,
    short_pairs: Annotated[float, _PAIRS("How often pairs of one or two words are taken in addition.")] = 0.0,
    subword_dropout: Annotated[float, _PAIRS("Probability of splitting a token of the source.")] = 0.0,
    split_digits: Annotated[
        bool,
        _PAIRS("Encode each digit as a token of its own."),
    ] = False,
    max_steps: Annotated[int, _UPDATES("Number of updates.")] = 100_000,
    batch_tokens: Annotated[int, _UPDATES("Tokens of a batch, source, target and padding.")] = 8192,
    accumulated_batches: Annotated[int, _UPDATES("Batches of an update.")] = 1,
    schedule: Annotated[ScheduleName, _UPDATES("Decay of the learning rate.")] = "inverse-square-root",
    learning_rate: Annotated[float, _UPDATES("Highest learning rate.")] = 1e-3,
    warmup_steps: Annotated[int, _UPDATES("Updates until the highest learning rate.")] = 1000,
    label_smoothing: Annotated[float, _UPDATES("Probability shared by all tokens.")] = 0.1,
    dropout: Annotated[float, _UPDATES("Dropout of sub-layers and embeddings.")] = 0.1,
    weight_decay: Annotated[float, _UPDATES("Weight decay of AdamW.")] = 0.0,
    max_gradient_norm: Annotated[float, _UPDATES("Largest norm of the gradients; larger ones are scaled down.")] = 1.0,
    log_every: Annotated[int, _MEASURING("Updates between lines of the log.")] = 50,
    snapshot_every: Annotated[int, _MEASURING("Updates between snapshots.")] = 500,
    averaged_snapshots: Annotated[int, _MEASURING("Number of snapshots whose mean is the checkpoint.")] = 5,
    validate_every: Annotated[int, _MEASURING("Updates between validations.")] = 1000,
    max_validation_pairs: Annotated[int, _MEASURING("Pairs of the validation file.")] = 500,
    patience: Annotated[
        int, _MEASURING("Validations without a better BLEU until training ends; 0 disables this.")
    ] = 10,
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
        max_validation_pairs=max_validation_pairs,
        initial=initial,
        vocab_size=vocab_size,
        d_model=d_model,
        num_heads=num_heads,
        feed_forward_width=feed_forward_width,
        num_encoder_layers=num_encoder_layers,
        num_decoder_layers=num_decoder_layers,
        decoder=decoder,
        max_sentence_tokens=max_sentence_tokens,
        copied_pairs=copied_pairs,
        noisy_pairs=noisy_pairs,
        joined_pairs=joined_pairs,
        short_pairs=short_pairs,
        subword_dropout=subword_dropout,
        split_digits=split_digits,
        max_steps=max_steps,
        batch_tokens=batch_tokens,
        accumulated_batches=accumulated_batches,
        schedule=schedule,
        learning_rate=learning_rate,
        warmup_steps=warmup_steps,
        label_smoothing=label_smoothing,
        dropout=dropout,
        weight_decay=weight_decay,
        max_gradient_norm=max_gradient_norm,
        precision=precision or ("bfloat16" if device == "cuda" else "float32"),
        device=device,
        seed=seed,
        log_every=log_every,
        snapshot_every=snapshot_every,
        averaged_snapshots=averaged_snapshots,
        validate_every=validate_every,
        patience=patience,
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
            f"{max_sentence_tokens} tokens and are skipped (--max-sentence-tokens)",
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
