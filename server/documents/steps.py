"""Steps of one document: fragments out, translations in, until the document is written. Without threads or processes.

Both `rewriting` (in this process) and `isolation` (in another) drive a format through these functions.
"""

from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import regex

from server.documents.formats.registry import DocumentFormat
from server.documents.fragment import Fragment, Rewrite, num_characters, texts_in
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


def advance(steps: Rewrite, translations: list[Fragment] | None, limits: FileLimits) -> list[Fragment] | None:
    """Return the next fragments, or None at the end. The first call takes None.

    Raises `InvalidDocument`, `DocumentTooLarge` and `DocumentTooComplex`.
    """
    step = _advance(steps, translations, limits)
    return None if step is None else step[0]


def _advance(
    steps: Rewrite, translations: list[Fragment] | None, limits: FileLimits
) -> tuple[list[Fragment], int] | None:
    """Return the next fragments and their characters, or None at the end."""
    try:
        fragments = next(steps) if translations is None else steps.send(translations)
    except StopIteration:
        return None
    except RecursionError:
        raise InvalidDocument("the document is nested too deeply") from None
    lengths = list(map(num_characters, fragments))
    if (longest := max(lengths, default=0)) > limits.max_paragraph_characters:
        begin = next(filter(str.strip, texts_in(fragments[lengths.index(longest)]))).strip()[:40]
        raise DocumentTooComplex(
            f"a paragraph may have {limits.max_paragraph_characters} characters. The one that begins with "
            f"{begin!r} has {longest}"
        )
    return fragments, sum(lengths)


def measure(source: Path, kind: DocumentFormat, limits: FileLimits) -> DocumentSize:
    """Read the whole document; raises `InvalidDocument`, `DocumentTooLarge` and `DocumentTooComplex`."""
    num_units = total = num_marks = 0
    with source.open("rb") as read, closing(kind.rewrite(read, None, limits)) as steps:
        step = _advance(steps, None, limits)
        while step is not None:
            fragments, length = step
            num_units += len(fragments)
            total += length
            num_marks += sum(len(_MARK.findall(text)) for each in fragments for text in texts_in(each))
            step = _advance(steps, fragments, limits)
    if num_marks > (most := _FREE_MARKS + total // _CHARACTERS_PER_MARK):
        raise DocumentTooComplex(
            f"the texts of a document with {total} characters may have {most} symbols, ends of sentences and characters"
            f" of markup. They have {num_marks}"
        )
    return DocumentSize(num_units, total)
