"""Numbers that the check names on human translations, and on the same ones with a number lost, doubled or changed.

    python -m benchmarks.quality.number_check FILE.tsv SOURCE TARGET [--show 20] [--seed 1]

SOURCE and TARGET are the languages of the file's columns. Both directions are measured.
"""

import random
import time
from collections import Counter
from pathlib import Path
from typing import Annotated

import regex
import typer

from benchmarks.workloads import read_lines
from server.text.digits import NumberCheck, compare

_NUMBER = regex.compile(r"\p{Nd}+(?:[.,'\u2019\u00a0\u202f\u066b\u066c]\p{Nd}+)*")
_MIN_VALUE = 13
_GROUP = 3  # digits


def _named(check: NumberCheck) -> bool:
    return bool(check.missing or check.invented)


def _plain(number: str) -> str:
    return "".join(str(int(sign)) if sign.isdecimal() else "." for sign in number)


def _value(number: str) -> int:
    """Return the integer part of a number, if one separator without three digits after it begins a fraction."""
    groups = _plain(number).split(".")
    return int("".join(groups) if len(groups[-1]) == _GROUP else groups[0])


def _changed(source: str, text: str, how: str, chance: random.Random) -> str | None:
    """Return a translation with a number above twelve, which the source has, lost, written twice, or changed."""
    numbers = Counter(_plain(number) for number in _NUMBER.findall(text))
    known = {_plain(number) for number in _NUMBER.findall(source)}
    found = [
        match
        for match in _NUMBER.finditer(text)
        if numbers[_plain(match[0])] == 1 and _plain(match[0]) in known and _value(match[0]) >= _MIN_VALUE
    ]
    if not found:
        return None
    match = chance.choice(found)
    if how == "lost":
        written = ""
    elif how == "doubled":
        written = f"{match[0]} {match[0]}"
    else:
        place = chance.choice([index for index, sign in enumerate(match[0]) if sign.isdecimal()])
        old = int(match[0][place])
        new = chance.choice([digit for digit in range(place == 0, 10) if digit != old])
        written = f"{match[0][:place]}{new}{match[0][place + 1 :]}"
    return text[: match.start()] + written + text[match.end() :]


def main(
    file: Annotated[Path, typer.Argument(metavar="FILE.tsv")],
    source: str,
    target: str,
    show: Annotated[int, typer.Option(help="print so many of the named texts")] = 0,
    limit: int | None = None,
    seed: int = 1,
) -> None:
    """Print both figures for each direction."""
    columns = [line.split("\t") for line in read_lines(file, limit)]
    for first, second, old_language, new_language in ((0, 1, source, target), (1, 0, target, source)):
        pairs = [(each[first], each[second]) for each in columns]
        chance = random.Random(seed)  # noqa: S311 - the same seed gives the same texts
        start = time.perf_counter()
        checks = [compare(old, new, old_language, new_language) for old, new in pairs]
        microseconds = 1e6 * (time.perf_counter() - start) / len(pairs)
        named = [(pair, check) for pair, check in zip(pairs, checks, strict=True) if _named(check)]
        for pair, check in named[:show]:
            print(f"{check}\n  {pair[0]}\n  {pair[1]}")
        share = 100 * len(named) / len(pairs)
        print(f"{old_language}-{new_language}, {len(pairs)} texts, {microseconds:.1f} us each")
        print(f"  human: {len(named)} named, {share:.2f} %")
        for how in ("lost", "doubled", "changed"):
            texts = [
                (old, changed)
                for (old, new), check in zip(pairs, checks, strict=True)
                if not _named(check) and (changed := _changed(old, new, how, chance)) is not None
            ]
            found = [_named(compare(old, new, old_language, new_language)) for old, new in texts]
            for pair in [pair for pair, is_found in zip(texts, found, strict=True) if not is_found][:show]:
                print(f"  {how}, not named\n  {pair[0]}\n  {pair[1]}")
            print(f"  {how}: {sum(found)} of {len(found)} named, {100 * sum(found) / max(len(found), 1):.1f} %")


if __name__ == "__main__":
    typer.run(main)
