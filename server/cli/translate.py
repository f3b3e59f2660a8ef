"""Translation of files: line by line with full batches, or a document as a whole."""

import asyncio
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import BinaryIO

from bundle.loading import Bundle
from server.cli.bundle_choice import PIVOT
from server.cli.json_lines import json_line
from server.cli.offline_options import OfflineOptions, check_document_options, check_line_options
from server.documents.formats.registry import format_of
from server.documents.input.limits import MEGABYTE, FileLimits
from server.documents.rewriting import InProcessRewrite, Translate, translate_document
from server.documents.text_translation import document_translation
from server.interface.engine_client import SentenceOutcome
from server.operations.cpu_count import usable_cpus
from server.text.language_detection import Detector
from server.translation.limits import TranslationLimits
from server.translation.pipeline import Pipeline
from server.translation.router import Router
from server.translation.service import TranslationOutcome, TranslationService
from server.translation.types import TranslationRequest, TranslationResult
from server.workers.engine_pool import EnginePool, PoolOptions
from server.workers.sentence_cache import CachedEngineClient

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_UNBOUNDED_SENTENCES = 1 << 30  # windows limit the queue

# Local files may be larger than files received over HTTP.
_DOCUMENT_LIMITS = FileLimits(
    max_uncompressed_bytes=4000 * MEGABYTE, max_part_bytes=500 * MEGABYTE, max_tags=20_000_000
)

# Windows limit the memory. They are submitted in blocks, longest lines first. The blocks in flight hold a multiple of
# all rows, so that no replica waits for the next block.
_WINDOW_LINES = 20_000
_BLOCK_LINES = 64
_BLOCKS_PER_REPLICA = 6


class NotUtf8(ValueError):
    """A line of the input is not UTF-8; the message has the number of the line."""


@dataclass(slots=True)
class OfflineStats:
    """Statistics of a run. Tokens include the end of every sentence; `seconds` exclude the loading of the model.

    `sentences` is the sum of `decoded`, `cached` (decoded earlier) and `coalesced` (joined an identical one in flight).
    """

    lines: int = 0
    sentences: int = 0
    decoded: int = 0
    cached: int = 0
    coalesced: int = 0
    source_tokens: int = 0
    target_tokens: int = 0
    seconds: float = 0.0
    rows_per_step: float = 0.0

    @property
    def tokens_per_second(self) -> float:
        """Target tokens per second."""
        return self.target_tokens / self.seconds if self.seconds else 0.0

    def add(self, num_lines: int, result: TranslationResult) -> None:
        """Add the counts of one block."""
        self.lines += num_lines
        self.sentences += len(result.sentence_tokens)
        self.source_tokens += sum(source for source, _ in result.sentence_tokens)
        self.target_tokens += sum(target for _, target in result.sentence_tokens)


class _Outcomes:
    """Counts of decoded, cached and coalesced sentences."""

    def __init__(self) -> None:
        self.counts = Counter[SentenceOutcome]()

    def sentences(self, outcome: SentenceOutcome, count: int) -> None:
        self.counts[outcome] += count

    def cache_grew(self, _num_sentences: int, _num_bytes: int) -> None:
        pass  # the cache ends with the run


class _Occupancy:
    """Mean number of rows in a decoder step, over all replicas."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._steps = 0
        self._rows = 0

    def step(self, rows: int, _seconds: float) -> None:
        with self._lock:
            self._steps += 1
            self._rows += rows

    @property
    def rows_per_step(self) -> float:
        return self._rows / self._steps if self._steps else 0.0


def translate_file(
    bundles: Sequence[Bundle],
    source: BinaryIO,
    sink: BinaryIO,
    options: OfflineOptions,
    on_progress: Callable[[int], None] = lambda _: None,
) -> OfflineStats:
    """Translate every line of `source` into `sink`: UTF-8, with LF or CRLF in the input and LF in the output.

    `on_progress` receives the number of lines translated since its last call. Raises `NotUtf8`, `InvalidRequest`,
    `UnsupportedPair` and errors of the engine.
    """
    stats = OfflineStats()
    check_line_options(options)
    with _opened(bundles, options, stats) as router:
        max_blocks = (options.threads or usable_cpus()) * _BLOCKS_PER_REPLICA
        run = _Run(router, options, max_blocks, on_progress, stats)
        for window in _windows(_lines(source)):
            sink.writelines(line.encode() + b"\n" for line in asyncio.run(run.translate_window(window)))
            sink.flush()
    return stats


def translate_document_file(
    bundles: Sequence[Bundle],
    source: Path,
    sink: Path,
    options: OfflineOptions,
    on_progress: Callable[[int], None] = lambda _: None,
) -> OfflineStats:
    """Translate a document into `sink`, which is written only if the whole translation succeeds.

    `bundles` are one, or two that translate through a pivot language. `on_progress` receives the number of paragraphs
    translated since its last call; `lines` of the result counts them.
    Raises `UnsupportedFormat`, `InvalidDocument`, `DocumentTooLarge`, `InvalidRequest` and errors of the engine.
    """
    check_document_options(options)
    kind = format_of(source.name, options.delimiter)
    stats = OfflineStats()

    def observe(done: TranslationOutcome) -> None:
        stats.add(0, done.result)

    def advance(num_done: int, _num_units: int) -> None:
        on_progress(num_done - stats.lines)
        stats.lines = num_done

    async def run(translate: Translate, unfinished: Path) -> None:
        with InProcessRewrite(source, unfinished, kind, _DOCUMENT_LIMITS) as steps:
            await translate_document(steps, translate, await steps.measure(), advance)

    with _opened(bundles, options, stats) as router, tempfile.TemporaryDirectory(dir=sink.parent) as folder:
        service = TranslationService(router, Detector(()), TranslationLimits())
        request = TranslationRequest((), "", "", options.decoding)
        translate = document_translation(service, request, options.source, options.target, observe)
        unfinished = Path(folder) / sink.name
        asyncio.run(run(translate, unfinished))
        unfinished.replace(sink)
    return stats


@contextmanager
def _opened(bundles: Sequence[Bundle], options: OfflineOptions, stats: OfflineStats) -> Iterator[Router]:
    """Open a router over these bundles, each with its own engines. Closing it completes `stats`."""
    occupancy, outcomes = _Occupancy(), _Outcomes()
    pool_options = PoolOptions(
        replicas=-(-(options.threads or usable_cpus()) // len(bundles)),
        threads_per_replica=1,
        max_waiting=_UNBOUNDED_SENTENCES,
        observe=occupancy,
    )
    with ExitStack() as stack:
        engines = []
        for bundle in bundles:
            pool = EnginePool.open(bundle, pool_options)
            engines.append(CachedEngineClient(pool, options.cache_sentences, outcomes))
            stack.callback(engines[-1].close)
        started = time.perf_counter()
        yield Router([Pipeline(engine, TranslationLimits()) for engine in engines], PIVOT)
        stats.seconds = time.perf_counter() - started
    stats.rows_per_step = occupancy.rows_per_step
    stats.decoded, stats.cached = outcomes.counts["decoded"], outcomes.counts["cached"]
    stats.coalesced = outcomes.counts["coalesced"]


class _Run:
    """Translation of one file in windows and blocks."""

    def __init__(
        self,
        router: Router,
        options: OfflineOptions,
        max_blocks: int,
        on_progress: Callable[[int], None],
        stats: OfflineStats,
    ) -> None:
        self._route = router.find(options.source, options.target)
        self._options = options
        self._max_blocks = max_blocks
        self._on_progress = on_progress
        self.stats = stats

    async def translate_window(self, lines: Sequence[str]) -> list[str]:
        """Return the translations of these lines, in their order."""
        translated = [""] * len(lines)
        longest_first = sorted(range(len(lines)), key=lambda index: len(lines[index]), reverse=True)
        blocks = iter([longest_first[i : i + _BLOCK_LINES] for i in range(0, len(lines), _BLOCK_LINES)])

        async def work() -> None:
            for block in blocks:
                result = await self._translate_block([lines[index] for index in block])
                for index, translation in zip(block, result.translations, strict=True):
                    translated[index] = json_line(translation) if self._options.as_json else translation.text
                self.stats.add(len(block), result)
                self._on_progress(len(block))

        async with asyncio.TaskGroup() as group:
            for _ in range(self._max_blocks):
                group.create_task(work())
        return translated

    async def _translate_block(self, lines: Sequence[str]) -> TranslationResult:
        request = TranslationRequest(
            texts=tuple(lines),
            source=self._route.source,
            target=self._route.target,
            options=self._options.decoding,
        )
        return await self._route.pipeline.translate(request)


def _lines(source: BinaryIO) -> Iterator[str]:
    """Yield lines without their ends. Only LF and CRLF end a line: other line breaks are text."""
    for number, line in enumerate(source, start=1):
        content = line.removeprefix(_BYTE_ORDER_MARK) if number == 1 else line
        try:
            yield content.removesuffix(b"\n").removesuffix(b"\r").decode()
        except UnicodeDecodeError as error:
            raise NotUtf8(f"line {number} is not UTF-8: {error.reason} at byte {error.start}") from error


def _windows(lines: Iterable[str]) -> Iterator[list[str]]:
    iterator = iter(lines)
    while window := list(islice(iterator, _WINDOW_LINES)):
        yield window
