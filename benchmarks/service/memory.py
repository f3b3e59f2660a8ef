"""Translation memories: import, size, and look-ups of equal and of similar sentences.

    python -m benchmarks.service.memory [--segments 1000000] [--pairs FILE.tsv] [--look-ups 2000]

Times are those of the processor. Without a file of pairs, the sentences are random ones of the load test's grammar. A
similar sentence has one or two words that were replaced, deleted or inserted.
"""

import random
import tempfile
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Annotated

import typer

from benchmarks.machine import describe_machine
from loadtest.workload.texts.grammar import Grammar
from loadtest.workload.texts.sources import FOLDER
from server.memory.jobs import import_file
from server.memory.matching import fold, score
from server.memory.store import DEFAULT_THRESHOLD, Lookup, Memory, MemoryStore, Quota, Segment

_UNLIMITED = Quota(10**9, 10**12)
_WORDS = (4, 25)  # of a random sentence
_OTHER_WORDS = ("blue", "other", "never", "quickly", "Paris")


def main(
    segments: Annotated[int, typer.Option(min=1000)] = 1_000_000,
    pairs: Annotated[Path | None, typer.Option(help="lines of source, tab, translation")] = None,
    look_ups: Annotated[int, typer.Option(min=100)] = 2000,
) -> None:
    """Print the table."""
    machine = describe_machine()
    print(f"{machine.cpu}, load before {machine.load_before}\n")
    with tempfile.TemporaryDirectory() as folder:
        store = MemoryStore(Path(folder) / "memory", _UNLIMITED)
        file = Path(folder) / "pairs.tsv"
        with file.open("w", encoding="utf-8") as written:
            written.writelines(islice(_lines(pairs), segments))
        begun, seconds = time.process_time(), time.perf_counter()
        memory, skipped = import_file(store, file, source="en", target="de")
        begun, seconds = time.process_time() - begun, time.perf_counter() - seconds
        total = memory.num_segments + skipped
        print(f"import: {total / begun:,.0f} segments a second of processor time, {total / seconds:,.0f} of the clock")
        print(f"file: {store.path.stat().st_size / 1e6:,.0f} MB for {memory.num_segments:,} segments")
        before = _resident_megabytes()
        choose = random.Random(1)  # noqa: S311 - equal runs choose equal sentences
        known = [each.source for each in _sampled(store, memory, look_ups, choose)]
        similar = [_changed(each, choose) for each in known]
        lookup = Lookup(store, (memory,))
        _times(lookup, similar)  # counts the frequencies of words once
        for name, texts in (("equal", known), ("similar", similar)):
            p50, p90, p99 = _times(lookup, texts)
            print(f"{name}: p50 {p50:.2f}, p90 {p90:.2f}, p99 {p99:.2f} ms of processor time")
        print(f"memory of look-ups: {_resident_megabytes() - before:.0f} MB")
        print(f"best match found: {_share_found(lookup, known, similar):.1%} of those that reach {DEFAULT_THRESHOLD}")
        store.close()


def _lines(pairs: Path | None) -> Iterator[str]:
    if pairs is not None:
        with pairs.open(encoding="utf-8") as file:
            yield from file
        return
    choose = random.Random(2)  # noqa: S311 - the same
    grammar = Grammar((FOLDER / "en.txt").read_text("utf-8"))
    while True:
        text = grammar.sentence(choose.randint(*_WORDS), choose.random)
        yield f"{text}\t{text[::-1]}\n"


def _sampled(store: MemoryStore, memory: Memory, number: int, choose: random.Random) -> Iterator[Segment]:
    for _ in range(number):
        yield from store.segments(memory, choose.randrange(memory.num_segments - 1), 1)


def _changed(text: str, choose: random.Random) -> str:
    words = text.split()
    for _ in range(choose.choice((1, 1, 2))):
        place, other = choose.randrange(len(words)), choose.choice(_OTHER_WORDS)
        words[place : place + choose.choice((0, 1))] = choose.choice(([other], [other], []))
        words = words or [other]
    return " ".join(words)


def _times(lookup: Lookup, texts: list[str]) -> tuple[float, float, float]:
    times = []
    for text in texts:
        begun = time.process_time()
        lookup.find(text, "en", "de")
        times.append(1000 * (time.process_time() - begun))
    times.sort()
    return times[len(times) // 2], times[int(len(times) * 0.9)], times[int(len(times) * 0.99)]


def _share_found(lookup: Lookup, known: list[str], similar: list[str]) -> float:
    """Return the share of changed sentences for which a match as good as the original is found."""
    found = wanted = 0
    for text, changed in zip(known, similar, strict=True):
        least = score(fold(changed).words.split(" "), fold(text).words.split(" "), DEFAULT_THRESHOLD)
        match = lookup.find(changed, "en", "de")
        wanted += bool(least)
        found += bool(least) and match is not None and match.score >= least
    return found / max(wanted, 1)


def _resident_megabytes() -> float:
    status = Path("/proc/self/status").read_text("ascii", "replace")
    return int(status.partition("VmRSS:")[2].split()[0]) / 1000


if __name__ == "__main__":
    typer.run(main)
