"""Sentence splitters on the hard cases of the tests: percent right, by language, as a Markdown table.

    python -m benchmarks.quality.sentence_splitting [--with sentencex] [--with pysbd]

The other splitters are packages, which must be installed. The cases of even number, which were held out while the
first rules were written, stand behind the slash.
"""

from collections.abc import Callable
from importlib import import_module
from typing import Annotated

import typer

from server.text.segmentation.sentences import split
from tests.server.text.segmentation.hard_cases import LANGUAGES, hard_cases, wrong_cases


def _splitter(name: str, language: str) -> Callable[[str], list[str]] | None:
    """Return a splitter for a language; None if it does not support the language."""
    if name == "kvasir":
        return lambda text: [segment.text for segment in split(text, language, lambda _: True)]
    module = import_module(name)
    if name == "sentencex":
        return lambda text: list(module.segment(language, text))
    try:
        return list_of(module.Segmenter(language=language, clean=False).segment)
    except ValueError:
        return None


def list_of(segment: Callable[[str], list[str]]) -> Callable[[str], list[str]]:
    """Return a splitter without empty sentences."""
    return lambda text: [sentence for sentence in segment(text) if sentence.strip()]


def main(others: Annotated[list[str] | None, typer.Option("--with", metavar="PACKAGE")] = None) -> None:
    """Print one row for each splitter."""
    print(f"| splitter | {' | '.join(LANGUAGES)} |\n|---{'|---' * len(LANGUAGES)}|")
    for name in ("kvasir", *(others or ())):
        cells = [_cell(_splitter(name, language), language) for language in LANGUAGES]
        print(f"| {name} | {' | '.join(cells)} |")


def _cell(splitter: Callable[[str], list[str]] | None, language: str) -> str:
    if splitter is None:
        return "-"
    halves = [hard_cases(language, held_out=held_out) for held_out in (False, True)]
    return " / ".join(f"{100 - 100 * len(wrong_cases(half, splitter)) / len(half):.0f}" for half in halves)


if __name__ == "__main__":
    typer.run(main)
