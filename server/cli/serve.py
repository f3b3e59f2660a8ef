"""Runs the application under uvicorn, and takes it down without losing an answer."""

import asyncio
import contextlib
import gc
import logging
import math
import os
import signal
from collections.abc import Iterator, Sequence

import uvicorn

from kernels.onnx_registration import running_kernels
from server.http.app import create_app
from server.http.state import ServerState
from server.interface.engine_client import EngineClient
from server.operations.log_lines import configure_logging
from server.operations.metrics import Metrics
from server.operations.model_loading import open_engines
from server.operations.settings import Settings, unknown_variables

_log = logging.getLogger("kvasir")

_SIGNALS = (signal.SIGTERM, signal.SIGINT)
_CLOSE_SECONDS = 1  # for connections that are still open after the drain


def serve(settings: Settings) -> int:
    """Serve until SIGTERM or Ctrl-C; the exit code of the process: 0, or 1 if requests were lost.

    Raises `BundleError` or OSError before it listens.
    """
    configure_logging(settings.log_level)
    for variable, meant in unknown_variables(os.environ).items():
        _log.warning("no setting has this environment variable", extra={"variable": variable, "similar": meant})
    _log.info("loading", extra={"folders": [str(folder) for folder in settings.model]})
    observer = Metrics()
    generators = open_engines(settings, observer)
    try:
        return _serve(settings, generators, observer)
    finally:  # most often they are closed already
        for generator in generators:
            generator.close()


def _serve(settings: Settings, generators: Sequence[EngineClient], observer: Metrics) -> int:
    names = [generator.bundle.config.name for generator in generators]
    _log.info("loaded", extra={"models": names, "kernels": running_kernels()})
    app = create_app(settings, generators, observer)
    # What is loaded stays: the collector need not look through it while answers wait.
    gc.collect()
    gc.freeze()
    config = uvicorn.Config(
        app,
        host=settings.host,
        port=settings.port,
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=_CLOSE_SECONDS,
    )
    server = _DrainingServer(config, app.state.server)
    server.run()
    return 1 if server.num_lost else 0


class _DrainingServer(uvicorn.Server):
    """On the first signal: refuse what is new, finish what runs, stop. On the second: tell what runs that it is lost.

    The port stays open meanwhile, so that probes and latecomers get an answer instead of a refused connection.
    """

    def __init__(self, config: uvicorn.Config, state: ServerState) -> None:
        super().__init__(config)
        self._state = state
        self._ending: asyncio.Task[None] | None = None
        self._was_urged = asyncio.Event()
        self.num_lost = 0

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Handle signals in the event loop. Uvicorn's own way ends the process by the signal, not with 0."""
        loop = asyncio.get_running_loop()
        for number in _SIGNALS:
            loop.add_signal_handler(number, self._on_signal)
        try:
            yield
        finally:
            for number in _SIGNALS:
                loop.remove_signal_handler(number)

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
        _log.info("draining", extra={"requests": state.num_in_flight})
        drained, urged = asyncio.create_task(self._drain()), asyncio.create_task(self._was_urged.wait())
        await asyncio.wait(
            {drained, urged}, timeout=state.settings.drain_timeout_seconds, return_when=asyncio.FIRST_COMPLETED
        )
        drained.cancel()
        urged.cancel()
        self.num_lost = state.num_in_flight
        _log.log(logging.WARNING if self.num_lost else logging.INFO, "drained", extra={"lost": self.num_lost})
        if self.num_lost:
            # Whoever waits is told so, which uvicorn would not do.
            for generator in state.engines:
                await asyncio.to_thread(generator.close)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(state.idle.wait(), _CLOSE_SECONDS)
        self.should_exit = True

    async def _drain(self) -> None:
        # The HTTP requests first: some have been accepted and are still on their way to an engine.
        if self._state.num_in_flight:
            await self._state.idle.wait()
        for generator in self._state.engines:
            await generator.drain(math.inf)
