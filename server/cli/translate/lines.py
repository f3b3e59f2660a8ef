"""Translation of a file line by line, with full batches."""

import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import BinaryIO, cast

from bundle.loading import Bundle
from server.cli.offline_options import OfflineOptions, check_line_options
from server.cli.translate.blocks import Block, TranslatedBlock
from server.cli.translate.input_lines import EncodedOutput, InputLines, input_encoding
from server.cli.translate.stats import OfflineStats
from server.cli.translate.workers import CallingThread, WorkerProcesses
from server.operations.cpu_count import usable_cpus

# Limits of a block. Those of a short input are smaller, so that every engine has some.
_BLOCK_LINES = 64
_BLOCK_CHARACTERS = 8192
_MIN_BLOCKS_PER_ENGINE = 2
# Lines are sorted by length within a window. It limits the memory, and the wait for the first answers of a long file.
_WINDOW_LINES_PER_ENGINE = 4096
# One engine has translated so much text before another process has loaded the model.
_CHARACTERS_PER_ENGINE = 4096


def translate_file(
    bundles: Sequence[Bundle],
    source: BinaryIO,
    sink: BinaryIO,
    options: OfflineOptions,
    on_progress: Callable[[int], None] = lambda _: None,
) -> OfflineStats:
    """Translate every line of `source` into `sink`, in its encoding: LF or CRLF in the input, LF in the output.

    `on_progress` receives the number of lines translated since its last call. Raises `UndecodableInput` or
    `LineTooLong` after the lines before the wrong one, `InvalidRequest`, `UnsupportedPair`, and errors of the engine.
    """
    check_line_options(options)
    encoding = input_encoding(source, options.format_options.encoding)
    if encoding.codec != "utf-8":
        sink = cast(BinaryIO, EncodedOutput(sink, encoding))
    lines = InputLines(source, encoding.codec)
    num_engines = options.threads or usable_cpus()
    num_characters = lines.read_beginning(num_engines * _CHARACTERS_PER_ENGINE)
    if num_characters is not None:
        num_engines = max(min(num_characters // _CHARACTERS_PER_ENGINE, num_engines), 1)
    workers = CallingThread(bundles, options) if num_engines == 1 else WorkerProcesses(bundles, options, num_engines)
    started = time.perf_counter()
    try:
        lines.start()  # a thread: no process is forked after it
        stats = _Run(workers, lines, sink, num_engines, on_progress).run()
    finally:
        workers.close()
    stats.seconds = time.perf_counter() - started
    return stats


class _Window:
    """Consecutive lines, translated longest first and written in their order."""

    def __init__(self, lines: list[str], num_engines: int) -> None:
        self.lines = lines
        self._translations = [""] * len(lines)
        # Equal lines become neighbours, which share an engine's cache.
        order = sorted(range(len(lines)), key=lambda index: (len(lines[index]), lines[index]), reverse=True)
        max_lines = min(-(-len(lines) // (num_engines * _MIN_BLOCKS_PER_ENGINE)), _BLOCK_LINES)
        self.unsubmitted = deque(_blocks(lines, order, max_lines))
        self.num_missing = len(lines)

    def add(self, indices: list[int], translations: list[str]) -> None:
        """Add the translations of the lines at these indices."""
        for index, translation in zip(indices, translations, strict=True):
            self._translations[index] = translation
        self.num_missing -= len(indices)

    def write(self, sink: BinaryIO) -> None:
        """Write all translations."""
        sink.write("".join([f"{translation}\n" for translation in self._translations]).encode())
        sink.flush()


def _blocks(lines: Sequence[str], order: Iterable[int], max_lines: int) -> Iterator[list[int]]:
    """Yield the indices of each block of lines in this order."""
    block: list[int] = []
    num_characters = 0
    for index in order:
        if block and (len(block) == max_lines or num_characters + len(lines[index]) > _BLOCK_CHARACTERS):
            yield block
            block, num_characters = [], 0
        block.append(index)
        num_characters += len(lines[index])
    if block:
        yield block


class _Run:
    """Lines into blocks, blocks to workers, and translations into the output."""

    def __init__(
        self,
        workers: CallingThread | WorkerProcesses,
        lines: InputLines,
        sink: BinaryIO,
        num_engines: int,
        on_progress: Callable[[int], None],
    ) -> None:
        self._workers = workers
        self._lines = lines
        self._sink = sink
        self._num_engines = num_engines
        self._on_progress = on_progress
        self._windows: deque[_Window] = deque()  # not written, in order
        self._submitted: dict[int, tuple[_Window, list[int]]] = {}
        self._num_blocks = 0
        self._stats = OfflineStats()

    def run(self) -> OfflineStats:
        """Translate all lines and return the counts."""
        while True:
            while self._workers.has_capacity and self._submit_next():
                pass
            if not self._workers.num_missing:
                assert not self._windows, "every window is written when its last block returns"
                assert self._lines.is_exhausted, "nothing runs although lines are left"
                return self._stats
            for block in self._workers.receive():
                self._add(block)

    def _submit_next(self) -> bool:
        """Submit a block of the newest window, or of the lines that have arrived since; return whether there is one."""
        if not self._windows or not self._windows[-1].unsubmitted:
            lines = self._lines.take(
                self._num_engines * _WINDOW_LINES_PER_ENGINE, may_wait=not self._workers.num_missing
            )
            if not lines:
                return False
            self._windows.append(_Window(lines, self._num_engines))
        window = self._windows[-1]
        indices = window.unsubmitted.popleft()
        self._submitted[self._num_blocks] = (window, indices)
        self._workers.submit(Block(self._num_blocks, [window.lines[index] for index in indices]))
        self._num_blocks += 1
        return True

    def _add(self, block: TranslatedBlock) -> None:
        window, indices = self._submitted.pop(block.index)
        window.add(indices, block.lines)
        while self._windows and not self._windows[0].num_missing:
            self._windows.popleft().write(self._sink)
        self._stats.add(block.stats)
        self._on_progress(len(indices))
