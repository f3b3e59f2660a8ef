"""What was measured of each request: one record, one line of records.jsonl.

Locust's own statistics are not used: its Aggregated row mixes every event anybody fires, its percentiles are rounded,
and it counts from the sending, not from the instant a request was due. All totals come from these records.
"""

import dataclasses
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cache
from hashlib import sha256
from pathlib import Path
from types import TracebackType
from typing import Self

from pydantic import TypeAdapter, ValidationError


class Outcome(StrEnum):
    """How a request ended, from the client's side."""

    ANSWERED = "answered"
    REJECTED = "rejected"  # 429, 503 or 456: the server said at once that it is full
    TIMED_OUT = "timed_out"  # 504, or the client waited no longer
    FAILED = "failed"  # any other status, a broken connection, or an answer that answers something else
    HUNG_UP = "hung_up"  # an impatient client went away before the answer came
    UNFINISHED = "unfinished"  # no answer before the load test gave up waiting


@dataclass(frozen=True, slots=True)
class Record:
    """One request. Times are seconds since the run's start, all on one clock."""

    number: int  # of the request within its stage: it determines the texts
    stage: str
    kind: str
    protocol: str
    worker: int
    user: int | None  # None: an open-loop arrival, which nobody waits for before the next
    scheduled: float  # when it was due; in a closed loop when it was sent
    sent: float
    first_event: float | None  # the first token of a stream
    finished: float | None  # the whole answer was there, or it was clear that there is none
    outcome: Outcome
    status: int  # 0: no HTTP answer
    reason: str  # why it was not answered, in a few words; empty if it was
    source_tokens: int
    source_tokens_estimated: bool  # 1.4 a word, where no answer says
    target_tokens: int | None
    num_sentences: int
    num_texts: int
    beam_size: int | None  # None: the server's default
    phases_ms: dict[str, float] = field(default_factory=dict)  # Server-Timing
    event_gaps: tuple[float, ...] = ()  # seconds between the token events of a stream
    retry_after: float | None = None  # seconds
    answer_sha256: str | None = None  # `answer_digest`
    is_resent: bool = False  # the server had closed the idle connection just before; `sent` is the first time

    @property
    def latency(self) -> float | None:
        """Seconds from the instant the request was due to the end; None if it never ended."""
        return None if self.finished is None else self.finished - self.scheduled

    @property
    def lag(self) -> float:
        """Seconds that the generator was late."""
        return self.sent - self.scheduled

    def to_json(self) -> str:
        """One line of JSON, times rounded to microseconds."""
        return json.dumps({name: _rounded(getattr(self, name)) for name in _FIELDS}, ensure_ascii=False)


_FIELDS = tuple(one.name for one in dataclasses.fields(Record))


class BadRecord(ValueError):
    """A line that is no record."""


class RecordWriter:
    """Appends records to a file; after each call of `write` they are there for whoever reads it."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("a", encoding="utf-8")

    def write(self, records: Iterable[Record]) -> None:
        """Appends the records, a line each."""
        self._file.writelines(record.to_json() + "\n" for record in records)
        self._file.flush()

    def close(self) -> None:
        """Closes the file."""
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()


def read_records(path: Path) -> Iterator[Record]:
    """The records of a file, in the order they were written. Raises `BadRecord` at a line that is none."""
    with path.open(encoding="utf-8") as lines:
        for number, line in enumerate(lines, start=1):
            try:
                yield record_from_json(line)
            except ValidationError as error:
                problem = error.errors()[0]
                place = ".".join(str(part) for part in problem["loc"])
                raise BadRecord(f"{path}, line {number}: {place}: {problem['msg']}") from error


def record_from_json(line: str | bytes) -> Record:
    """The record of one line. Raises pydantic's `ValidationError`."""
    return _record_type().validate_json(line)


def answer_digest(texts: Iterable[str]) -> str:
    """sha256 of the JSON list of the texts of an answer, in hexadecimal: equal if and only if all texts are."""
    return sha256(json.dumps(list(texts), ensure_ascii=False).encode()).hexdigest()


@cache
def _record_type() -> TypeAdapter[Record]:
    return TypeAdapter(Record)


def _rounded(value: object) -> object:
    if isinstance(value, float):
        return round(value, 6)
    if isinstance(value, tuple):
        return [_rounded(one) for one in value]
    return value
