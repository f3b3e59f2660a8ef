"""Hard cases of sentence splitting, some 510 a language; a bar stands between two sentences.

The first rules were written with the lines of odd number at hand; those of even number were held out.
"""

from collections.abc import Callable
from pathlib import Path

LANGUAGES = ("en", "de", "fr", "es", "it", "pt", "nl", "pl")


def hard_cases(language: str, *, held_out: bool) -> list[list[str]]:
    """Return the sentences of each case, with the white space behind them."""
    lines = Path(__file__).with_name(f"hard_cases.{language}.txt").read_text(encoding="utf-8").splitlines()
    return [line.split("|") for line in lines[int(held_out) :: 2]]


def wrong_cases(cases: list[list[str]], split: Callable[[str], list[str]]) -> list[list[str]]:
    """Return the cases that a splitter divides elsewhere. Only the sentences count, not the white space."""
    return [case for case in cases if _stripped(split("".join(case))) != _stripped(case)]


def _stripped(sentences: list[str]) -> list[str]:
    return [sentence.strip() for sentence in sentences]
