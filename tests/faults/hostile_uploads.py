"""Hostile documents of every format, sent to one server, and the memory and the promptness of that server meanwhile.

`python -m tests.faults.hostile_uploads` sends fifty of each format: the shapes of `hostile_documents` in another size,
and random mixtures of its markup. It prints outcomes, the slowest document and the memory after each format. It exits
with 1 if a document took more processor time than `--max-seconds` or failed without a reason, or if the server's memory
grew by more than `--max-megabytes`. `--formats .html .pdf` selects formats, `--count` sets the number of documents.
"""

import argparse
import random
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import httpx2
import psutil

from tests.end_to_end.servers import PATIENCE_SECONDS, Served, started
from tests.faults.hostile_documents import FORMATS, SHAPES, Format

_MEGABYTE = 1_000_000
_POLL_SECONDS = 0.05
_GIVE_UP_SECONDS = 90.0
_MOST_BYTES = 800_000
# Each is a refusal with a reason; `engine_failed` would be a defect.
_REASONS = (
    "done", "document_too_complex", "document_too_large", "invalid_document", "document_cpu_limit",
    "document_memory_limit",
)  # fmt: skip


@dataclass(slots=True)
class FormatReport:
    """Outcomes of the documents of one format, the slowest one, and the server's memory."""

    outcomes: Counter[str] = field(default_factory=Counter)
    slowest: tuple[float, str] = (0.0, "")
    messages: set[str] = field(default_factory=set)
    slowest_probe: float = 0.0


def documents(kind: Format, count: int, seed: int) -> Iterator[tuple[str, bytes]]:
    """Yield documents with their descriptions: half of them in one shape, half of them mixed."""
    chance = random.Random(seed)
    for number in range(count):
        begin, end = kind.paragraph
        if number % 2:
            shape, pair = chance.choice(list(SHAPES)), chance.randrange(len(kind.pairs))
            text = SHAPES[shape](begin, end, *kind.pairs[pair])
            repeats = max(min(chance.choice((1, 1, 4)), _MOST_BYTES // len(text)), 1)
            yield f"{shape} {kind.pairs[pair]} x {repeats}", kind.contain(text * repeats)
        else:
            yield f"mixture {number}", kind.contain(_mixture(kind, chance))


def _mixture(kind: Format, chance: random.Random) -> str:
    """Return paragraphs of randomly nested, repeated and unclosed markup, of any total size."""
    num_bytes = int(10 ** chance.uniform(4, 5.9))
    pairs = chance.sample(kind.pairs, chance.randint(1, min(4, len(kind.pairs))))
    begin, end = kind.paragraph
    texts = ("a", "a house ", "", " ", "\u00e9", "word" * 50)
    is_closed = chance.random() < 0.7  # XML that is not closed is rejected at once
    parts: list[str] = []
    length = 0
    while length < num_bytes:
        depth = chance.choice((1, 1, 2, 20, 100))
        opened = [chance.choice(pairs) for _ in range(depth)]
        closes = is_closed or chance.random() < 0.7
        inner = "".join(pair[0] for pair in opened) + chance.choice(texts)
        inner += "".join(pair[1] for pair in reversed(opened)) if closes else ""
        parts.append(begin + inner * chance.choice((1, 1, 3, 30)) + (end if is_closed or chance.random() < 0.8 else ""))
        length += len(parts[-1])
    return "".join(parts)


def resident_bytes(served: Served) -> int:
    """Return the memory of the serving process alone."""
    status = Path(f"/proc/{served.process.pid}/status").read_text(encoding="utf-8")
    return next(int(line.split()[1]) * 1024 for line in status.splitlines() if line.startswith("VmRSS"))


def processor_seconds(served: Served) -> float:
    """Return the processor time of the server and of the processes that it started."""
    server = psutil.Process(served.process.pid)
    times = server.cpu_times()
    total = times.user + times.system + times.children_user + times.children_system
    for child in server.children(recursive=True):
        with suppress(psutil.NoSuchProcess):
            total += sum(child.cpu_times()[:2])
    return float(total)


def run_format(served: Served, client: httpx2.Client, extension: str, count: int, seed: int) -> FormatReport:
    """Send the documents of one format, one after the other."""
    report = FormatReport()
    for described, content in documents(FORMATS[extension], count, seed):
        begun, used = time.monotonic(), processor_seconds(served)
        answer = client.post("/v1/documents", files={"file": (f"hostile{extension}", content)})
        state = answer.json()
        path = f"/v1/documents/{state.get('id')}"
        while answer.status_code == 202 and state["status"] in ("queued", "translating"):
            if time.monotonic() - begun > _GIVE_UP_SECONDS:
                break
            time.sleep(_POLL_SECONDS)
            asked = time.monotonic()
            state = client.get(path).json()
            report.slowest_probe = max(report.slowest_probe, time.monotonic() - asked)
        seconds = processor_seconds(served) - used
        error = state.get("error") or {}
        report.outcomes[error.get("code") or state["status"]] += 1
        report.slowest = max(report.slowest, (seconds, f"{described}, {len(content)} bytes, {state['status']}"))
        if "limit" in error.get("code", ""):
            report.messages.add(error["message"])
        if answer.status_code == 202:
            client.delete(path)
    return report


def main() -> int:
    """Run the check as a program."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--formats", nargs="*", default=list(FORMATS))
    parser.add_argument("--count", type=int, default=50)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--max-seconds", type=float, default=30.0)
    parser.add_argument("--max-megabytes", type=float, default=200.0)
    options = parser.parse_args()
    has_failed = False
    for served in started("--document-max-cpu-seconds", "15", module="tests.faults.echoing_server"):
        with httpx2.Client(base_url=served.url, timeout=PATIENCE_SECONDS) as client:
            run_format(served, client, ".txt", 5, 0)  # so that the libraries are loaded
            before = resident_bytes(served)
            for extension in options.formats:
                report = run_format(served, client, extension, options.count, options.seed)
                grown = (resident_bytes(served) - before) / _MEGABYTE
                seconds, described = report.slowest
                sys.stdout.write(
                    f"{extension}: {dict(report.outcomes)}, slowest {seconds:.2f} s of processor ({described}), "
                    f"slowest probe {report.slowest_probe:.3f} s, memory {grown:+.0f} MB\n"
                )
                sys.stdout.writelines(f"    {message}\n" for message in sorted(report.messages))
                sys.stdout.flush()
                has_failed |= seconds > options.max_seconds or grown > options.max_megabytes
                has_failed |= bool(report.outcomes.keys() - set(_REASONS))
    return int(has_failed)


if __name__ == "__main__":
    raise SystemExit(main())
