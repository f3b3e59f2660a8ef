"""Translation of one document from file to file: fragments of a format become blocks of texts for the models."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol, Self, TypeVar

from server.documents.formats.registry import DocumentFormat
from server.documents.fragment import DocumentCounts, Fragment, from_html, plain_texts, to_html, with_plain_texts
from server.documents.input.limits import FileLimits
from server.documents.report import DocumentReport
from server.documents.steps import DocumentSize, DocumentSteps
from server.interface.errors import DeadlineExceeded, QueueFull

TranslateTexts = Callable[[Sequence[str]], Awaitable[Sequence[str]]]
# Divides a text into parts of at most so many characters, white space at their ends not counted; joined they are it.
Divide = Callable[[str, int], Sequence[str]]
# Receives the units done and the units in all. A unit is a paragraph, or a part of one between line breaks or tabs.
OnProgress = Callable[[int, int], None]
Result = TypeVar("Result")

# Size of one call of a translation: small, so that a sentence does not wait for a book; several calls run at once, so
# that the engine is never idle between them.
_BLOCK_TEXTS = 32
_BLOCK_CHARACTERS = 4000
_BLOCKS_AT_ONCE = 4
_MAX_LATE = 3  # missed deadlines of a block before the document fails; an overloaded server misses some


@dataclass(frozen=True, slots=True)
class Translate:
    """Translation functions for texts: each returns as many texts as it receives, in order.

    `html` receives HTML with inline elements that have ids, and must return every element, at the words that it had in
    the source. Without `html`, or if an element is lost, a paragraph with several styles is translated as plain text
    and gets the style of its longest part; links, images and code divide it.

    With `divide`, no call has more than `max_characters` in all its texts; None means unlimited. `finish` is called
    after the last text; the document fails with its error. `report` summarises the translations.
    """

    text: TranslateTexts
    html: TranslateTexts | None = None
    divide: Divide | None = None
    max_characters: int | None = None
    finish: Callable[[], None] = lambda: None
    report: DocumentReport = field(default_factory=DocumentReport)


class RewriteSteps(Protocol):
    """A document that is read and written step by step, in this process or in another."""

    @property
    def counts(self) -> DocumentCounts:
        """Counts of the document so far."""
        ...

    async def measure(self) -> DocumentSize:
        """Read the whole document and return its size. Called once, first."""
        ...

    async def advance(self, translations: list[Fragment] | None) -> list[Fragment] | None:
        """Take translations of the last fragments, None at first, and return the next fragments, or None at the end."""
        ...


class InProcessRewrite:
    """Rewriting of one document in a thread of this process: for documents of the user who runs it."""

    def __init__(self, source: Path, sink: Path, kind: DocumentFormat, limits: FileLimits) -> None:
        self._steps = DocumentSteps(source, sink, kind, limits)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._steps.close()

    @property
    def counts(self) -> DocumentCounts:
        """Counts of the document so far."""
        return self._steps.counts

    async def measure(self) -> DocumentSize:
        """Read the whole document and return its size."""
        return await in_thread(self._steps.measure)

    async def advance(self, translations: list[Fragment] | None) -> list[Fragment] | None:
        """Take translations of the last fragments, and return the next fragments, or None at the end."""
        return await in_thread(self._steps.advance, translations)


async def translate_document(
    steps: RewriteSteps,
    translate: Translate,
    size: DocumentSize,
    on_progress: OnProgress,
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
) -> None:
    """Translate all fragments of a document. Waits and tries again while the queue is full.

    Raises the errors of `steps` and of `translate`.
    """
    work = _Work(translate, size, on_progress, sleep)
    fragments = await steps.advance(None)
    while fragments is not None:
        fragments = await steps.advance(await work.translate(fragments))
    translate.report.counts = steps.counts
    translate.finish()


async def in_thread(work: Callable[..., Result], *arguments: object) -> Result:
    """Run `work` in a thread. A cancelled call waits for the thread, which uses files that are closed next."""
    task = asyncio.ensure_future(asyncio.to_thread(work, *arguments))
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait([task])
        raise


class _Runner(Protocol):
    """Runs work on fragments."""

    def __call__(self, work: Callable[..., Result], *arguments: object) -> Awaitable[Result]:
        """Return the result of `work`."""
        ...


def _runner_for(fragments: Sequence[Fragment]) -> _Runner:
    """Return the runner for work on fragments: a paragraph with 66,000 tags would hold the event loop for a second."""
    return _inline if all(len(each) == 1 and _is_text(each[0]) for each in fragments) else in_thread


async def _inline(work: Callable[..., Result], *arguments: object) -> Result:
    return work(*arguments)


def _is_text(node: object) -> bool:
    return isinstance(node, str)


def _from_html(fragments: Sequence[Fragment], parts: "Mapping[int, _Part]") -> dict[int, Fragment | None]:
    return {index: from_html(part.translation, fragments[index]) for index, part in parts.items()}


@dataclass(slots=True)
class _Part:
    """One text to translate. `num_units` is 1 for the last part of a fragment, so that fragments count once."""

    text: str
    num_units: int
    translation: str = ""


class _Work:
    """Translation of the fragments of one document, with its progress."""

    def __init__(
        self,
        translate: Translate,
        size: DocumentSize,
        on_progress: OnProgress,
        sleep: Callable[[float], Awaitable[None]],
    ) -> None:
        self._translate = translate
        self._size = size
        self._on_progress = on_progress
        self._sleep = sleep
        self._num_done = 0
        self._slots = asyncio.Semaphore(_BLOCKS_AT_ONCE)
        limit = translate.max_characters
        self._block_characters = _BLOCK_CHARACTERS if limit is None else min(_BLOCK_CHARACTERS, limit)

    async def translate(self, fragments: Sequence[Fragment]) -> list[Fragment]:
        """Return the translations of these fragments."""
        results: list[Fragment] = list(fragments)
        plain = list(range(len(fragments)))
        if self._translate.html is not None:
            run = _runner_for(fragments)
            rich = await run(self._rich, fragments)
            parts = [_Part(html, 1) for html in rich.values()]
            await self._run(parts, self._translate.html)
            plain = sorted(set(plain) - set(rich))
            from_parts = await run(_from_html, fragments, dict(zip(rich, parts, strict=True)))
            for index, translated in from_parts.items():
                if translated is None:
                    plain.append(index)
                    self._num_done -= 1
                else:
                    results[index] = translated
        await self._translate_plain(fragments, plain, results)
        return results

    async def _translate_plain(
        self, fragments: Sequence[Fragment], indexes: Sequence[int], results: list[Fragment]
    ) -> None:
        run = _runner_for([fragments[index] for index in indexes])
        texts_of = await run(lambda: {index: plain_texts(fragments[index]) for index in indexes})
        # For each fragment and each of its texts, the parts.
        parts_of = {
            index: [[_Part(piece, 0) for piece in await self._divided(text)] for text in its_texts]
            for index, its_texts in texts_of.items()
        }
        for texts in parts_of.values():
            texts[-1][-1].num_units = 1
        everything = [part for texts in parts_of.values() for parts in texts for part in parts]
        await self._run(everything, self._translate.text)

        def assemble() -> None:
            for index, texts in parts_of.items():
                translations = ["".join(part.translation for part in parts) for parts in texts]
                results[index] = with_plain_texts(fragments[index], translations)

        await run(assemble)

    def _rich(self, fragments: Sequence[Fragment]) -> dict[int, str]:
        """Return the HTML of fragments with markup that are short enough for it: HTML is not divided."""
        limit = self._translate.max_characters
        marked = ((index, to_html(each)) for index, each in enumerate(fragments) if not all(map(_is_text, each)))
        return {index: html for index, html in marked if limit is None or len(html) <= limit}

    async def _divided(self, text: str) -> Sequence[str]:
        if self._translate.divide is None or len(text) <= self._block_characters:
            return [text]
        return await asyncio.to_thread(self._translate.divide, text, self._block_characters)

    async def _run(self, parts: Sequence[_Part], translate: TranslateTexts) -> None:
        """Translate all parts, several blocks at once, and parts with the same text together.

        A part without a letter is its own translation.
        """
        equal_parts: dict[str, list[_Part]] = {}
        num_units = 0
        for part in parts:
            part.translation = part.text
            if any(map(str.isalpha, part.text)):
                equal_parts.setdefault(part.text, []).append(part)
            else:
                num_units += part.num_units
        try:
            async with asyncio.TaskGroup() as group:
                for block in _blocks(list(equal_parts.values()), self._block_characters):
                    group.create_task(self._run_block(block, translate))
        except asyncio.CancelledError as cancelled:
            cancelled.__traceback__ = None  # a frame of the group has the error: a cycle with all parts
            raise
        except ExceptionGroup as failed:  # the first is the reason; the others were in progress
            raise failed.exceptions[0] from None
        self._advance(num_units)  # of parts without a letter, which were in no block

    async def _run_block(self, block: Sequence[Sequence[_Part]], translate: TranslateTexts) -> None:
        async with self._slots:
            await asyncio.sleep(0)  # blocks whose sentences are all cached would hold the event loop together
            texts = [parts[0].text.strip() for parts in block]
            translations = await self._with_retries(translate, texts)
        for parts, text, translation in zip(block, texts, translations, strict=True):
            source = parts[0].text
            start = source.index(text)
            written = source[:start] + translation.strip() + source[start + len(text) :]
            for part in parts:
                part.translation = written
        self._advance(sum(part.num_units for parts in block for part in parts))

    async def _with_retries(self, translate: TranslateTexts, texts: Sequence[str]) -> Sequence[str]:
        num_late = 0
        while True:
            try:
                return await translate(texts)
            except QueueFull as full:
                await self._sleep(full.retry_after_seconds)
            except DeadlineExceeded:
                num_late += 1
                if num_late == _MAX_LATE:
                    raise

    def _advance(self, num_units: int) -> None:
        if num_units:
            self._num_done += num_units
            self._on_progress(self._num_done, self._size.num_units)


def _blocks(equal_parts: Sequence[Sequence[_Part]], max_characters: int) -> list[list[Sequence[_Part]]]:
    blocks: list[list[Sequence[_Part]]] = []
    num_characters = 0
    for parts in equal_parts:
        length = len(parts[0].text)
        if not blocks or len(blocks[-1]) == _BLOCK_TEXTS or num_characters + length > max_characters:
            blocks.append([])
            num_characters = 0
        blocks[-1].append(parts)
        num_characters += length
    return blocks
