"""Omissions: how many are detected and recovered, and the curve of detection against false alarms.

    python -m benchmarks.quality.omissions BUNDLE --data FILE.tsv --data ... [--number 1000] [--ordinary 1000]
        [--seed 1] [--swap-columns] [--beam-size 4] [--target de] [--attention]

Each line of a file is a source, a tab and a reference; --swap-columns exchanges them. An input has two to four short
sentences in one: joined, as an enumeration, with one in brackets, or as a dialogue. It is decoded as one sentence. A
part is omitted if less than 15 % of its character n-grams are in the translation, of its reference and of its own
translation. False alarms are counted for the sentences of at most --ordinary lines of each file: sentences that are
doubted, although their translation has all parts. The extra decoding is counted in rows of decoder steps. A sentence
that is not doubted must have the same translation and log-probability as without the check, bit by bit; the command
exits with 1 otherwise. --attention adds the curve of the attention to each part.
"""

import asyncio
import random
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from typing import Annotated, NamedTuple

import numpy as np
import typer
from numpy.typing import NDArray

from benchmarks.workloads import read_lines, target_language
from bundle.loading import load_bundle
from server.cli.translate.observers import StatsRecorder
from server.interface.decoding_options import DecodingOptions
from server.text.completeness import doubt, may_have_parts, parts
from server.text.segmentation.sentences import sentences
from server.translation.limits import TranslationLimits
from server.translation.pipeline import Pipeline
from server.translation.types import SentenceDetails, Translation, TranslationRequest
from server.workers.engine_pool import EnginePool
from server.workers.pool_options import PoolOptions

_OMITTED = 15.0  # per cent of the n-grams
_NGRAMS = range(2, 7)
_MIN_WORDS, _MAX_WORDS = 3, 9
_END = "</s>"
_HIGHEST = 1000.0
_FALSE_ALARMS = (0.005, 0.01, 0.02, 0.03, 0.05, 0.1)


Flags = NDArray[np.bool_]
Scores = NDArray[np.float64]


class Input(NamedTuple):
    """Several sentences in one, and the source and reference of each."""

    kind: str
    text: str
    parts: list[tuple[str, str]]


def _input(draw: random.Random, short: Sequence[tuple[str, str]]) -> Input:
    kind = draw.choice(("joined", "joined", "enumeration", "brackets", "dialogue"))
    chosen = draw.sample(short, 2 if kind == "brackets" else draw.randint(2, 4))
    sources = [source for source, _ in chosen]
    texts = {
        "joined": " ".join(sources),
        "enumeration": "; ".join(source.rstrip(".") for source in sources) + ".",
        "brackets": f"{sources[0][:-1]} ({sources[1][:-1]}).",
        "dialogue": " ".join(f'"{source}"' for source in sources),
    }
    return Input(kind, texts[kind], chosen)


def _recall(part: str, translation: str) -> float:
    """Return how many of a part's character n-grams a translation has, in per cent."""
    found = []
    for length in _NGRAMS:
        wanted, had = _ngrams(part, length), _ngrams(translation, length)
        if total := sum(wanted.values()):
            found.append(sum(min(number, had[ngram]) for ngram, number in wanted.items()) / total)
    return 100 * sum(found) / max(len(found), 1)


def _ngrams(text: str, length: int) -> Counter[str]:
    letters = re.sub(r"\s+", "", text.casefold())
    return Counter(letters[start : start + length] for start in range(len(letters) - length + 1))


class _Model:
    """Translates with one bundle, and with the options of each call."""

    def __init__(self, pipeline: Pipeline, source: str, target: str, beam_size: int) -> None:
        self._pipeline = pipeline
        self.languages = (source, target)
        self._beam_size = beam_size

    def translate(self, texts: Sequence[str], **options: object) -> list[Translation]:
        chosen = DecodingOptions.given({"beam_size": self._beam_size, "return_scores": True, **options})
        request = TranslationRequest(tuple(texts), *self.languages, chosen)
        return asyncio.run(self._pipeline.translate(request)).translations


def _least_recall(inputs: Sequence[Input], translations: Sequence[str], own: dict[str, str]) -> Scores:
    """Return the recall of the part of each input that the translation has least of."""
    return np.array(
        [
            min(max(_recall(reference, text), _recall(own[source], text)) for source, reference in each.parts)
            for each, text in zip(inputs, translations, strict=True)
        ]
    )


def _doubts(sources: Sequence[str], translations: Sequence[Translation], languages: tuple[str, str]) -> Scores:
    """Return how doubtful translations are, with the limits in `server/text/completeness.py` at 1."""
    return np.array(
        [
            min(doubt(source, done.text, languages, done.log_probability / max(done.target_tokens, 1)), _HIGHEST)
            for source, done in zip(sources, translations, strict=True)
        ]
    )


def _coverage(details: Sequence[SentenceDetails]) -> float:
    """Return how much attention the part between marks got that got least, 0 to 1 a token."""
    least = 1.0
    for sentence in details:
        assert sentence.attention is not None
        received = np.minimum(np.array(sentence.attention, np.float32).sum(axis=0), 1)
        part: list[float] = []
        for token, amount in zip([*sentence.source_tokens, _END], [*received.tolist(), 0.0], strict=False):
            if any(character.isalnum() for character in token) and token != _END:
                part.append(amount)
            elif part:
                least, part = min(least, sum(part) / len(part)), []
    return least


def _bits(translation: Translation) -> tuple[str, str]:
    """Return a translation and its log-probability, in a form that compares bit by bit."""
    return translation.text, translation.log_probability.hex()


def _curve(signals: Scores, omitted: Flags, alarms: Scores) -> str:
    """Return the share of omissions that are detected at each share of false alarms."""
    shares = []
    for rate in _FALSE_ALARMS:
        limit = np.quantile(alarms, 1 - rate)
        shares.append(f"{100 * float((signals[omitted] > limit).mean()):.0f} %")
    return " | ".join(shares)


@dataclass(frozen=True, slots=True)
class Traffic:
    """Ordinary sentences without and with the check: which are doubted or lack a part, and the rows of steps."""

    first: list[Translation]
    alarms: Flags
    omitted: Flags
    num_changed: int  # although they passed
    first_rows: int
    extra_rows: int

    def joined(self, other: "Traffic") -> "Traffic":
        """Return the sentences of both."""
        return Traffic(
            self.first + other.first,
            np.concatenate([self.alarms, other.alarms]),
            np.concatenate([self.omitted, other.omitted]),
            self.num_changed + other.num_changed,
            self.first_rows + other.first_rows,
            self.extra_rows + other.extra_rows,
        )

    def row(self, name: str) -> str:
        """Return the figures as a row of a Markdown table."""
        shares = (self.alarms, self.alarms & self.omitted, self.alarms & ~self.omitted)
        cells = [f"{100 * float(each.mean()):.2f} %" for each in shares]
        extra = f"{100 * self.extra_rows / self.first_rows:.1f} %"
        return f"| {name} | {len(self.first)} | {' | '.join(cells)} | {extra} | {self.num_changed} |"


def _traffic(model: _Model, lines: Sequence[str], recorder: StatsRecorder) -> Traffic:
    recorder.take()
    first = model.translate(lines, if_incomplete="ignore")
    first_rows = recorder.take().rows
    checked = model.translate(lines)
    extra_rows = recorder.take().rows - first_rows
    ended_badly = np.array([bool(done.recovered or done.incomplete) for done in checked])
    alarms = ended_badly | (_doubts(lines, first, model.languages) >= 1)
    compared = zip(first, checked, alarms, strict=True)
    num_changed = sum(_bits(before) != _bits(after) for before, after, is_alarm in compared if not is_alarm)
    return Traffic(first, alarms, _lack_parts(model, lines, first), num_changed, first_rows, extra_rows)


def _lack_parts(model: _Model, lines: Sequence[str], translations: Sequence[Translation]) -> Flags:
    """Return which sentences of several parts lack one, compared with the translation of each part alone."""
    spans = {text: parts(text, model.languages[0]) for text in lines if may_have_parts(text)}
    divided = {text: [text[start:end] for start, end in each] for text, each in spans.items() if len(each) > 1}
    alone = sorted({part for each in divided.values() for part in each})
    own = dict(zip(alone, [done.text for done in model.translate(alone, if_incomplete="ignore")], strict=True))
    return np.array(
        [
            min((_recall(own[part], done.text) for part in divided.get(text, ())), default=100.0) < _OMITTED
            for text, done in zip(lines, translations, strict=True)
        ]
    )


def main(
    bundle_folder: Annotated[Path, typer.Argument(metavar="BUNDLE")],
    data: Annotated[list[Path], typer.Option(metavar="FILE.tsv")],
    number: int = 1000,
    ordinary: int = 1000,
    seed: int = 1,
    swap_columns: Annotated[bool, typer.Option("--swap-columns", help="read sources from the second column")] = False,
    beam_size: int = 4,
    target: Annotated[str | None, typer.Option(help="target language, for a bundle with several")] = None,
    attention: Annotated[bool, typer.Option("--attention", help="add the curve of the attention")] = False,
) -> None:
    """Print rates and curves, as Markdown."""
    bundle = load_bundle(bundle_folder)
    source, language = bundle.config.source_languages[0], target_language(bundle, target)
    files: dict[str, list[tuple[str, str]]] = {}
    for file in data:
        columns = [line.split("\t")[:2] for line in read_lines(file, None)]
        files[file.stem] = [(pair[1], pair[0]) if swap_columns else (pair[0], pair[1]) for pair in columns]
    pairs = [pair for each in files.values() for pair in each]
    short = [pair for pair in pairs if _MIN_WORDS <= len(pair[0].split()) <= _MAX_WORDS and pair[0][-1] in ".!?"]
    draw = random.Random(seed)  # noqa: S311 - the same seed gives the same inputs
    inputs = [_input(draw, short) for _ in range(number)]
    samples = {
        name: [
            found.text for text, _ in draw.sample(each, min(ordinary, len(each))) for found in sentences(text, source)
        ]
        for name, each in files.items()
    }
    texts = [each.text for each in inputs]
    recorder = StatsRecorder()
    pool_options = PoolOptions(replicas=1, threads_per_replica=1, max_waiting=1 << 20, observe=recorder)
    pool = EnginePool.open(bundle, pool_options)
    try:
        model = _Model(Pipeline(pool, TranslationLimits()), source, language, beam_size)
        distinct = sorted({part for each in inputs for part, _ in each.parts})
        own = dict(zip(distinct, [done.text for done in model.translate(distinct)], strict=True))
        first = model.translate(texts, split=False, if_incomplete="ignore")
        recovered = model.translate(texts, split=False)
        traffic = {name: _traffic(model, lines, recorder) for name, lines in samples.items()}
        usual = [text for lines in samples.values() for text in lines]
        options = {"split": False, "return_attention": True, "if_incomplete": "ignore", "alignment_layer": -2}
        seen, usual_seen = (model.translate(each, **options) if attention else [] for each in (texts, usual))
    finally:
        pool.close()
    before = _least_recall(inputs, [done.text for done in first], own)
    after = _least_recall(inputs, [done.text for done in recovered], own)
    omitted = before < _OMITTED
    detected = np.array([bool(done.recovered or done.incomplete) for done in recovered])
    mended = (after >= _OMITTED) & detected & omitted
    print(f"{number} inputs, {int(omitted.sum())} with an omission\n")
    print(f"detected: {100 * float(detected[omitted].mean()):.1f} %")
    print(f"recovered of the detected: {100 * float(mended.sum() / max((detected & omitted).sum(), 1)):.1f} %")
    print(f"least recall of a part: {before.mean():.1f}, with recovery {after.mean():.1f}")
    print("\n| ordinary sentences | number | doubted | with an omission | false alarms | extra decoding | changed |")
    print("|---|---|---|---|---|---|---|")
    for name, each in traffic.items():
        print(each.row(name))
    total = reduce(Traffic.joined, traffic.values())
    print(total.row("all"))
    print()
    scores, usual_scores = _doubts(texts, first, model.languages), _doubts(usual, total.first, model.languages)
    lengths = np.array([len(t) / max(len(d.text), 1) for t, d in zip(texts, first, strict=True)])
    usual_lengths = np.array([len(t) / max(len(d.text), 1) for t, d in zip(usual, total.first, strict=True)])
    is_whole = ~total.omitted
    print("| detected at false alarms of | " + " | ".join(f"{100 * rate:g} %" for rate in _FALSE_ALARMS) + " |")
    print("|---|" + "---|" * len(_FALSE_ALARMS))
    print(f"| parts, their lengths and probability | {_curve(scores, omitted, usual_scores[is_whole])} |")
    if attention:
        covered = -np.array([_coverage(done.sentences) for done in seen])
        usual_covered = -np.array([_coverage(done.sentences) for done in usual_seen])
        print(f"| attention to each part | {_curve(covered, omitted, usual_covered[is_whole])} |")
    print(f"| length alone | {_curve(lengths, omitted, usual_lengths[is_whole])} |")
    raise typer.Exit(int(total.num_changed > 0))


if __name__ == "__main__":
    typer.run(main)
