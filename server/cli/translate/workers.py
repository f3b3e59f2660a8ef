"""Workers that translate blocks of lines: processes with an engine each, or the calling thread."""

import gc
import multiprocessing
import os
import selectors
import signal
import sys
import threading
import warnings
from collections.abc import Sequence
from multiprocessing.connection import Connection, wait
from multiprocessing.context import ForkContext, SpawnContext
from multiprocessing.process import BaseProcess

from bundle.loading import Bundle
from server.cli.offline_options import OfflineOptions
from server.cli.translate.blocks import Block, BlockTranslator, TranslatedBlock
from server.interface.errors import EngineFailed
from server.text.digits import load_tables
from server.text.language_identifier import load_identifier
from server.text.spans import compile_patterns
from server.translation.limits import TranslationLimits
from server.workers.message_pipe import MessagePipe

_BLOCKS_PER_WORKER = 16  # enough to fill all rows while blocks wait for one long sentence
_POLL_SECONDS = 0.1  # longest wait for a block before newly arrived lines are looked for
_OBJECTS_PER_COLLECTION = 20_000
_END_SECONDS = 5.0  # for a process to exit by itself


class CallingThread:
    """Receives blocks of lines and returns their translations, in any order: within `receive`, with one engine."""

    def __init__(self, bundles: Sequence[Bundle], options: OfflineOptions) -> None:
        self._translator = BlockTranslator(bundles, options)

    @property
    def num_missing(self) -> int:
        """Submitted blocks that have not been returned."""
        return self._translator.num_running

    @property
    def has_capacity(self) -> bool:
        """Whether the engine needs another block to fill its rows."""
        return self._translator.num_running < _BLOCKS_PER_WORKER

    def submit(self, block: Block) -> None:
        """Begin a block."""
        self._translator.start(block)

    def receive(self) -> list[TranslatedBlock]:
        """Run the engine until a block is finished. Raises `InvalidRequest` and `EngineFailed`."""
        while not (finished := self._translator.advance()):
            pass
        return finished

    def close(self) -> None:
        """Cancel unfinished blocks."""
        self._translator.close()


class WorkerProcesses:
    """`CallingThread` in processes: no engine waits for the Python of another one or of this process."""

    def __init__(self, bundles: Sequence[Bundle], options: OfflineOptions, num_processes: int) -> None:
        """Start the processes and wait until all have loaded the models. Raises the exceptions of `BlockTranslator`."""
        context = _context()
        limits = TranslationLimits()
        if limits.keeps_target(options.decoding):
            load_identifier()  # once: forked processes share it
        if isinstance(context, ForkContext):
            compile_patterns()
            for bundle in bundles:
                for pair in zip(bundle.config.source_languages[:1], bundle.config.target_languages[:1], strict=False):
                    load_tables(*pair)
        self._workers: list[_Worker] = []
        try:
            for _ in range(num_processes):
                self._workers.append(_Worker(context, bundles, options, self._workers))
            for worker in self._workers:
                worker.open()
        except BaseException:
            self.close()
            raise
        self._by_connection = {worker.connection: worker for worker in self._workers}

    @property
    def num_missing(self) -> int:
        """Submitted blocks that have not been returned."""
        return sum([worker.num_missing for worker in self._workers])

    @property
    def has_capacity(self) -> bool:
        """Whether a process needs another block to fill its rows."""
        return any(worker.num_missing < _BLOCKS_PER_WORKER for worker in self._workers)

    def submit(self, block: Block) -> None:
        """Send a block to the process with the fewest ones."""
        min(self._workers, key=lambda worker: worker.num_missing).send(block)

    def receive(self) -> list[TranslatedBlock]:
        """Return blocks that have arrived, or nothing after a moment. Raises `InvalidRequest` and `EngineFailed`."""
        received: list[TranslatedBlock] = []
        for connection in wait(list(self._by_connection), _POLL_SECONDS):
            block = self._by_connection[connection].receive()  # type: ignore[index]  # `wait` returns those given
            assert block is not None, "a worker that has loaded the model sends blocks"
            received.append(block)
        return received

    def close(self) -> None:
        """End the processes; unfinished blocks are discarded."""
        for worker in self._workers:
            worker.end()
        for worker in self._workers:
            worker.join()


class _Worker:
    """One process, the blocks that it has, and this end of its pipe."""

    def __init__(
        self,
        context: ForkContext | SpawnContext,
        bundles: Sequence[Bundle],
        options: OfflineOptions,
        earlier: Sequence["_Worker"],
    ) -> None:
        self.num_missing = 0
        self.connection, theirs = context.Pipe()
        self._pipe: MessagePipe | None = None
        # A forked process inherits these ends of all pipes, and a pipe ends only when all its copies are closed.
        inherited = [each.connection for each in (*earlier, self)] if isinstance(context, ForkContext) else []
        self._process: BaseProcess = context.Process(
            target=_run_worker, args=(theirs, inherited, bundles, options), name="translation", daemon=True
        )
        with warnings.catch_warnings():
            # Python warns of any thread. Those of NumPy's linear algebra library are prepared for forks.
            warnings.simplefilter("ignore", DeprecationWarning)
            self._process.start()
        theirs.close()

    def open(self) -> None:
        """Wait until the models are loaded. Not to be called before the last process is forked: it starts a thread."""
        self.receive()
        self._pipe = MessagePipe(self.connection, "blocks")

    def send(self, block: Block) -> None:
        assert self._pipe is not None, "the worker is open"
        self._pipe.send(block)
        self.num_missing += 1

    def receive(self) -> TranslatedBlock | None:
        """Return the next message. Raises the exception that it contains, and `EngineFailed` if the process ended."""
        try:
            message: TranslatedBlock | Exception | None = self.connection.recv()
        except (EOFError, OSError):
            self._process.join(_END_SECONDS)
            code = self._process.exitcode
            raise EngineFailed(f"a worker process exited with code {code} before its lines were translated") from None
        if isinstance(message, Exception):
            raise message
        self.num_missing -= message is not None
        return message

    def end(self) -> None:
        if self._pipe is None or self.num_missing:
            self._process.kill()
        if self._pipe is not None:
            self._pipe.end()

    def join(self) -> None:
        self._process.join()
        if self._pipe is not None:
            self._pipe.join()
        self.connection.close()


def _context() -> ForkContext | SpawnContext:
    """Return how processes start: forked where no other thread can hold a lock, which saves half a second each."""
    if sys.platform == "linux" and threading.active_count() == 1:
        return multiprocessing.get_context("fork")
    return multiprocessing.get_context("spawn")


def _run_worker(
    connection: Connection, inherited: Sequence[Connection], bundles: Sequence[Bundle], options: OfflineOptions
) -> None:
    """Send None or an exception; then translate blocks until None or the end of the pipe arrives."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent process ends this one
    for each in inherited:
        each.close()
    try:
        translator = BlockTranslator(bundles, options)
    except Exception as error:  # noqa: BLE001 - the parent process raises it
        connection.send(error)
        return
    try:
        connection.send(None)
        # One collection for each 700 new objects, the default, takes 5 % of the time and finds nothing.
        gc.freeze()
        gc.set_threshold(_OBJECTS_PER_COLLECTION, 50, 100)
        _translate(connection, translator)
    except (EOFError, OSError):  # the parent process ended
        pass
    os._exit(0)  # nothing is left to clean up, and freeing a model takes time


def _translate(connection: Connection, translator: BlockTranslator) -> None:
    # Connection.poll creates a selector in every call, and this one is polled before every step.
    incoming = selectors.DefaultSelector()
    incoming.register(connection, selectors.EVENT_READ)
    while True:
        while not translator.num_running or incoming.select(0):
            if (block := connection.recv()) is None:
                return
            translator.start(block)
        try:
            finished = translator.advance()
        except Exception as error:  # noqa: BLE001 - the parent process raises it
            connection.send(error)
            return
        for translated in finished:
            connection.send(translated)
