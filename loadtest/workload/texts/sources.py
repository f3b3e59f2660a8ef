"""Where the sentences of a load test come from: composed by a grammar, or lines of a file of the user's."""

import random
from collections.abc import Callable
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Protocol

from loadtest.workload.texts.grammar import Grammar
from loadtest.workload.texts.lengths import LengthDistribution

FOLDER = Path(__file__).parent


class SentenceSource(Protocol):
    """Gives the sentences of one request."""

    def sentences(
        self, request_number: int, num_sentences: int, lengths: LengthDistribution, draw: Callable[[], float]
    ) -> tuple[str, ...]:
        """Sentences whose lengths are drawn from `lengths`, where the source can choose them.

        `draw` gives the request's own numbers of [0, 1).
        """
        ...


class ComposedSentences:
    """Sentences that nobody wrote: billions, so that none is sent over and over."""

    def __init__(self, grammar: Grammar) -> None:
        self._grammar = grammar

    def sentences(
        self, request_number: int, num_sentences: int, lengths: LengthDistribution, draw: Callable[[], float]
    ) -> tuple[str, ...]:
        """See `SentenceSource`."""
        return tuple(self._grammar.sentence(lengths.num_words(draw()), draw) for _ in range(num_sentences))


class CorpusSentences:
    """Lines of a file, in a seeded order; lists and paragraphs are lines that follow each other in the file.

    Each line begins one request before any begins a second one. Lengths are the corpus' own.
    """

    def __init__(self, lines: tuple[str, ...], seed: str) -> None:
        self._lines = lines
        rng = random.Random(seed)
        keys = [rng.random() for _ in lines]
        self._order = sorted(range(len(lines)), key=keys.__getitem__)

    def sentences(
        self, request_number: int, num_sentences: int, lengths: LengthDistribution, draw: Callable[[], float]
    ) -> tuple[str, ...]:
        """See `SentenceSource`."""
        lines = self._lines
        first = self._order[request_number % len(lines)]
        return tuple(lines[(first + place) % len(lines)] for place in range(num_sentences))


@cache
def grammar_of(language: str) -> Grammar:
    """The grammar of a language, by its code. Raises `ValueError` for languages without one."""
    known = sorted(path.stem for path in FOLDER.glob("*.txt"))
    if language not in known:
        raise ValueError(f"sentences are composed in {', '.join(known)}, and not in {language}: pass --corpus")
    return Grammar((FOLDER / f"{language}.txt").read_text(encoding="utf-8"))


@cache
def corpus_lines(path: str) -> tuple[str, ...]:
    """The lines of a file that are not blank. Raises `ValueError` where there are none, or no file."""
    try:
        with Path(path).open(encoding="utf-8") as lines:  # a line separator of Unicode ends none
            found = tuple(filter(None, map(str.strip, lines)))
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"corpus {path}: {error}") from error
    if not found:
        raise ValueError(f"corpus {path} has no sentences")
    return found


def corpus_digest(path: str) -> str:
    """sha256 of the lines that `corpus_lines` gives, in hexadecimal. Raises what it raises."""
    return sha256("\n".join(corpus_lines(path)).encode()).hexdigest()
