"""What a load test sends: the texts of this folder, mixed in a seeded order."""

import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

Card = TypeVar("Card")

BEAM_SIZE = 4
# Shares of the three kinds of request. Most clients send what a person typed, some send a page, some a list.
PARAGRAPH_SHARE = 0.15
LIST_SHARE = 0.15
MAX_LIST_TEXTS = 8


@dataclass(frozen=True, slots=True)
class TextRequest:
    """One request to send. A paragraph is one text of several sentences; a list is several texts."""

    texts: tuple[str, ...]
    is_list: bool
    num_sentences: int
    beam_size: int

    @property
    def uses_beam(self) -> bool:
        """True for beam search, False for greedy."""
        return self.beam_size > 1


@dataclass(frozen=True, slots=True)
class Corpus:
    """Sentences, and paragraphs as the sentences they consist of."""

    sentences: tuple[str, ...]
    paragraphs: tuple[tuple[str, ...], ...]


def load_corpus(folder: Path | None = None) -> Corpus:
    """The texts beside this file: one sentence a line; in paragraphs.txt a blank line ends a paragraph.

    Raises `ValueError` when either file holds no text.
    """
    folder = folder or Path(__file__).parent
    sentences = tuple(line for line in _lines(folder / "sentences.txt") if line)
    paragraphs: list[tuple[str, ...]] = []
    current: list[str] = []
    for line in [*_lines(folder / "paragraphs.txt"), ""]:
        if line:
            current.append(line)
        elif current:
            paragraphs.append(tuple(current))
            current = []
    if not sentences or not paragraphs:
        raise ValueError(f"{folder} has {len(sentences)} sentences and {len(paragraphs)} paragraphs; both are needed")
    return Corpus(sentences, tuple(paragraphs))


def text_requests(corpus: Corpus, seed: str, beam_share: float) -> Iterator[TextRequest]:
    """Requests without end; the same corpus, seed and share give the same requests.

    Every sentence is sent before any is sent again, in a new order each time round, so that no server is
    measured on one sentence over and over. `beam_share` lies in 0..1; outside it is a `ValueError`.
    """
    if not 0.0 <= beam_share <= 1.0:
        raise ValueError(f"beam_share is {beam_share}; it is a share and lies between 0 and 1")
    return _generate(corpus, random.Random(seed), beam_share)


def _generate(corpus: Corpus, rng: random.Random, beam_share: float) -> Iterator[TextRequest]:
    sentences = _deck(corpus.sentences, rng)
    paragraphs = _deck(corpus.paragraphs, rng)
    while True:
        beam_size = BEAM_SIZE if rng.random() < beam_share else 1
        kind = rng.random()
        if kind < PARAGRAPH_SHARE:
            paragraph = next(paragraphs)
            yield TextRequest((" ".join(paragraph),), False, len(paragraph), beam_size)
        elif kind < PARAGRAPH_SHARE + LIST_SHARE:
            texts = tuple(next(sentences) for _ in range(rng.randint(2, MAX_LIST_TEXTS)))
            yield TextRequest(texts, True, len(texts), beam_size)
        else:
            yield TextRequest((next(sentences),), False, 1, beam_size)


def _deck(cards: tuple[Card, ...], rng: random.Random) -> Iterator[Card]:
    while True:
        yield from rng.sample(cards, len(cards))


def _lines(path: Path) -> list[str]:
    return [line.strip() for line in path.read_text(encoding="utf-8").splitlines()]
