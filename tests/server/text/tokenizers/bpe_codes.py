"""Byte-pair encoding as its paper describes it (Sennrich et al. 2016), in quadratic time."""

from collections import Counter
from collections.abc import Iterable
from itertools import pairwise

from sacremoses import MosesPunctNormalizer, MosesTokenizer


def moses_words(text: str, language: str) -> list[str]:
    """Return words as Argos Translate makes them."""
    words: list[str] = MosesTokenizer(language).tokenize(MosesPunctNormalizer(language).normalize(text))
    return words


def learn(words: Iterable[str], num_merges: int, *, ends_join_symbols: bool) -> list[tuple[str, str]]:
    """Return the merges of the most frequent pairs."""
    counts = Counter(words)
    split = {word: _symbols(word, ends_join_symbols=ends_join_symbols) for word in counts}
    merges: list[tuple[str, str]] = []
    for _ in range(num_merges):
        pairs: Counter[tuple[str, str]] = Counter()
        for word, count in counts.items():
            for pair in pairwise(split[word]):
                pairs[pair] += count
        best = max(pairs, key=lambda pair: (pairs[pair], pair))
        merges.append(best)
        split = {word: _merge(symbols, best) for word, symbols in split.items()}
    return merges


def apply(word: str, merges: list[tuple[str, str]], *, ends_join_symbols: bool) -> list[str]:
    """Return the tokens of a word."""
    symbols = _symbols(word, ends_join_symbols=ends_join_symbols)
    ranks = {pair: rank for rank, pair in enumerate(merges)}
    while pairs := [pair for pair in pairwise(symbols) if pair in ranks]:
        symbols = _merge(symbols, min(pairs, key=ranks.__getitem__))
    pieces = [piece for symbol in symbols if (piece := symbol.removesuffix("</w>"))]
    return [*(f"{piece}@@" for piece in pieces[:-1]), pieces[-1]]


def file_of(merges: list[tuple[str, str]], *, ends_join_symbols: bool) -> bytes:
    """Return the content of a file of subword-nmt."""
    header = ["#version: 0.2"] if ends_join_symbols else []
    return "\n".join([*header, *map(" ".join, merges), ""]).encode()


def _symbols(word: str, *, ends_join_symbols: bool) -> list[str]:
    return [*word[:-1], f"{word[-1]}</w>"] if ends_join_symbols else [*word, "</w>"]


def _merge(symbols: list[str], pair: tuple[str, str]) -> list[str]:
    merged: list[str] = []
    for symbol in symbols:
        if merged and (merged[-1], symbol) == pair:
            merged[-1] += symbol
        else:
            merged.append(symbol)
    return merged
