"""Mixed load, with memory, descriptors and latency each second: `python -m tests.faults.soak --minutes 60`.

Prints each series as means of quarters of its second half, when the caches are full, and writes it to `--output` as
CSV. Exits with 1 if the memory of the server has grown by more than `--max-megabytes` from the first of these quarters
to the last, or if a request failed. Flags behind `--` go to the server: with small caches, these are full before the
second half.
"""

import argparse
import csv
import io
import json
import random
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import httpx2
import numpy as np
import psutil

from tests.end_to_end.servers import PATIENCE_SECONDS, Served, started

_MEGABYTE = 1_000_000
MEMORY = "memory, MB"
_INTERVAL_SECONDS = 1.0
_NUM_CLIENTS = 6
_WORDS = ("house", "old", "river", "we", "buy", "the", "small", "garden", "today", "never", "is", "was", "green", "tea")
# A server that is busy rejects requests; everything else is a failure.
_EXPECTED = (200, 201, 202, 204, 404, 409, 429, 504)

_OPTIONS: Sequence[Mapping[str, object]] = (
    {}, {"beam_size": 4}, {"return_attention": True}, {"format": "html"}, {"num_hypotheses": 2, "beam_size": 2}
)  # fmt: skip


@dataclass(slots=True)
class Series:
    """Measurements of one server, second by second."""

    seconds: list[float] = field(default_factory=list)
    megabytes: list[float] = field(default_factory=list)  # of the server's own process
    engine_megabytes: list[float] = field(default_factory=list)  # of the processes that it began with
    descriptors: list[float] = field(default_factory=list)
    milliseconds: list[float] = field(default_factory=list)
    statuses: Counter[int] = field(default_factory=Counter)

    def named(self) -> dict[str, list[float]]:
        """Return what was measured, by its name in plots and tables."""
        return {
            MEMORY: self.megabytes, "memory of engines, MB": self.engine_megabytes,
            "descriptors": self.descriptors, "probe, ms": self.milliseconds,
        }  # fmt: skip

    def quarters(self) -> dict[str, list[float]]:
        """Return the means of the quarters of the second half."""
        half = len(self.seconds) // 2
        return {
            name: [float(each.mean()) for each in np.array_split(np.array(values[half:]), 4)]
            for name, values in self.named().items()
        }


class Visitor:
    """One client that draws its requests."""

    def __init__(self, url: str, seed: int, series: Series, max_pause: float) -> None:
        self._url = url
        self._max_pause = max_pause
        self._chance = random.Random(seed)
        self._series = series

    def visit(self, is_done: threading.Event) -> None:
        """Send requests until the end."""
        with httpx2.Client(base_url=self._url, timeout=PATIENCE_SECONDS) as client:
            while not is_done.wait(self._chance.uniform(0, self._max_pause)):
                try:
                    status = self._chance.choice(self._requests)(self, client)
                except httpx2.TransportError:
                    status = 0
                self._series.statuses[status] += 1

    def _text(self, max_sentences: int = 6) -> str:
        sentences = [
            " ".join(self._chance.choices(_WORDS, k=self._chance.randint(2, 20))).capitalize() + "."
            for _ in range(self._chance.randint(1, max_sentences))
        ]
        return " ".join(sentences)

    def _translate(self, client: httpx2.Client) -> int:
        options = self._chance.choice(_OPTIONS)
        return client.post("/v1/translate", json={"text": self._text(), **options}).status_code

    def _translate_with_terms(self, client: httpx2.Client) -> int:
        terms = {f"{self._chance.choice(_WORDS)} {number}": "Wort" for number in range(self._chance.randint(1, 300))}
        return client.post("/v1/translate", json={"text": self._text(), "glossary": terms}).status_code

    def _compatible(self, client: httpx2.Client) -> int:
        fields = {"q": self._text(), "source": "auto", "target": "de"}
        return client.post("/translate", data=fields).status_code

    def _stream(self, client: httpx2.Client) -> int:
        reads_all = self._chance.random() < 0.7
        with client.stream("POST", "/v1/translate", json={"text": self._text(), "stream": True}) as answer:
            for _ in answer.iter_bytes():
                if not reads_all:
                    break
            return answer.status_code

    def _document(self, client: httpx2.Client) -> int:
        name = self._chance.choice(("a.txt", "a.html", "a.md", "a.csv"))
        answer = client.post("/v1/documents", files={"file": (name, io.BytesIO(self._text(20).encode()))})
        if answer.status_code == 202 and self._chance.random() < 0.5:
            return client.delete(answer.headers["Location"]).status_code
        return answer.status_code

    def _stored_glossary(self, client: httpx2.Client) -> int:
        fields = {"name": "g", "source_lang": "en", "target_lang": "de", "entries": "tea\tTee", "entries_format": "tsv"}
        answer = client.post("/v2/glossaries", json=fields)
        if answer.status_code != 201:
            return answer.status_code
        return client.delete(f"/v2/glossaries/{answer.json()['glossary_id']}").status_code

    def _invalid(self, client: httpx2.Client) -> int:
        status = client.post("/v1/translate", content=b'{"text": ' * self._chance.randint(1, 500)).status_code
        return 200 if status in (400, 422) else status

    _requests: tuple[Callable[["Visitor", httpx2.Client], int], ...] = (
        *(_translate,) * 4, _translate_with_terms, _compatible, _stream, _stream, _document, _stored_glossary, _invalid,
    )  # fmt: skip


def measure(served: Served, series: Series, seconds: float) -> None:
    """Measure every second."""
    begun = time.monotonic()
    process = psutil.Process(served.process.pid)
    engines = process.children(recursive=True)  # those of documents come and go
    with httpx2.Client(base_url=served.url, timeout=PATIENCE_SECONDS) as client:
        while (now := time.monotonic() - begun) < seconds:
            sent = time.monotonic()
            client.get("/health/live")
            series.milliseconds.append((time.monotonic() - sent) * 1000)
            series.seconds.append(now)
            series.megabytes.append(process.memory_info().rss / _MEGABYTE)
            series.engine_megabytes.append(_memory_of(engines) / _MEGABYTE)
            series.descriptors.append(float(process.num_fds()))
            time.sleep(max(_INTERVAL_SECONDS - (time.monotonic() - sent), 0.0))


def _memory_of(processes: Sequence[psutil.Process]) -> int:
    """Return the resident bytes of processes; one that has ended counts nothing."""
    total = 0
    for process in processes:
        with suppress(psutil.NoSuchProcess):
            total += process.memory_info().rss
    return total


def write_table(series: Series, path: Path) -> None:
    """Write the series as CSV, one row for each second."""
    with path.open("w", encoding="utf-8", newline="") as file:
        table = csv.writer(file)
        table.writerow(("seconds", *series.named()))
        table.writerows(zip(series.seconds, *series.named().values(), strict=True))


def main() -> int:
    """Run the soak as a program."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--output", type=Path, default=Path("build/soak.csv"))
    parser.add_argument("--max-megabytes", type=float, default=10.0)
    parser.add_argument("--max-pause", type=float, default=0.05, help="seconds between two requests of a client")
    parser.add_argument("flags", nargs="*", default=["--cache-sentences", "2000"], help="flags of `kvasir serve`")
    options = parser.parse_args()
    series, is_done = Series(), threading.Event()
    for served in started(*options.flags):
        visitors = [Visitor(served.url, number, series, options.max_pause) for number in range(_NUM_CLIENTS)]
        threads = [threading.Thread(target=visitor.visit, args=(is_done,)) for visitor in visitors]
        for thread in threads:
            thread.start()
        try:
            measure(served, series, options.minutes * 60)
        finally:
            is_done.set()
            for thread in threads:
                thread.join()
    options.output.parent.mkdir(parents=True, exist_ok=True)
    write_table(series, options.output)
    sys.stdout.write(json.dumps({"statuses": dict(sorted(series.statuses.items()))}) + "\n")
    quarters = series.quarters()
    for name, means in quarters.items():
        sys.stdout.write(f"{name}: {', '.join(f'{mean:.1f}' for mean in means)}\n")
    has_grown = quarters[MEMORY][-1] - quarters[MEMORY][0] > options.max_megabytes
    return int(has_grown or bool(series.statuses.keys() - set(_EXPECTED)))


if __name__ == "__main__":
    raise SystemExit(main())
