"""Records of requests: one record, one line of records.jsonl.

All totals are computed from these records, not from Locust's statistics: its Aggregated row mixes all events, its
percentiles are rounded, and it counts from sending instead of the instant a request was due.
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
    """End of a request, from the client's side."""

    ANSWERED = "answered"
    REJECTED = "rejected"  # 429, 503 or 456: the server is full
    TIMED_OUT = "timed_out"  # 504, or the client's timeout
    FAILED = "failed"  # any other status, a broken connection, or an invalid answer
    HUNG_UP = "hung_up"  # an impatient client disconnected before the answer
    UNFINISHED = "unfinished"  # no answer before the end of the load test


@dataclass(frozen=True, slots=True)
class Record:
    """One request. Times are seconds since the run's start, all on one clock."""

    number: int  # of the request within its stage; determines the texts
    stage: str
    kind: str
    protocol: str
    worker: int
    user: int | None  # None: an open-loop arrival
    scheduled: float  # the instant it was due; in a closed loop the instant of sending
    sent: float
    first_event: float | None  # the first token of a stream
    finished: float | None  # the last byte of the answer, or the failure
    outcome: Outcome
    status: int  # 0: no HTTP answer
    reason: str  # why it was not answered; empty if it was
    source_tokens: int
    source_tokens_estimated: bool  # 1.4 per word, because no answer reports them
    target_tokens: int | None
    num_sentences: int
    num_texts: int
    beam_size: int | None  # None: the server's default
    phases_ms: dict[str, float] = field(default_factory=dict)  # Server-Timing
    event_gaps: tuple[float, ...] = ()  # seconds between the token events of a stream
    retry_after: float | None = None  # seconds
    answer_sha256: str | None = None  # `answer_digest`
    is_resent: bool = False  # the server had just closed the idle connection; `sent` is the first time

    @property
    def latency(self) -> float | None:
        """Seconds from the instant the request was due to its end; None without an end."""
        return None if self.finished is None else self.finished - self.scheduled

    @property
    def lag(self) -> float:
        """Delay of the generator, in seconds."""
        return self.sent - self.scheduled

    def to_json(self) -> str:
        """Return one line of JSON, with times rounded to microseconds."""
        return json.dumps({name: _rounded(getattr(self, name)) for name in _FIELDS}, ensure_ascii=False)


_FIELDS = tuple(one.name for one in dataclasses.fields(Record))


class BadRecord(ValueError):
    """An invalid line of records.jsonl."""


class RecordWriter:
    """Appends records to a file. After each `write` they are visible to readers."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("a", encoding="utf-8")

    def write(self, records: Iterable[Record]) -> None:
        """Append the records, one per line."""
        self._file.writelines(record.to_json() + "\n" for record in records)
        self._file.flush()

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()


def read_records(path: Path) -> Iterator[Record]:
    """Yield the records of a file in their order. Raises `BadRecord` at an invalid line."""
    with path.open(encoding="utf-8") as lines:
        for number, line in enumerate(lines, start=1):
            try:
                yield record_from_json(line)
            except ValidationError as error:
                problem = error.errors()[0]
                place = ".".join(str(part) for part in problem["loc"])
                raise BadRecord(f"{path}, line {number}: {place}: {problem['msg']}") from error


def record_from_json(line: str | bytes) -> Record:
    """Return the record in a line. Raises pydantic's `ValidationError`."""
    return _record_type().validate_json(line)


def answer_digest(texts: Iterable[str]) -> str:
    """Return the hexadecimal sha256 of an answer's texts as a JSON list; equal if and only if all texts are equal."""
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
