"""Steps of one document: fragments out, translations in, until the document is written. Without threads or processes.

Both `rewriting` (in this process) and `isolation` (in another) drive a format through these functions.
"""

from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path

import regex

from server.documents.formats.registry import DocumentFormat
from server.documents.fragment import AllFragments, Fragment, Rewrite, num_characters, texts_in
from server.documents.input.density import PARAGRAPHS
from server.documents.input.limits import FileLimits
from server.interface.errors import DocumentTooComplex, InvalidDocument

# Characters of markup, placeholders and symbols, and ends of sentences: each takes the text pipeline 15 to 100 µs, a
# letter far less. Texts of 230 real documents have at most one in 10 characters, those full of HTML; hostile ones one
# in 2 to 7.
_MARK = regex.compile(r"[\p{S}\p{Cc}\p{Co}\p{Cn}\p{Cs}\"#%&*/@\\\[\]_{}--[\t\n\r]]|[.!?…](?=\s)|[。！？]", regex.V1)
_FREE_MARKS, _CHARACTERS_PER_MARK = 10_000, 10


@dataclass(frozen=True, slots=True)
class DocumentSize:
    """Amount of text to translate in a document."""

    num_units: int
    num_characters: int


class DocumentSteps:
    """Rewriting of one document from file to file. A small document is read once, any other first to measure it.

    No window has a fragment twice: equal paragraphs get one translation.
    """

    def __init__(self, source: Path, sink: Path, kind: DocumentFormat, limits: FileLimits) -> None:
        self._source = source
        self._sink = sink
        self._kind = kind
        self._limits = limits
        self._files = ExitStack()
        self._steps: Rewrite | None = None
        self._is_read = False  # and `_window` has all of its fragments
        self._window: list[Fragment] = []

    def close(self) -> None:
        """Close the files."""
        self._files.close()

    def measure(self) -> DocumentSize:
        """Read the whole document and return its size. Called at most once, and first.

        Raises `InvalidDocument`, `DocumentTooLarge` and `DocumentTooComplex`.
        """
        amount = _Amount(self._limits, self._source.stat().st_size)
        self._begin(is_written=True)
        window = self._next(None)
        self._is_read = window is None or isinstance(window, AllFragments)
        if self._is_read:
            self._window = window or []
            amount.add(self._window)
        else:
            self._begin(is_written=False)
            window = self._next(None)
            while window is not None:
                amount.add(window)
                window = self._next(window)
            self._begin(is_written=True)
        return amount.checked()

    def advance(self, translations: list[Fragment] | None) -> list[Fragment] | None:
        """Take translations of the last fragments, None at first, and return the next fragments, or None at the end.

        Raises as `measure` does.
        """
        if self._is_read and translations is None:
            return _distinct(self._window)
        given: list[Fragment] | None = None
        if translations is not None:
            translation_of = dict(zip(_distinct(self._window), translations, strict=True))
            given = [translation_of[fragment] for fragment in self._window]
        window = self._next(given)
        self._window = window or []
        return None if window is None else _distinct(window)

    def _begin(self, *, is_written: bool) -> Rewrite:
        self._files.close()
        read = self._files.enter_context(self._source.open("rb"))
        written = self._files.enter_context(self._sink.open("wb")) if is_written else None
        self._steps = self._files.enter_context(closing(self._kind.rewrite(read, written, self._limits)))
        return self._steps

    def _next(self, translations: list[Fragment] | None) -> list[Fragment] | None:
        steps = self._steps or self._begin(is_written=True)
        try:
            return next(steps) if translations is None else steps.send(translations)
        except StopIteration:
            return None
        except RecursionError:
            raise InvalidDocument("the document is nested too deeply") from None


def _distinct(fragments: list[Fragment]) -> list[Fragment]:
    return list(dict.fromkeys(fragments))


class _Amount:
    """Amount of text of the windows of a document, within its limits."""

    def __init__(self, limits: FileLimits, num_bytes: int) -> None:
        self._limits = limits
        self._num_bytes = num_bytes
        self._num_units = self._num_characters = self._num_marks = 0

    def add(self, window: list[Fragment]) -> None:
        """Add a window; raises `DocumentTooComplex` for a paragraph that is too long."""
        fragments = _distinct(window)
        lengths = list(map(num_characters, fragments))
        if (longest := max(lengths, default=0)) > self._limits.max_paragraph_characters:
            begin = next(filter(str.strip, texts_in(fragments[lengths.index(longest)]))).strip()[:40]
            raise DocumentTooComplex(
                f"a paragraph may have {self._limits.max_paragraph_characters} characters. The one that begins with "
                f"{begin!r} has {longest}"
            )
        self._num_units += len(fragments)
        PARAGRAPHS.check(self._num_units, self._num_bytes, "different paragraphs")
        self._num_characters += sum(lengths)
        self._num_marks += sum(len(_MARK.findall(text)) for each in fragments for text in texts_in(each))

    def checked(self) -> DocumentSize:
        """Return the size; raises `DocumentTooComplex`."""
        most = _FREE_MARKS + self._num_characters // _CHARACTERS_PER_MARK
        if self._num_marks > most:
            raise DocumentTooComplex(
                f"the texts of a document with {self._num_characters} characters may have {most} symbols, ends of "
                f"sentences and characters of markup. They have {self._num_marks}"
            )
        return DocumentSize(self._num_units, self._num_characters)
