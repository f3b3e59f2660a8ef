"""The command `kvasir shortlist`: a lexical shortlist for a bundle, learned from parallel text."""

import tempfile
from collections import Counter
from itertools import islice
from pathlib import Path
from typing import Annotated, Final

import typer

from bundle.loading import load_bundle
from bundle.shortlist import Shortlist
from export.shortlist import add_shortlist, require_shortlist_support
from library.lexical_model import likely_targets
from model.training.parallel_text import read_pairs
from server.text.tokenizers.registry import open_tokenizer

_LONGEST: Final = 100  # tokens; words of longer texts are too far apart to teach anything


def shortlist(
    bundle: Annotated[Path, typer.Argument(metavar="BUNDLE", help="Bundle that receives the shortlist.")],
    data: Annotated[
        list[Path], typer.Option(metavar="FILE", help="Parallel text in any format of kvasir train; may be repeated.")
    ],
    swap_columns: Annotated[
        bool, typer.Option("--swap-columns", show_default=False, help="The second column is the source.")
    ] = False,
    first: Annotated[
        int, typer.Option(min=0, help="Most frequent tokens of the data, which every translation may have.")
    ] = 100,
    best: Annotated[int, typer.Option(min=1, help="Most probable translations of each source token.")] = 100,
    max_pairs: Annotated[int, typer.Option(min=1, help="Pairs to read: 100,000 take 400 MB and a minute.")] = 200_000,
) -> None:
    """Learn from parallel text which tokens a translation may have, for faster decoding."""
    loaded = load_bundle(bundle)
    config = loaded.config
    require_shortlist_support(config)
    if max(len(config.source_languages), len(config.target_languages)) != 1:
        raise ValueError(
            f"{config.name} must translate from one language to one; others share tokens between languages"
        )
    languages = (config.source_languages[0], config.target_languages[0])
    tokenizer = open_tokenizer(loaded)
    texts = (pair for file in data for pair in read_pairs(file, languages, swap_columns=swap_columns))
    pairs = [
        (source, target)
        for text, translation in islice(texts, max_pairs)
        if (source := tokenizer.encode(text).tolist()) and len(source) <= _LONGEST
        if (target := tokenizer.encode_target(translation)) and len(target) <= _LONGEST
    ]
    if not pairs:
        raise ValueError(f"{', '.join(map(str, data))} must have pairs of at most {_LONGEST} tokens")
    lists = likely_targets(pairs, config.shapes.vocab_size, best)
    # Every source has its end. So these are listed always, whichever tokens are the first ones of the vocabulary.
    frequent = Counter(token for _, target in pairs for token in target).most_common(first)
    lists[config.special_tokens.end_of_sequence] = [token for token, _ in frequent]
    with tempfile.TemporaryDirectory() as temporary:
        path = Path(temporary) / "shortlist.bin"
        path.write_bytes(Shortlist.of_lists(0, [sorted(each) for each in lists]).to_bytes())
        add_shortlist(loaded, path)
    num_listed = sum(map(bool, lists))
    typer.echo(
        f"{config.name}: tokens for {num_listed} of {config.shapes.vocab_size} source tokens, from {len(pairs)} pairs"
    )
