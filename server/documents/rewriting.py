"""One document translated from file to file: the format says what, the caller says into what, this says when."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from server.documents.formats.registry import DocumentFormat
from server.documents.fragment import Fragment, Rewrite, from_html, plain_texts, texts_in, to_html, with_plain_texts
from server.documents.input.limits import FileLimits
from server.interface.errors import DeadlineExceeded, InvalidDocument, QueueFull

TranslateTexts = Callable[[Sequence[str]], Awaitable[Sequence[str]]]
# Divides a text into pieces of so many characters at most, white space at their ends not counted; joined they are it.
Divide = Callable[[str, int], Sequence[str]]
# Units done and units in all. A unit is a paragraph, or what a line break or a tab leaves of it.
OnProgress = Callable[[int, int], None]
Result = TypeVar("Result")

# What one call of a translation gets. Small, so that people who wait for a sentence are not behind a book, and a few at
# once, so that the engine is not idle between them.
_BLOCK_TEXTS = 32
_BLOCK_CHARACTERS = 4000
_BLOCKS_AT_ONCE = 4
_MAX_LATE = 3  # times that a block may miss its deadline, as all do while the server has too much to do


@dataclass(frozen=True, slots=True)
class Translate:
    """How texts are translated: each function gives as many as it gets, in the same order.

    `html` gets HTML with inline elements that have ids, and must give every one of them back: at the words that they
    stood at in the source. Without it, or where an element is lost, a paragraph with several styles is translated as
    plain text and gets the style that most of it had; links, images and code divide it.

    No call has more than `max_characters`, in all its texts, if there is a `divide`; None is no limit.
    """

    text: TranslateTexts
    html: TranslateTexts | None = None
    divide: Divide | None = None
    max_characters: int | None = None


@dataclass(frozen=True, slots=True)
class DocumentSize:
    """What there is to translate in a document."""

    num_units: int
    num_characters: int


async def measure(source: Path, kind: DocumentFormat, limits: FileLimits) -> DocumentSize:
    """Read the whole document; raises `InvalidDocument` and `DocumentTooLarge` for whatever is wrong with it."""
    return await in_thread(_measure, source, kind, limits)


async def translate_document(
    source: Path,
    sink: Path,
    kind: DocumentFormat,
    translate: Translate,
    limits: FileLimits,
    size: DocumentSize,
    on_progress: OnProgress,
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
) -> None:
    """Write `source`, translated, to `sink`. Waits and tries again where the queue is full.

    Raises what `measure` does, and what `translate` does. The event loop's thread parses nothing.
    """
    work = _Work(translate, size, on_progress, sleep)
    with source.open("rb") as read, sink.open("wb") as written, closing(kind.rewrite(read, written, limits)) as steps:
        fragments = await in_thread(_advance, steps, None)
        while fragments is not None:
            fragments = await in_thread(_advance, steps, await work.translate(fragments))


def _measure(source: Path, kind: DocumentFormat, limits: FileLimits) -> DocumentSize:
    num_units = num_characters = 0
    with source.open("rb") as read, closing(kind.rewrite(read, None, limits)) as steps:
        fragments = _advance(steps, None)
        while fragments is not None:
            num_units += len(fragments)
            num_characters += sum(len(text) for fragment in fragments for text in texts_in(fragment))
            fragments = _advance(steps, fragments)
    return DocumentSize(num_units, num_characters)


def _advance(steps: Rewrite, translations: list[Fragment] | None) -> list[Fragment] | None:
    """The next fragments, or None at the end."""
    try:
        return next(steps) if translations is None else steps.send(translations)
    except StopIteration:
        return None
    except RecursionError:
        raise InvalidDocument("the document is nested too deeply") from None


async def in_thread(work: Callable[..., Result], *arguments: object) -> Result:
    """Like `asyncio.to_thread`, but when cancelled, waits for the thread: it holds files that are closed next."""
    task = asyncio.ensure_future(asyncio.to_thread(work, *arguments))
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait([task])
        raise


@dataclass(slots=True)
class _Part:
    """One text on its way. `num_units` is 1 for the last part of a fragment, so that fragments count once."""

    text: str
    num_units: int
    translation: str = ""


class _Work:
    """The texts of one document on their way through a translation."""

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
        """Translations of these fragments."""
        results: list[Fragment] = list(fragments)
        plain = list(range(len(fragments)))
        if self._translate.html is not None:
            rich = [index for index in plain if self._is_rich(fragments[index])]
            parts = [_Part(to_html(fragments[index]), 1) for index in rich]
            await self._run(parts, self._translate.html)
            plain = sorted(set(plain) - set(rich))
            for index, part in zip(rich, parts, strict=True):
                translated = from_html(part.translation, fragments[index])
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
        # Of each text of each fragment the parts.
        parts_of = {
            index: [[_Part(piece, 0) for piece in await self._divided(text)] for text in plain_texts(fragments[index])]
            for index in indexes
        }
        for texts in parts_of.values():
            texts[-1][-1].num_units = 1
        everything = [part for texts in parts_of.values() for parts in texts for part in parts]
        await self._run(everything, self._translate.text)
        for index, texts in parts_of.items():
            translations = ["".join(part.translation for part in parts) for parts in texts]
            results[index] = with_plain_texts(fragments[index], translations)

    def _is_rich(self, fragment: Fragment) -> bool:
        """Whether it has mark-up, and few enough characters to be translated with that: HTML is not divided."""
        limit = self._translate.max_characters
        return any(not isinstance(node, str) for node in fragment) and (
            limit is None or len(to_html(fragment)) <= limit
        )

    async def _divided(self, text: str) -> Sequence[str]:
        if self._translate.divide is None or len(text) <= self._block_characters:
            return [text]
        return await in_thread(self._translate.divide, text, self._block_characters)

    async def _run(self, parts: Sequence[_Part], translate: TranslateTexts) -> None:
        """Translate all parts, in blocks, a few at once; what has no letter is its own translation."""
        wanted = []
        for part in parts:
            part.translation = part.text
            if any(map(str.isalpha, part.text)):
                wanted.append(part)
        try:
            async with asyncio.TaskGroup() as group:
                for block in _blocks(wanted, self._block_characters):
                    group.create_task(self._run_block(block, translate))
        except ExceptionGroup as failed:  # the first is the reason; the others were under way
            raise failed.exceptions[0] from None
        # Those without a letter, which were in no block.
        self._advance(sum(part.num_units for part in parts) - sum(part.num_units for part in wanted))

    async def _run_block(self, block: Sequence[_Part], translate: TranslateTexts) -> None:
        async with self._slots:
            texts = [part.text.strip() for part in block]
            translations = await self._patiently(translate, texts)
        for part, text, translation in zip(block, texts, translations, strict=True):
            start = part.text.index(text)
            part.translation = part.text[:start] + translation.strip() + part.text[start + len(text) :]
        self._advance(sum(part.num_units for part in block))

    async def _patiently(self, translate: TranslateTexts, texts: Sequence[str]) -> Sequence[str]:
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


def _blocks(parts: Sequence[_Part], max_characters: int) -> list[list[_Part]]:
    blocks: list[list[_Part]] = []
    num_characters = 0
    for part in parts:
        if not blocks or len(blocks[-1]) == _BLOCK_TEXTS or num_characters + len(part.text) > max_characters:
            blocks.append([])
            num_characters = 0
        blocks[-1].append(part)
        num_characters += len(part.text)
    return blocks
