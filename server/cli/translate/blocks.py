"""Translation of blocks of lines by one engine, on one thread."""

import asyncio
import json
import math
import selectors
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass

from bundle.loading import Bundle
from server.cli.offline_options import OfflineOptions
from server.cli.translate.stats import OfflineStats, StatsRecorder
from server.operations.defaults import DEFAULT_PIVOT
from server.text.language_detection import Detector
from server.text.language_tags import match_language
from server.translation.limits import TranslationLimits
from server.translation.pipeline import Pipeline
from server.translation.router import Route, Router
from server.translation.types import Translation, TranslationRequest
from server.workers.cache import CachedEngineClient
from server.workers.stepped_engine import SteppedEngine

# Fields that were not requested.
_EMPTY: tuple[object, ...] = (None, (), [])


def json_line(translation: Translation) -> str:
    """Return a translation as one line, with the field names of `POST /v1/translate`."""
    return json.dumps(_known(asdict(translation)), ensure_ascii=False)


def _known(value: object) -> object:
    if isinstance(value, dict):
        return {name: _known(each) for name, each in value.items() if each not in _EMPTY and not _is_nan(each)}
    if isinstance(value, list | tuple):
        return [None if _is_nan(each) else _known(each) for each in value]
    return value


def _is_nan(value: object) -> bool:
    return isinstance(value, float) and not math.isfinite(value)


_MAX_ROWS = 128
_MAX_ENCODER_TOKENS = 512


@dataclass(frozen=True, slots=True)
class Block:
    """Lines that are translated together; `index` identifies the block."""

    index: int
    lines: list[str]


@dataclass(frozen=True, slots=True)
class TranslatedBlock:
    """Output lines of a block, and the counts since the block before it."""

    index: int
    lines: list[str]
    stats: OfflineStats


class LineRoutes:
    """Routes of lines: the one of the options, or of each line's language where the model does not read it.

    The language of a line then selects rules for its text only, such as those for the ends of sentences.
    """

    def __init__(self, router: Router, source: str | None, target: str | None) -> None:
        """Raises `UnsupportedPair`."""
        is_any = source is None and len(router.source_languages) > 1
        of_any = router.from_any_language(target) if is_any else None
        self._router = router
        self._route = of_any or router.find(source, target)
        self._detector = Detector(router.source_languages) if of_any else None

    def of(self, line: str) -> Route:
        """Return the route of a line."""
        if self._detector is None:
            return self._route
        target = self._route.target
        languages = (each.language for each in self._detector.rank(line))
        source = next((each for each in languages if match_language(each, [target]) is None), None)
        return self._route if source is None else self._router.find(source, target)


class BlockTranslator:
    """Translates several blocks at the same time: texts are processed between the steps of the engine."""

    def __init__(self, bundles: Sequence[Bundle], options: OfflineOptions) -> None:
        """Load a model, or two that translate through a pivot language.

        Raises `UnsupportedPair`, `BundleError` and `EngineFailed`.
        """
        self._options = options
        self._memory = options.memory()
        self._recorder = StatsRecorder()
        self._engines = [
            SteppedEngine.open(bundle, _MAX_ROWS, _MAX_ENCODER_TOKENS, self._recorder) for bundle in bundles
        ]
        pipelines = [
            Pipeline(
                CachedEngineClient(engine, options.cache_sentences, self._recorder),
                TranslationLimits(),
                inline_characters=math.inf,
            )
            for engine in self._engines
        ]
        self._routes = LineRoutes(Router(pipelines, DEFAULT_PIVOT), options.source, options.target)
        self._recorder.take()  # the first sentence was no part of the input
        self._loop = asyncio.SelectorEventLoop(_StopWhenIdle(lambda: self._loop.stop()))
        self._running: set[asyncio.Task[TranslatedBlock]] = set()
        self._finished: list[asyncio.Task[TranslatedBlock]] = []
        self._has_new_block = False

    @property
    def num_running(self) -> int:
        """Blocks that are not finished."""
        return len(self._running) + len(self._finished)

    def start(self, block: Block) -> None:
        """Begin a block."""
        task = self._loop.create_task(self._translate(block))
        self._running.add(task)
        task.add_done_callback(self._finish)
        self._has_new_block = True

    def advance(self) -> list[TranslatedBlock]:
        """Run one step of each engine and the text processing that is due; return finished blocks.

        Raises `InvalidRequest` and `EngineFailed`.
        """
        if self._has_new_block:
            self._run_callbacks()
        stepped = [engine.step() for engine in self._engines if engine.has_work]
        if any(stepped) or not stepped:
            self._run_callbacks()
        finished, self._finished = self._finished, []
        return [task.result() for task in finished]

    def close(self) -> None:
        """Cancel unfinished blocks."""
        for task in self._running:
            task.cancel()
        self._run_callbacks()
        self._loop.close()

    def _run_callbacks(self) -> None:
        """Run the event loop until every task waits for an engine."""
        self._has_new_block = False
        self._loop.run_forever()

    def _finish(self, task: "asyncio.Task[TranslatedBlock]") -> None:
        self._running.discard(task)
        if not task.cancelled():
            self._finished.append(task)

    async def _translate(self, block: Block) -> TranslatedBlock:
        stats = OfflineStats(lines=len(block.lines))
        translations: dict[int, Translation] = {}

        async def translate(route: Route, indices: list[int]) -> None:
            request = TranslationRequest(
                texts=tuple(block.lines[index] for index in indices),
                source=route.source,
                target=route.target,
                options=self._options.decoding,
                memory=self._memory,
            )
            result = await route.pipeline.translate(request)
            translations.update(zip(indices, result.translations, strict=True))
            stats.count(result)

        calls: dict[Route, list[int]] = {}
        for index, line in enumerate(block.lines):
            calls.setdefault(self._routes.of(line), []).append(index)
        await asyncio.gather(*(translate(*call) for call in calls.items()))
        stats.add(self._recorder.take())
        return TranslatedBlock(block.index, [self._written(translations[i]) for i in range(len(block.lines))], stats)

    def _written(self, translation: Translation) -> str:
        return json_line(translation) if self._options.as_json else translation.text


class _StopWhenIdle(selectors.DefaultSelector):
    """Selector of an event loop that stops instead of waiting. It polls only when no callback is ready."""

    def __init__(self, stop: Callable[[], None]) -> None:
        super().__init__()
        self._stop = stop

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """Return the events that have occurred."""
        if timeout == 0:
            return []
        events = super().select(0)
        if not events:
            self._stop()
        return events
