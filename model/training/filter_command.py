"""The command `kvasir filter`: parallel text without the pairs that a model finds least probable."""

import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import Progress


def filter_pairs(
    data: Annotated[list[Path], typer.Argument(metavar="FILE ...", help="Pairs, in any format of kvasir train.")],
    model: Annotated[str, typer.Option(metavar="CHECKPOINT", help="Checkpoint or bundle that judges the pairs.")],
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

    from model.checkpoints.weights import build_model
    from model.families.registry import read_checkpoint
    from model.training.corpus import Corpus
    from model.training.filtering import kept_pairs, pair_losses
    from model.training.parallel_text import read_pairs
    from model.training.tokens import TokenSequences
    from model.training.vocabulary import read_vocabulary

    if threads is not None:
        torch.set_num_threads(threads)
    vocabulary = read_vocabulary(Path(model))
    judge = build_model(read_checkpoint(model))
    pairs = [pair for file in data for pair in read_pairs(file, (source, target), swap_columns=swap_columns)]
    if not pairs:
        raise ValueError(f"{data[0]} has no pairs")
    encoded = [vocabulary.encode(side) for side in zip(*pairs, strict=True)]
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
