"""State of one running server, of one HTTP request, and memory limits for large parts of requests and responses."""

import asyncio
import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import cast

from fastapi import Request

from server.documents.input.limits import MEGABYTE
from server.documents.job_store import DocumentStore
from server.documents.jobs import FinishedDocument
from server.interface.engine_client import EngineClient
from server.interface.errors import Draining, QueueFull
from server.live.session import LiveSessions
from server.memory.jobs import JobRunner, Jobs
from server.memory.store import MemoryStore, Quota
from server.operations.api_keys.key_file import ApiKey
from server.operations.api_keys.key_gate import Charge, KeyGate
from server.operations.metrics import Activity, Metrics
from server.operations.models import ModelLoader, ModelSet
from server.operations.settings import Settings
from server.operations.tracing import Attribute, RequestTrace, Tracing, trace_of_call
from server.text.language_detection import Detector
from server.translation.glossaries import GlossaryStore
from server.translation.router import Router
from server.translation.service import TranslationService
from server.translation.types import Phases, TranslationResult

_CLIENT_SHARE = 4  # one client may use a quarter of the limit
_RETRY_SECONDS = 10.0


class UnreadBytes:
    """Bytes of large responses, in all and by client address. Used by the event loop's thread only.

    `described` names the objects in messages.
    """

    def __init__(self, max_bytes: int, described: str = "responses that are not read yet") -> None:
        self._max_bytes = max_bytes
        self._described = described
        self._by_client: dict[str, int] = {}

    @property
    def total(self) -> int:
        """Bytes of all clients."""
        return sum(self._by_client.values())

    def check(self, client: str, num_bytes: int = 1) -> None:
        """Raise `QueueFull` if `num_bytes` more exceed a limit.

        The first response of a client may be larger than its share, and the only response of all than the limit.
        """
        own, total = self._by_client.get(client, 0), self.total
        if own and own + num_bytes > self._max_bytes // _CLIENT_SHARE:
            raise self._full(own, self._max_bytes // _CLIENT_SHARE, "this client")
        if total and total + num_bytes > self._max_bytes:
            raise self._full(total, self._max_bytes, "all clients")

    def _full(self, num_bytes: int, limit: int, whose: str) -> QueueFull:
        message = f"{num_bytes} of {limit} bytes are taken by {self._described} of {whose}; retry later"
        return QueueFull(message, _RETRY_SECONDS)

    def add(self, client: str, num_bytes: int) -> None:
        """Count bytes. Raises `QueueFull` if they exceed a limit."""
        self.check(client, num_bytes)
        self._by_client[client] = self._by_client.get(client, 0) + num_bytes

    def remove(self, client: str, num_bytes: int) -> None:
        """Stop counting bytes that were added."""
        self._by_client[client] -= num_bytes
        if not self._by_client[client]:
            del self._by_client[client]

    @contextmanager
    def holding(self, client: str, num_bytes: int) -> Iterator[None]:
        """Count bytes within a block. Raises `QueueFull` if they exceed a limit."""
        self.add(client, num_bytes)
        try:
            yield
        finally:
            self.remove(client, num_bytes)


_log = logging.getLogger("kvasir")

_LIGHT_BYTES = 50_000


@dataclass(slots=True)
class ServerState:
    """State shared by the parts of one application. Only the event loop's thread uses it.

    `router`, `translation_service` and `glossaries` are None until the models are loaded. `draining`
    is set once.
    """

    settings: Settings
    metrics: Metrics
    router: Router | None = None
    translation_service: TranslationService | None = None
    glossaries: GlossaryStore | None = None
    memories: MemoryStore | None = None  # None: the server has no translation memories
    memory_jobs: JobRunner | None = None
    num_characters_billed: int = 0  # since the start; nothing is billed, but DeepL's clients request the number
    draining: bool = False
    num_in_flight: int = 0  # HTTP requests received and not yet answered
    idle: asyncio.Event = field(default_factory=asyncio.Event)  # set while no request is in flight
    key_gate: KeyGate | None = field(init=False)  # None: the server requires no API keys
    tracing: Tracing | None = field(init=False)  # None: no traces are recorded
    documents: DocumentStore = field(init=False)
    models: ModelSet = field(init=False)
    live: LiveSessions = field(init=False)
    activity: Activity = field(default_factory=Activity)
    unread: UnreadBytes = field(init=False)  # responses being sent
    expected: UnreadBytes = field(init=False)  # responses with many details whose requests are running
    body_memory: UnreadBytes = field(init=False)  # bodies of running requests
    glossary_memory: UnreadBytes = field(init=False)  # glossaries in the bodies of running requests

    def __post_init__(self) -> None:
        """Open the file of API keys, and create an empty document store. Raises ValueError if the file is unusable,
        or if traces need a package that is missing."""
        self.key_gate = None if self.settings.api_keys is None else KeyGate(self.settings.api_keys)
        endpoint = self.settings.trace_endpoint
        self.tracing = None if not endpoint else Tracing(endpoint, self.settings.trace_percent / 100)
        self.unread = UnreadBytes(self.settings.max_unread_megabytes * MEGABYTE)
        self.expected = UnreadBytes(self.settings.max_unread_megabytes * MEGABYTE)
        self.body_memory = UnreadBytes(self.settings.max_unread_megabytes * MEGABYTE, "bodies of requests")
        glossary_bytes = self.settings.max_glossary_megabytes * MEGABYTE
        self.glossary_memory = UnreadBytes(glossary_bytes, "glossaries in requests")
        self.models = ModelSet(self.settings, ModelLoader(self.settings, self.metrics), self._serve_with)
        self.documents = DocumentStore(self.settings.document_options, self._document_finished)
        self.live = LiveSessions(self.settings.max_live_sessions, self.settings.live_idle_seconds, time.monotonic)
        self.metrics.live_sessions.set_function(self.live.__len__)
        self.metrics.documents_held.set_function(self.documents.__len__)

    @property
    def engines(self) -> Sequence[EngineClient]:
        """The engines of all models."""
        return self.models.engines

    async def close(self) -> None:
        """Delete the documents, end changes of models, and close the files of glossaries and API keys."""
        await self.documents.close()  # a change may wait for the requests of one
        await self.models.stop()
        if self.glossaries is not None:
            self.glossaries.close()
        if self.memories is not None:
            await asyncio.to_thread(self.memories.close)
        if self.key_gate is not None:
            await asyncio.to_thread(self.key_gate.close)
        if self.tracing is not None:
            await asyncio.to_thread(self.tracing.close)

    def open(self, engines: Sequence[EngineClient]) -> None:
        """Serve translations with `engines` from now on."""
        max_bytes = self.settings.max_glossary_megabytes * MEGABYTE
        self.glossaries = GlossaryStore(self.settings.glossary_file, max_bytes, self.settings.documents_folder)
        if (path := self.settings.memory_file) is not None:
            quota = Quota(self.settings.max_memory_segments, self.settings.max_memory_megabytes * MEGABYTE)
            self.memories, self.memory_jobs = MemoryStore(path, quota), JobRunner(path, quota)
            if Jobs(self.memories).has_work:
                self.memory_jobs.start()
        self.models.open(engines)
        self.metrics.watch(self.models.engines)

    def _document_finished(self, document: FinishedDocument) -> None:
        self.metrics.document_finished(document.extension, document.outcome)
        if (trace := trace_of_call.get()) is not None:
            attributes: dict[str, Attribute] = {
                "kvasir.format": document.extension.removeprefix("."),
                "kvasir.outcome": document.outcome,
                "kvasir.units": document.size.num_units,
                "kvasir.characters": document.size.num_characters,
            }
            error = None if document.error is None else document.error.code
            trace.add_job("document", attributes, document.phase_seconds, error)

    def _serve_with(self, router: Router) -> None:
        detector = Detector(self.settings.detect_languages or router.source_languages)
        if detector.unknown:
            _log.warning("languages that cannot be detected", extra={"languages": detector.unknown})
        if self.translation_service is None:
            self.translation_service = TranslationService(router, detector, self.settings.limits)
        else:
            self.translation_service.change_models(router, detector)
        self.router = router
        self.metrics.models_served([bundle.config for bundle in router.bundles], self.settings.device)

    def accept(self) -> tuple[TranslationService, Router]:
        """Return the translation service and router. Raises `Draining` during start-up and shutdown."""
        if self.draining or self.translation_service is None or self.router is None:
            raise Draining("the server accepts no new requests; send this one to another server, or retry in a moment")
        return self.translation_service, self.router

    def check_admission(self) -> None:
        """Raise `Draining` during shutdown, and `QueueFull` if every model would reject any request now.

        `Draining` has precedence: a client that retries here would find no server.
        """
        self.accept()
        rejection: QueueFull | None = None
        for engine in self.models.engines:
            try:
                engine.check_admission()
            except QueueFull as full:
                rejection = full
            else:
                return
        if rejection is not None:
            raise rejection

    def stored_glossaries(self) -> GlossaryStore:
        """Return the glossary store. Raises `Draining` during start-up."""
        if self.glossaries is None:
            raise Draining("the server is starting; retry in a moment")
        return self.glossaries

    @property
    def is_idle(self) -> bool:
        """Whether no request and no document is in progress."""
        return not self.num_in_flight and not self.documents.num_unfinished

    @property
    def is_light(self) -> bool:
        """Whether all running requests together are small: some hundred sentences, few details of tokens."""
        return self.body_memory.total <= _LIGHT_BYTES and self.expected.total <= MEGABYTE

    def begin_request(self) -> None:
        """Count an HTTP request that was received."""
        self.num_in_flight += 1
        self.idle.clear()

    def end_request(self) -> None:
        """Count an HTTP request that was answered or whose client disconnected."""
        self.num_in_flight -= 1
        if not self.num_in_flight:
            self.idle.set()


@dataclass(slots=True)
class RequestRecord:
    """Content of one HTTP request's log line and response headers; routes fill in their part.

    `client` is its API key, else its address. `late_status` is the status of an error after the
    response had started with another.
    """

    id: str
    client: str = ""
    key: ApiKey | None = None
    is_admitted: bool = False  # a model accepted the request before its body was read
    charges: list[Charge] = field(default_factory=list, repr=False)  # to the key; returned if the request fails
    resources: ExitStack = field(default_factory=ExitStack, repr=False)  # held until the request ends
    elapsed_seconds: Callable[[], float] = field(default=lambda: 0.0, repr=False)
    late_status: int | None = None
    late_phases: Mapping[str, float] = field(default_factory=dict)  # seconds until the deadline, if it passed
    trace: RequestTrace | None = field(default=None, repr=False)
    is_streamed: bool = False
    model: str | None = None
    num_texts: int = 0
    num_characters: int = 0
    result: TranslationResult | None = field(default=None, repr=False)

    def timings(self) -> dict[str, float]:
        """Return the durations of the four phases and the total so far, in milliseconds."""
        durations = {**self.phase_seconds(), "total": self.elapsed_seconds()}
        return {name: milliseconds(duration) for name, duration in durations.items()}

    def phase_seconds(self) -> dict[str, float]:
        """Return the durations of the four phases in seconds: of the result, or until the deadline."""
        phases = Phases() if self.result is None else self.result.phases
        return {**phases.by_name(), **self.late_phases}


def milliseconds(seconds: float) -> float:
    """Convert a duration to the form used in headers, logs and responses."""
    return round(seconds * 1000, 3)


def server_state(request: Request) -> ServerState:
    """Return the state of the application that serves this request."""
    return cast(ServerState, request.scope["app"].state.server)


def request_record(request: Request) -> RequestRecord:
    """Return the record that the request recorder created for this request."""
    return cast(RequestRecord, request.scope["state"]["record"])
