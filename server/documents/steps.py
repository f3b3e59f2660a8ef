"""Steps of one document: fragments out, translations in, until the document is written. Without threads or processes.

Both `rewriting` (in this process) and `isolation` (in another) drive a format through these functions.
"""

import operator
import re
from contextlib import ExitStack, closing
from dataclasses import astuple, dataclass
from pathlib import Path

import regex

from server.documents.formats.registry import DocumentFormat
from server.documents.fragment import (
    AllFragments,
    CountedRewrite,
    DocumentCounts,
    Fragment,
    has_words,
    joined,
    num_characters,
    num_texts,
    texts_in,
)
from server.documents.input.limits import PARAGRAPHS, FileLimits
from server.interface.errors import DocumentTooComplex, InvalidDocument
from server.text.readers.icu_messages import message_parts

_NODE = "\N{OBJECT REPLACEMENT CHARACTER}"
_NODES = re.compile(f"({_NODE})")

# Whether a part is translated, and the part; joined they are the paragraph.
FragmentParts = list[tuple[bool, Fragment]]


def fragment_parts(fragment: Fragment) -> FragmentParts:
    """Divide a paragraph into texts to translate and the syntax of messages between them; most are one text.

    An element may stand in a branch, and syntax that is divided by one is text.
    """
    texts = [node for node in fragment if isinstance(node, str)]
    if not any("{" in text for text in texts) or any(_NODE in text for text in texts):
        return [(True, fragment)]
    parts = message_parts("".join(node if isinstance(node, str) else _NODE for node in fragment))
    if len(parts) == 1:
        return [(True, fragment)]
    nodes = iter([node for node in fragment if not isinstance(node, str)])
    divided = [
        (is_text, joined(next(nodes) if piece == _NODE else piece for piece in _NODES.split(part)))
        for is_text, part in parts
    ]
    return [(is_text and has_words(part), part) for is_text, part in divided]


# Characters of markup, placeholders and symbols, and ends of sentences: each takes the text pipeline 15 to 100 µs, a
# letter far less. Texts of 230 real documents have at most one in 10 characters, those full of HTML; hostile ones one
# in 2 to 7.
_MARK = regex.compile(r"[\p{S}\p{Cc}\p{Co}\p{Cn}\p{Cs}\"#%&*/@\\\[\]_{}--[\t\n\r]]|[.!?…](?=\s)|[。！？]", regex.V1)
_FREE_MARKS, _CHARACTERS_PER_MARK = 10_000, 10


@dataclass(frozen=True, slots=True)
class DocumentSize:
    """Amount of text to translate in a document: units are its different texts, of `num_texts` in all."""

    num_units: int
    num_characters: int
    num_texts: int = 0


class DocumentSteps:
    """Rewriting of one document from file to file. A small document is read once, any other first to measure it.

    No window has a fragment twice: equal paragraphs get one translation. `counts` are those so far.
    """

    def __init__(self, source: Path, sink: Path, kind: DocumentFormat, limits: FileLimits) -> None:
        self._source = source
        self._sink = sink
        self._kind = kind
        self._limits = limits
        self._files = ExitStack()
        self._steps: CountedRewrite | None = None
        self._is_read = False  # and `_window` has all of its fragments
        self._window: list[Fragment] = []
        self._parts: list[FragmentParts] = []  # of its fragments
        self.counts = DocumentCounts()

    def close(self) -> None:
        """Close the files."""
        self._files.close()

    def measure(self) -> DocumentSize:
        """Read the whole document and return its size. Called at most once, and first.

        Raises `InvalidDocument`, `DocumentTooLarge` and `DocumentTooComplex`.
        """
        amount = _Amount(self._limits, self._source.stat().st_size)
        self._begin(is_written=True)
        texts = self._next_texts(None)
        self._is_read = texts is None or isinstance(self._window, AllFragments)
        if self._is_read:
            amount.add(self._window, texts or [])
        else:
            self._begin(is_written=False)
            texts = self._next_texts(None)
            while texts is not None:
                amount.add(self._window, texts)
                texts = self._next_texts(self._window)
            self._begin(is_written=True)
        return amount.checked()

    def advance(self, translations: list[Fragment] | None) -> list[Fragment] | None:
        """Take translations of the last fragments, None at first, and return the next fragments, or None at the end.

        Raises as `measure` does.
        """
        if self._is_read and translations is None:
            return self._texts()
        given: list[Fragment] | None = None
        if translations is not None:
            translation_of = dict(zip(self._texts(), translations, strict=True))
            given = [
                joined(node for is_text, part in parts for node in (translation_of[part] if is_text else part))
                for parts in self._parts
            ]
            changed = sum(num_texts(text) for text, new in zip(self._window, given, strict=True) if text != new)
            self._count(DocumentCounts(num_translated=changed))
        return self._next_texts(given)

    def _texts(self) -> list[Fragment]:
        """Return the different texts of the window."""
        return list(dict.fromkeys(part for parts in self._parts for is_text, part in parts if is_text))

    def _begin(self, *, is_written: bool) -> CountedRewrite:
        self._files.close()
        self.counts = DocumentCounts()
        read = self._files.enter_context(self._source.open("rb"))
        written = self._files.enter_context(self._sink.open("wb")) if is_written else None
        self._steps = self._files.enter_context(closing(self._kind.rewrite(read, written, self._limits)))
        return self._steps

    def _next_texts(self, translations: list[Fragment] | None) -> list[Fragment] | None:
        """Go on to the next window, and return its texts, or None at the end."""
        steps = self._steps or self._begin(is_written=True)
        try:
            self._window = next(steps) if translations is None else steps.send(translations)
        except StopIteration as end:
            self._count(end.value or DocumentCounts())
            self._window, self._parts = [], []
            return None
        except RecursionError:
            raise InvalidDocument("the document is nested too deeply") from None
        self._parts = list(map(fragment_parts, self._window))
        return self._texts()

    def _count(self, more: DocumentCounts) -> None:
        self.counts = DocumentCounts(*map(operator.add, astuple(self.counts), astuple(more)))


class _Amount:
    """Amount of text of the windows of a document, within its limits."""

    def __init__(self, limits: FileLimits, num_bytes: int) -> None:
        self._limits = limits
        self._num_bytes = num_bytes
        self._num_units = self._num_characters = self._num_marks = self._num_texts = 0

    def add(self, window: list[Fragment], fragments: list[Fragment]) -> None:
        """Add a window with its different texts; raises `DocumentTooComplex` for a paragraph that is too long."""
        self._num_texts += sum(map(num_texts, window))
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
        return DocumentSize(self._num_units, self._num_characters, self._num_texts)
