"""What the parts of one running server share."""

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import cast

from fastapi import Request

from server.documents.job_store import DocumentStore
from server.interface.engine_client import EngineClient
from server.interface.errors import Draining, QueueFull
from server.operations.metrics import Metrics
from server.operations.settings import Settings
from server.text.language_detection import Detector
from server.translation.glossary_store import GlossaryStore
from server.translation.pipeline import Pipeline
from server.translation.router import Router
from server.translation.service import TranslationService
from server.translation.types import Phases, TranslationResult

_log = logging.getLogger("kvasir")


@dataclass(slots=True)
class ServerState:
    """One for each application, owned by the event loop's thread.

    `catalogue`, `interpreter` and `glossaries` are None until the models are loaded. `draining` is set once and never
    taken back.
    """

    settings: Settings
    metrics: Metrics
    generators: Sequence[EngineClient] = ()
    catalogue: Router | None = None
    interpreter: TranslationService | None = None
    glossaries: GlossaryStore | None = None
    num_characters_billed: int = 0  # since the start; nobody pays, but clients of DeepL ask
    draining: bool = False
    num_in_flight: int = 0  # HTTP requests begun and not yet answered
    idle: asyncio.Event = field(default_factory=asyncio.Event)  # set while none is in flight
    documents: DocumentStore = field(init=False)

    def __post_init__(self) -> None:
        """Begin without documents."""
        self.documents = DocumentStore(self.settings.document_options, self.metrics.document_finished)
        self.metrics.watch_documents(self.documents.__len__)

    async def close(self) -> None:
        """Give up what it has: documents, and the file of the glossaries."""
        await self.documents.close()
        if self.glossaries is not None:
            self.glossaries.close()

    def open(self, generators: Sequence[EngineClient]) -> None:
        """Serve with these from now on."""
        self.generators = generators
        self.glossaries = GlossaryStore(self.settings.glossary_file)
        limits = self.settings.limits
        self.catalogue = Router([Pipeline(generator, limits) for generator in generators], self.settings.pivot)
        detector = Detector(self.settings.detect_languages or self.catalogue.source_languages)
        if detector.unknown:
            _log.warning("languages that cannot be detected", extra={"languages": detector.unknown})
        self.interpreter = TranslationService(self.catalogue, detector, limits)
        for generator in generators:
            self.metrics.model_served(generator.bundle.config, self.settings.device)
        self.metrics.watch(generators)

    def accept(self) -> tuple[TranslationService, Router]:
        """Who takes a new request; raises `Draining` where nobody does."""
        if self.draining or self.interpreter is None or self.catalogue is None:
            raise Draining("this server takes no new requests; send it to another, or again in a moment")
        return self.interpreter, self.catalogue

    def check_room(self) -> None:
        """Raise `QueueFull` where every model would refuse whatever is asked now, and `Draining` where the server does.

        That goes first: whoever is told to try again here would come to a server that is gone.
        """
        self.accept()
        refusal: QueueFull | None = None
        for generator in self.generators:
            try:
                generator.check_room()
            except QueueFull as full:
                refusal = full
            else:
                return
        if refusal is not None:
            raise refusal

    def stored_glossaries(self) -> GlossaryStore:
        """The glossaries; raises `Draining` where the server has not begun to serve."""
        if self.glossaries is None:
            raise Draining("this server is starting; send the request again in a moment")
        return self.glossaries

    def begin_request(self) -> None:
        """An HTTP request came in."""
        self.num_in_flight += 1
        self.idle.clear()

    def end_request(self) -> None:
        """It was answered, or its client is gone."""
        self.num_in_flight -= 1
        if not self.num_in_flight:
            self.idle.set()


@dataclass(slots=True)
class RequestRecord:
    """What the log line and the headers of one HTTP request are made of; routes fill in what they know.

    `late_status` is the status of what went wrong after an answer with another one had begun.
    """

    id: str
    elapsed_seconds: Callable[[], float] = field(default=lambda: 0.0, repr=False)
    late_status: int | None = None
    is_streamed: bool = False
    model: str | None = None
    num_texts: int = 0
    num_characters: int = 0
    result: TranslationResult | None = field(default=None, repr=False)

    def timings(self) -> dict[str, float]:
        """The four phases and the total up to now, in milliseconds."""
        phases = Phases() if self.result is None else self.result.phases
        durations = phases.by_name() | {"total": self.elapsed_seconds()}
        return {name: milliseconds(duration) for name, duration in durations.items()}


def milliseconds(seconds: float) -> float:
    """As headers, logs and answers show a time."""
    return round(seconds * 1000, 3)


def server_state(request: Request) -> ServerState:
    """The state of the application that got this request."""
    return cast(ServerState, request.app.state.server)


def request_record(request: Request) -> RequestRecord:
    """The record that the recorder opened for this request."""
    return cast(RequestRecord, request.state.record)
