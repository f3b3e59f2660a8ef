"""Sentences that run over captions: translated caption by caption, joined and divided again, and whole.

    python -m benchmarks.quality.captions BUNDLE --data FILE.tsv --data ... [--swap-columns] [--limit 200] [--seed 1]
        [--parallel FILE.tsv.xz]

Each sentence is cut into captions of at most 32 characters at random word boundaries, and all sentences of a file are
one film, without a longer pause between sentences. BLEU and chrF compare the captions of a sentence, one behind the
other, with its reference; `returned` is the share of what is lost between the whole sentence and caption by caption
that comes back. A cut is where an aligner puts it if at most one word lies between them: the aligner is IBM model 1
with a preference for the diagonal (Dyer, Chahuneau and Smith 2013), trained on `--parallel` and the translations, and
puts a cut where as many of its links as possible stay on their side.
"""

import lzma
import random
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate, islice, pairwise
from pathlib import Path
from typing import Annotated

import numpy as np
import regex
import srt
import typer
from numpy.typing import NDArray
from sacrebleu.metrics import BLEU, CHRF

from benchmarks.workloads import read_lines
from bundle.loading import Bundle, load_bundle
from server.cli.offline_options import OfflineOptions
from server.cli.translate.documents import translate_document_file
from server.documents.formats.options import FormatOptions
from server.documents.formats.registry import format_of

_MAX_CHARACTERS = 32
_CHARACTERS_PER_SECOND = 15
_PAUSE_SECONDS = 0.1
_MAX_PARALLEL = 40_000
_ROUNDS, _TENSION = 5, 4.0
_WORD = regex.compile(r"\w+|[^\w\s]")

Captions = list[str]


def main(
    bundle: Annotated[Path, typer.Argument(metavar="BUNDLE")],
    data: Annotated[list[Path], typer.Option(metavar="FILE.tsv")],
    swap_columns: Annotated[bool, typer.Option("--swap-columns", help="read sources from the second column")] = False,
    limit: Annotated[int, typer.Option(help="maximum number of lines of each file")] = 200,
    parallel: Annotated[list[Path] | None, typer.Option(metavar="FILE.tsv.xz", help="text for the aligner")] = None,
    seed: int = 1,
    show: Annotated[int, typer.Option(help="print so many sentences with their captions")] = 0,
) -> None:
    """Print one row for each file and way, and the shares."""
    chance = random.Random(seed)  # noqa: S311 - the same seed gives the same captions
    loaded = load_bundle(bundle)
    bleu, chrf = BLEU(), CHRF()
    print("| data | sentences | captions | way | BLEU | chrF |\n|---|---|---|---|---|---|")
    for file in data:
        columns = [line.split("\t") for line in read_lines(file, limit)]
        pairs = [(each[1], each[0]) if swap_columns else (each[0], each[1]) for each in columns]
        pairs = [(source, reference) for source, reference in pairs if len(source) > _MAX_CHARACTERS]
        sentences = [_captions(source, chance) for source, _ in pairs]
        ways = {
            "caption by caption": _translated(loaded, sentences, joins=False),
            "joined": _translated(loaded, sentences, joins=True),
            "whole": [[text] for text in _translated_whole(loaded, [source for source, _ in pairs])],
        }
        scores: dict[str, tuple[float, float]] = {}
        for way, translations in ways.items():
            texts, references = list(map(" ".join, translations)), [[reference for _, reference in pairs]]
            scores[way] = (
                bleu.corpus_score(texts, references).score,
                chrf.corpus_score(texts, references).score,
            )
            number = sum(map(len, translations))
            print(f"| {file.name} | {len(pairs)} | {number} | {way} | {scores[way][0]:.1f} | {scores[way][1]:.1f} |")
        parts, joined, whole = scores.values()
        returned = [100 * (each - low) / (high - low) for low, each, high in zip(parts, joined, whole, strict=True)]
        print(f"\nreturned: {returned[0]:.0f} % of BLEU, {returned[1]:.0f} % of chrF")
        for source, captions in islice(zip(sentences, ways["joined"], strict=True), show):
            print(f"  {' | '.join(source)}\n  {' | '.join(captions)}")
        distances = _distances(sentences, ways["joined"], _parallel(parallel or [], swapped=swap_columns))
        near = sum(distance <= 1 for distance in distances)
        print(
            f"cuts within one word of the aligner's: {near} of {len(distances)}, {100 * near / len(distances):.1f} %\n"
        )
    print(f"BLEU: {bleu.get_signature()}\nchrF: {chrf.get_signature()}")


def _captions(sentence: str, chance: random.Random) -> Captions:
    """Return a sentence in captions: more than half full, they end at random, and before they are too long."""
    words = sentence.split()
    captions = [words[0]]
    for word in words[1:]:
        length = len(captions[-1]) + 1 + len(word)
        if length > _MAX_CHARACTERS or (length > _MAX_CHARACTERS // 2 and chance.random() < 1 / 4):
            captions.append(word)
        else:
            captions[-1] += f" {word}"
    return captions


def _translated(bundle: Bundle, sentences: Sequence[Captions], *, joins: bool) -> list[Captions]:
    """Return the captions of each sentence in the translation of a film with all of them."""
    captions = [caption for sentence in sentences for caption in sentence]
    ends = list(accumulate(len(caption) / _CHARACTERS_PER_SECOND + _PAUSE_SECONDS for caption in captions))
    cues = [
        srt.Subtitle(index, srt.timedelta(seconds=start), srt.timedelta(seconds=end - _PAUSE_SECONDS), caption)
        for index, ((start, end), caption) in enumerate(zip(pairwise([0.0, *ends]), captions, strict=True), start=1)
    ]
    options = FormatOptions(join_captions=joins)
    translated = _translated_file(bundle, "film.srt", srt.compose(cues), options)
    found = [" ".join(cue.content.split()) for cue in srt.parse(translated)]
    bounds = [0, *accumulate(map(len, sentences))]
    return [found[start:end] for start, end in pairwise(bounds)]


def _translated_whole(bundle: Bundle, texts: Sequence[str]) -> list[str]:
    return _translated_file(bundle, "film.txt", "\n".join(texts)).splitlines()


def _translated_file(bundle: Bundle, name: str, content: str, options: FormatOptions | None = None) -> str:
    kind = format_of(name)
    kind = kind if options is None else replace(kind, options=options)
    with tempfile.TemporaryDirectory() as folder:
        source, sink = Path(folder) / name, Path(folder) / f"translated-{name}"
        source.write_text(content, encoding="utf-8")
        translate_document_file([bundle], source, sink, kind, OfflineOptions())
        return sink.read_text(encoding="utf-8")


def _parallel(files: Sequence[Path], *, swapped: bool) -> list[tuple[str, str]]:
    pairs: list[tuple[str, str]] = []
    for file in files:
        with lzma.open(file, "rt", encoding="utf-8") as lines:
            columns = [line.rstrip("\n").split("\t") for line in islice(lines, _MAX_PARALLEL)]
        pairs += [(each[1], each[0]) if swapped else (each[0], each[1]) for each in columns]
    return pairs


def _distances(
    sentences: Sequence[Captions], translations: Sequence[Captions], parallel: Sequence[tuple[str, str]]
) -> list[int]:
    """Return the words between each cut of the translations and the nearest of the best cuts of the aligner."""
    pairs = [(" ".join(source), " ".join(target)) for source, target in zip(sentences, translations, strict=True)]
    links = _aligned([*pairs, *parallel], len(pairs))
    distances: list[int] = []
    for source, target, aligned in zip(sentences, translations, links, strict=True):
        source_cuts = list(accumulate(len(_WORD.findall(caption)) for caption in source))[:-1]
        target_cuts = list(accumulate(len(_WORD.findall(caption)) for caption in target))[:-1]
        for at_source, at_target in zip(source_cuts, target_cuts, strict=True):
            sides = np.where(aligned < at_source, 1, -1)  # of each target word
            kept = np.concatenate([[0], np.cumsum(sides)])
            best = np.flatnonzero(kept == kept.max())
            distances.append(int(np.abs(best - at_target).min()))
    return distances


def _aligned(pairs: Sequence[tuple[str, str]], number: int) -> list[NDArray[np.int64]]:
    """Return the source word of each target word of the first `number` pairs."""
    words = [(_WORD.findall(source.lower()), _WORD.findall(target.lower())) for source, target in pairs]
    words = [(source, target) for source, target in words if source and target]
    ids: dict[str, int] = {}
    coded = [[np.array([ids.setdefault(word, len(ids)) for word in side]) for side in pair] for pair in words]
    keys = np.concatenate([(target[:, None] * len(ids) + source[None]).ravel() for source, target in coded])
    prior = np.concatenate([_prior(len(source), len(target)).ravel() for source, target in coded])
    unique, links = np.unique(keys, return_inverse=True)
    columns = unique % len(ids)  # source words
    lengths = np.concatenate([np.full(len(target), len(source)) for source, target in coded])
    starts = np.concatenate([[0], np.cumsum(lengths)[:-1]])
    table = np.ones(len(unique))
    for _ in range(_ROUNDS):
        weights = table[links] * prior
        weights /= np.repeat(np.add.reduceat(weights, starts), lengths)
        counts = np.bincount(links, weights, len(unique))
        table = counts / np.bincount(columns, counts, len(ids))[columns]
    weights = table[links] * prior
    found, position = [], 0
    for source, target in coded[:number]:
        size = len(source) * len(target)
        found.append(weights[position : position + size].reshape(len(target), len(source)).argmax(axis=1))
        position += size
    return found


def _prior(num_source: int, num_target: int) -> NDArray[np.float64]:
    """Return the preference of each target word for source words that are as far from the beginning."""
    distances: NDArray[np.float64] = np.linspace(0, 1, num_target)[:, None] - np.linspace(0, 1, num_source)[None]
    return np.exp(-_TENSION * np.abs(distances))


if __name__ == "__main__":
    typer.run(main)
