"""The application under uvicorn: its start, and its shutdown without lost responses."""

import asyncio
import contextlib
import logging
import math
import signal
import socket
import sys
from collections.abc import Iterator, Sequence
from functools import partial
from typing import cast

import uvicorn
from fastapi import FastAPI

from bundle.loading import Bundle
from kernels.onnx_registration import running_kernels
from server.cli.listening import address_of
from server.cli.tls import TlsCertificate
from server.http.admin.app import create_admin_app
from server.http.app import create_app
from server.http.connection import ConnectionTable, LimitedConnection
from server.http.middleware.forwarded_headers import ForwardedHeaders
from server.http.state import ServerState
from server.interface.engine_client import EngineClient
from server.interface.errors import Draining
from server.operations.api_keys.key_gate import KeyGate
from server.operations.event_loop import collect_when_idle, defer_full_collections
from server.operations.metrics import Metrics
from server.operations.settings import Settings

_log = logging.getLogger("kvasir")

_SIGNALS = (signal.SIGTERM, signal.SIGINT)
_MAX_MESSAGE_BYTES = 256 * 1024  # of a WebSocket: all characters that may wait for their translation
_MAX_ADMIN_CONNECTIONS = 32
_SWITCH_SECONDS = 0.001
_FETCH_SECONDS = 0.05  # between looks at the documents that clients may still fetch
_CLOSE_SECONDS = 1  # for requests and connections after the drain

_config = partial(
    uvicorn.Config,
    log_config=None,
    access_log=False,
    server_header=False,
    proxy_headers=False,
    timeout_graceful_shutdown=_CLOSE_SECONDS,
)


def run_server(
    settings: Settings,
    engines: Sequence[EngineClient],
    observer: Metrics,
    sockets: list[socket.socket],
    certificate: TlsCertificate | None,
    admin_socket: socket.socket | None,
) -> int:
    """Serve on these sockets until SIGTERM or Ctrl-C. Return the exit code: 0, or 1 if requests were lost."""
    names = [engine.bundle.config.name for engine in engines]
    _log.info("models loaded", extra={"models": names, "kernels": running_kernels()})
    _log_cards([engine.bundle for engine in engines])
    app = create_app(settings, engines, observer)
    table = ConnectionTable.of_process()
    defer_full_collections()
    # A thread that computes gives the interpreter to the event loop after this time. With Python's 5 ms, a request with
    # ten system calls waits for 50 ms.
    sys.setswitchinterval(_SWITCH_SECONDS)
    config = _config(
        ForwardedHeaders(app, settings.trusted_proxies),
        http=cast(type[asyncio.Protocol], partial(LimitedConnection, settings, observer, table)),
        ws="websockets-sansio",
        ws_max_size=_MAX_MESSAGE_BYTES,
        ws_per_message_deflate=False,  # a message is a line
        ssl_context_factory=None if certificate is None else lambda *_: certificate.context,
    )
    admin = None
    if admin_socket is not None:
        admin_table = ConnectionTable(_MAX_ADMIN_CONNECTIONS, num_reserved=_MAX_ADMIN_CONNECTIONS)
        http = cast(type[asyncio.Protocol], partial(LimitedConnection, settings, observer, admin_table))
        admin = AdminServer(app.state.server, admin_socket, http)
    server = _DrainingServer(config, app, certificate, admin)
    server.run(sockets)
    return 1 if server.num_lost else 0


def _log_cards(bundles: Sequence[Bundle]) -> None:
    """Log the purposes and the quality that model cards state, and the command that gets better models."""
    for bundle in bundles:
        card = bundle.card
        if card.purpose or card.quality:
            bleu = "; ".join(f"{each.data}: {each.bleu:.1f}" for each in card.quality)
            message = "demonstration model" if card.is_demonstration else "model card"
            _log.info(message, extra={"model": bundle.config.name, "purpose": card.purpose, "bleu": bleu})
    weak = [bundle.config for bundle in bundles if bundle.card.is_demonstration]
    if weak:
        pairs = [f"{config.source_languages[0]}-{config.target_languages[0]}" for config in weak]
        command = " ".join(["kvasir serve", *pairs])
        _log.info("better translations", extra={"command": command, "downloads": "Mozilla's models"})


class AdminServer:
    """Serves administration on a socket of its own, in the event loop of the server."""

    def __init__(self, state: ServerState, listening: socket.socket, http: type[asyncio.Protocol]) -> None:
        """`http` is the class of its connections. Raises ValueError if the file of keys is unusable."""
        keys = state.settings.admin_keys
        self._gate = None if keys is None else KeyGate(keys)
        self._socket = listening
        config = _config(create_admin_app(state, self._gate), http=http, lifespan="off", ws="none")
        self._server = _QuietServer(config)
        self._serving: asyncio.Task[None] | None = None
        self._reading: asyncio.Task[None] | None = None  # of the file of keys

    async def start(self) -> None:
        """Start to listen."""
        self._socket.listen()  # uvicorn does later, in its task: the log line would be too early
        self._serving = asyncio.create_task(self._server.serve([self._socket]))
        if self._gate is not None:
            self._reading = asyncio.create_task(self._gate.run())
        _log.info("listening for administration", extra={"url": address_of(self._socket)})

    async def stop(self) -> None:
        """End connections, and close the file of keys."""
        self._server.should_exit = True
        if self._serving is not None:
            await self._serving
        if self._reading is not None:
            self._reading.cancel()
        if self._gate is not None:
            await asyncio.to_thread(self._gate.close)


class _QuietServer(uvicorn.Server):
    """uvicorn's server without signal handlers, which the main server has."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave signals to the main server."""
        yield


class _DrainingServer(uvicorn.Server):
    """uvicorn's server, draining on the first signal: it rejects new requests and finishes running ones.

    The second signal ends running requests with an error. The port stays open, so that probes and late requests receive
    a response instead of a refused connection.
    """

    def __init__(
        self,
        config: uvicorn.Config,
        app: FastAPI,
        certificate: TlsCertificate | None,
        admin: AdminServer | None = None,
    ) -> None:
        super().__init__(config)
        self._app = app
        self._state: ServerState = app.state.server
        self._certificate = certificate
        self._admin = admin
        self._reloading: asyncio.Task[None] | None = None
        self._background: list[asyncio.Task[object]] = []
        self._ending: asyncio.Task[None] | None = None
        self._was_urged = asyncio.Event()
        self.num_lost = 0

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Handle signals in the event loop. uvicorn's own handlers end the process by the signal, not with 0."""
        loop = asyncio.get_running_loop()
        for number in _SIGNALS:
            loop.add_signal_handler(number, self._on_signal)
        loop.add_signal_handler(signal.SIGHUP, self._on_hangup)
        try:
            yield
        finally:
            for number in (*_SIGNALS, signal.SIGHUP):
                loop.remove_signal_handler(number)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start listening. The address is the last line logged before requests."""
        await super().startup(sockets)
        if self.started and sockets:
            if self._certificate is not None:
                self._background.append(asyncio.create_task(self._certificate.watch()))
            state = self._state
            collecting = collect_when_idle(lambda: state.is_idle, lambda: state.is_light)
            self._background.append(asyncio.create_task(collecting))
            has_tls = self._certificate is not None
            if self._admin is not None:
                await self._admin.start()
            _log.info("listening", extra={"url": address_of(sockets[0], has_tls=has_tls)})

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Close connections and listening sockets, those for administration included."""
        if self._admin is not None:
            await self._admin.stop()
        await super().shutdown(sockets)

    def _on_hangup(self) -> None:
        if self._state.router is not None and not self._state.draining:
            self._reloading = asyncio.create_task(self._reload())

    async def _reload(self) -> None:
        with contextlib.suppress(Draining):  # a signal to end came first
            await self._state.models.reload()

    def _on_signal(self) -> None:
        if self._ending is None:
            self._ending = asyncio.create_task(self._drain_and_exit())
        elif not self._was_urged.is_set():
            self._was_urged.set()
        else:
            self.should_exit = self.force_exit = True

    async def _drain_and_exit(self) -> None:
        state = self._state
        state.draining = True
        state.models.stopped.set()
        state.live.end_all("draining")
        _log.info("draining", extra={"requests": state.num_in_flight, "documents": state.documents.num_unfinished})
        drained, urged = asyncio.create_task(self._drain()), asyncio.create_task(self._was_urged.wait())
        await asyncio.wait(
            {drained, urged}, timeout=state.settings.drain_timeout_seconds, return_when=asyncio.FIRST_COMPLETED
        )
        num_requests, num_documents = state.num_in_flight, state.documents.num_unfinished
        if drained.done() and num_requests:  # refusals, and answers about documents, that have just begun
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(state.idle.wait(), _CLOSE_SECONDS)
                num_requests = 0
        drained.cancel()
        urged.cancel()
        self.num_lost = num_requests + num_documents
        unfetched = state.documents.num_awaited
        lost = {"lost": num_requests, "lost_documents": num_documents, "unfetched_documents": unfetched}
        _log.log(logging.WARNING if self.num_lost else logging.INFO, "drained", extra=lost)
        if num_requests:
            # Closing the engines answers the waiting requests with an error; uvicorn would drop them.
            for engine in state.engines:
                await asyncio.to_thread(engine.close)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(state.idle.wait(), _CLOSE_SECONDS)
        self.should_exit = True

    async def _drain(self) -> None:
        # HTTP requests first: some are accepted and not yet submitted to an engine.
        if self._state.num_in_flight:
            await self._state.idle.wait()
        documents = self._state.documents
        await documents.finish()
        while documents.num_awaited:  # noqa: ASYNC110 - clients fetch them, or stop asking
            await asyncio.sleep(_FETCH_SECONDS)
        for engine in self._state.engines:
            await engine.drain(math.inf)
