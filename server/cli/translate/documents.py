"""Translation of a document from file to file."""

import asyncio
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

from bundle.loading import Bundle
from server.cli.offline_options import OfflineOptions, check_document_options
from server.cli.translate.stats import OfflineStats, StatsRecorder
from server.documents.formats.registry import DocumentFormat
from server.documents.input.limits import MEGABYTE, FileLimits
from server.documents.rewriting import InProcessRewrite, Translate, translate_document
from server.documents.text_translation import document_translation
from server.operations.cpu_count import usable_cpus
from server.operations.defaults import DEFAULT_PIVOT
from server.text.language_detection import Detector
from server.translation.limits import TranslationLimits
from server.translation.pipeline import Pipeline
from server.translation.router import Router
from server.translation.service import AUTO, TranslationService
from server.translation.types import TranslationRequest
from server.workers.cache import CachedEngineClient
from server.workers.pool import EnginePool, PoolOptions

_UNBOUNDED_SENTENCES = 1 << 30  # windows limit the queue

# Local files may be larger than files received over HTTP.
_DOCUMENT_LIMITS = FileLimits(
    max_uncompressed_bytes=4000 * MEGABYTE, max_part_bytes=500 * MEGABYTE, max_tags=20_000_000
)


def translate_document_file(
    bundles: Sequence[Bundle],
    source: Path,
    sink: Path,
    kind: DocumentFormat,
    options: OfflineOptions,
    on_progress: Callable[[int], None] = lambda _: None,
) -> OfflineStats:
    """Translate a document into `sink`, which is written only if the whole translation succeeds.

    `bundles` are one, or two that translate through a pivot language. `on_progress` receives the number of paragraphs
    translated since its last call; `lines` of the result counts them, and `texts` those that the document has.
    Raises `InvalidDocument`, `DocumentTooLarge`, `InvalidRequest` and errors of the engine.
    """
    check_document_options(options)
    stats, recorder = OfflineStats(), StatsRecorder()

    def advance(num_done: int, _num_units: int) -> None:
        on_progress(num_done - stats.lines)
        stats.lines = num_done

    async def run(translate: Translate, unfinished: Path) -> None:
        with InProcessRewrite(source, unfinished, kind, _DOCUMENT_LIMITS) as steps:
            size = await steps.measure()
            await translate_document(steps, translate, size, advance)
            counts = steps.counts
            stats.texts, stats.translated_texts = size.num_texts, counts.num_translated
            stats.captions_joined, stats.caption_cuts = counts.captions_joined, counts.caption_cuts
            stats.captions_too_fast = counts.captions_too_fast

    pool_options = PoolOptions(
        replicas=-(-(options.threads or usable_cpus()) // len(bundles)),
        threads_per_replica=1,
        max_waiting=_UNBOUNDED_SENTENCES,
        observe=recorder,
    )
    with ExitStack() as stack:
        engines = []
        for bundle in bundles:
            pool = EnginePool.open(bundle, pool_options)
            engines.append(CachedEngineClient(pool, options.cache_sentences, recorder))
            stack.callback(engines[-1].close)
        started = time.perf_counter()
        sink = sink.resolve()  # the file of a link is replaced, not the link
        folder = stack.enter_context(tempfile.TemporaryDirectory(dir=sink.parent))
        router = Router(
            [Pipeline(engine, TranslationLimits()) for engine in engines],
            DEFAULT_PIVOT,
        )
        # A model that does not read the language of its source needs none.
        is_any = (
            options.source is None and len(router.source_languages) > 1 and router.from_any_language(options.target)
        )
        service = TranslationService(router, Detector(router.source_languages if is_any else ()), TranslationLimits())
        request = TranslationRequest((), "", "", options.decoding, memory=options.memory())
        spoken = AUTO if is_any else options.source
        translate = document_translation(service, request, spoken, options.target, stats.count)
        language = service.check(request, spoken, options.target)
        kind = replace(kind, options=replace(kind.options, language=language))
        unfinished = Path(folder) / sink.name
        asyncio.run(run(translate, unfinished))
        unfinished.replace(sink)
        stats.seconds = time.perf_counter() - started
    stats.add(recorder.take())
    return stats
