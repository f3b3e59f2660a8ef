"""Blocks of texts, repeated calls and progress of one document."""

import asyncio
from collections.abc import Callable, Sequence

import pytest

from server.documents.fragment import Atom, DocumentCounts, Fragment, Wrap
from server.documents.rewriting import Translate, translate_document
from server.documents.steps import DocumentSize
from server.interface.errors import DeadlineExceeded, QueueFull


class Windows:
    """A document with these windows of fragments; it keeps their translations."""

    def __init__(self, *windows: list[Fragment]) -> None:
        self.counts = DocumentCounts(num_translated=7)
        self._windows = list(windows)
        self.translations: list[list[Fragment]] = []

    async def measure(self) -> DocumentSize:
        """Return the number of fragments."""
        return DocumentSize(sum(map(len, self._windows)), 0)

    async def advance(self, translations: list[Fragment] | None) -> list[Fragment] | None:
        """Return the next window."""
        if translations is not None:
            self.translations.append(translations)
        return self._windows.pop(0) if self._windows else None


class Calls:
    """A translation into capitals that keeps its calls, and raises these errors first."""

    def __init__(self, *errors: Exception) -> None:
        self.texts: list[list[str]] = []
        self.slept: list[float] = []
        self.progress: list[tuple[int, int]] = []
        self.num_at_once = self.most_at_once = 0
        self._errors = list(errors)

    async def upper(self, texts: Sequence[str]) -> Sequence[str]:
        """Return the texts in capitals, with white space around them."""
        self.texts.append(list(texts))
        self.num_at_once += 1
        self.most_at_once = max(self.most_at_once, self.num_at_once)
        await asyncio.sleep(0)
        self.num_at_once -= 1
        if self._errors:
            raise self._errors.pop(0)
        return [f" {text.upper()} " for text in texts]

    async def sleep(self, seconds: float) -> None:
        """Keep the time that was waited."""
        self.slept.append(seconds)


def _run(calls: Calls, document: Windows, translate: Callable[[Calls], Translate] | None = None) -> list[Fragment]:
    async def scenario() -> None:
        functions = Translate(calls.upper) if translate is None else translate(calls)
        size = await document.measure()
        await translate_document(
            document, functions, size, lambda done, total: calls.progress.append((done, total)), calls.sleep
        )

    asyncio.run(scenario())
    return [fragment for window in document.translations for fragment in window]


def test_a_call_has_32_texts_and_4000_characters_at_most_and_four_run_at_once() -> None:
    calls = Calls()
    texts = [f"text {number}" for number in range(330)]
    written = _run(calls, Windows([(text,) for text in texts]))
    assert written == [(text.upper(),) for text in texts]
    assert [len(each) for each in calls.texts] == [32] * 10 + [10]
    assert calls.most_at_once == 4
    calls = Calls()
    _run(calls, Windows([("x" * 1500 + str(number),) for number in range(5)]))
    assert [len(each) for each in calls.texts] == [2, 2, 1]
    calls = Calls()
    _run(calls, Windows([("x" * 4000,), ("y" * 2000,), ("z" * 2000,), ("w",)]))
    assert [len(each) for each in calls.texts] == [1, 2, 1]


def test_no_call_has_more_characters_than_the_service_takes() -> None:
    def divide(text: str, limit: int) -> Sequence[str]:
        return [text[start : start + limit] for start in range(0, len(text), limit)]

    calls = Calls()
    written = _run(
        calls,
        Windows([("a" * 10 + " " + "b" * 9,), ("c" * 8,), ("d" * 9,)]),
        lambda calls: Translate(calls.upper, divide=divide, max_characters=10),
    )
    assert written == [("A" * 10 + " " + "B" * 9,), ("C" * 8,), ("D" * 9,)]
    assert calls.texts == [["a" * 10], ["b" * 9], ["c" * 8], ["d" * 9]]
    assert calls.progress[-1] == (3, 3)


def test_equal_texts_are_sent_once_and_texts_without_letters_not_at_all() -> None:
    calls = Calls()
    window: list[Fragment] = [("dog",), ("12",), (" dog",), ("dog",), ("cat ",), ("…",)]
    written = _run(calls, Windows(window, [("dog",)]))
    assert written == [("DOG",), ("12",), (" DOG",), ("DOG",), ("CAT ",), ("…",), ("DOG",)]
    assert calls.texts == [["dog", "dog", "cat"], ["dog"]]
    assert calls.progress == [(4, 7), (6, 7), (7, 7)]


def test_a_full_queue_is_waited_for_and_tried_again() -> None:
    calls = Calls(QueueFull("full", 3.0), QueueFull("full", 1.5), *[QueueFull("full", 2.0)] * 5)
    assert _run(calls, Windows([("dog",)])) == [("DOG",)]
    assert calls.slept == [3.0, 1.5, *[2.0] * 5]


def test_the_third_missed_deadline_of_a_block_ends_the_document() -> None:
    calls = Calls(DeadlineExceeded("late"), QueueFull("full", 1.0), DeadlineExceeded("late"))
    assert _run(calls, Windows([("dog",)])) == [("DOG",)]
    assert len(calls.texts) == 4
    with pytest.raises(DeadlineExceeded):
        _run(Calls(*[DeadlineExceeded("late")] * 3), Windows([("dog",)]))


def test_html_that_lost_an_element_is_translated_as_plain_text() -> None:
    fragments: list[Fragment] = [
        ("good ", Wrap(1, ("dog",))),
        ("plain",),
        ("see ", Atom(2), " there"),
        ("12 ", Wrap(3, ("3",))),
    ]

    async def html(texts: Sequence[str]) -> Sequence[str]:
        return ["lost" if "img" in text else text.replace("dog", "DOG") for text in texts]

    calls = Calls()
    written = _run(calls, Windows(fragments), lambda calls: Translate(calls.upper, html))
    assert written == [("good ", Wrap(1, ("DOG",))), ("PLAIN",), ("SEE ", Atom(2), " THERE"), fragments[3]]
    assert calls.texts == [["plain", "see", "there"]]
    assert calls.progress[-1] == (4, 4)
    assert [done for done, _ in calls.progress] == sorted(done for done, _ in calls.progress)


def test_html_that_is_too_long_is_translated_as_plain_text() -> None:
    sent: list[str] = []

    async def html(texts: Sequence[str]) -> Sequence[str]:
        sent.extend(texts)
        return texts

    short, long = ("a", Wrap(1, ("b",))), ("abcdefgh", Wrap(1, ("b",)))
    length = len('a<span id="1">b</span>')
    calls = Calls()
    _run(calls, Windows([short, long]), lambda calls: Translate(calls.upper, html, max_characters=length))
    assert sent == ['a<span id="1">b</span>']
    assert calls.texts == [["abcdefghb"]]
