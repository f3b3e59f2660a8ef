"""A document job, and its state as clients see it."""

import asyncio
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from secrets import token_hex

from server.documents.formats.registry import DocumentFormat
from server.documents.report import DocumentReport
from server.documents.steps import DocumentSize
from server.interface.errors import KvasirError


class JobStatus(StrEnum):
    """Status of a document."""

    QUEUED = "queued"
    TRANSLATING = "translating"
    DONE = "done"
    ERROR = "error"


@dataclass(frozen=True, slots=True)
class DocumentJob:
    """State of a document at one moment. Counts are 0 until it has been read once."""

    id: str
    key: str
    name: str
    status: JobStatus
    units_done: int
    num_units: int
    num_characters: int
    num_texts: int
    seconds_remaining: float | None  # estimated, while it is being translated
    error: KvasirError | None
    report: DocumentReport

    @property
    def progress(self) -> float:
        """Translated share, 0 to 1."""
        if self.status is JobStatus.DONE:
            return 1.0
        return self.units_done / self.num_units if self.num_units else 0.0


@dataclass(frozen=True, slots=True)
class FinishedDocument:
    """End of a document job. `outcome` is done, error or cancelled; `size` is 0 if the document was not read.

    `phase_seconds` are its times in the queue, and reading, translating and writing, in this order.
    """

    extension: str
    outcome: str
    size: DocumentSize
    phase_seconds: Mapping[str, float]
    error: KvasirError | None = None


@dataclass(slots=True, eq=False)
class StoredJob:
    """A document with its folder and its task. `client` submitted it; `num_bytes` are those of its files."""

    name: str
    kind: DocumentFormat
    client: str = ""
    report: DocumentReport = field(default_factory=DocumentReport)
    id: str = field(default_factory=lambda: uuid.uuid4().hex)
    key: str = field(default_factory=lambda: token_hex(32))
    status: JobStatus = JobStatus.QUEUED
    size: DocumentSize = field(default_factory=lambda: DocumentSize(0, 0))
    units_done: int = 0
    begun: float = 0.0
    finished: float | None = None
    error: KvasirError | None = None
    folder: Path | None = None
    num_bytes: int = 0
    asked: float = 0.0  # when a client last asked for it
    is_fetched: bool = False
    task: asyncio.Task[None] | None = None
    timer: asyncio.TimerHandle | None = None

    def seconds_remaining(self, now: float) -> float | None:
        """Return the estimated time to the end of the translation, or None while it is unknown."""
        if self.status is not JobStatus.TRANSLATING or not self.units_done:
            return None
        return (now - self.begun) / self.units_done * (self.size.num_units - self.units_done)

    def state(self, now: float) -> DocumentJob:
        """Return the present state."""
        return DocumentJob(
            self.id,
            self.key,
            self.name,
            self.status,
            self.units_done,
            self.size.num_units,
            self.size.num_characters,
            self.size.num_texts,
            self.seconds_remaining(now),
            self.error,
            self.report,
        )
