"""Markup as a flat list of items: the common form of every format that keeps its source byte for byte."""

import html
import re
from collections.abc import Iterator, Mapping
from enum import Enum, auto
from typing import NamedTuple

from server.documents.input import safe_xml

Attributes = Mapping[str, str]

_REFERENCE = re.compile(r"(&(?:#[0-9]{1,8}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]{0,31});)")
_WHITE_SPACE = re.compile(r"[ \t\r\n\f]+")


class Role(Enum):
    """Relation of an element to the text around it."""

    BLOCK = auto()  # a paragraph or a container of paragraphs: ends sentences
    VERBATIM = auto()  # a block that keeps its white space
    STRUCTURE = auto()  # contains blocks and has no text of its own
    BREAK = auto()  # ends sentences and contains nothing to translate
    SOFT = auto()  # formatting
    HARD = auto()  # a link and the like
    ATOM = auto()  # part of a sentence that is not translated
    ISLAND = auto()  # an atom that contains paragraphs, such as a footnote
    MARK = auto()  # lies inside a sentence and is no part of it
    SPACE = auto()  # is read as a space


class Kind(Enum):
    """Relation of an item to the text around it."""

    TEXT = auto()
    OPEN = auto()  # of a wrap
    CLOSE = auto()
    ATOM = auto()
    BREAK = auto()  # ends a sentence: the tag of a block, a line break, a tab
    MARK = auto()  # lies inside the text and is no part of it: a comment, a bookmark


class Cue(NamedTuple):
    """When a caption begins and ends, in seconds, and what tells it from others at the same time: a style, a region."""

    start: float
    end: float
    place: str = ""


class Item(NamedTuple):
    """One piece of markup: `raw` as written, `text` as a reader sees it. A tuple: a page has a hundred thousand.

    Paragraphs inside an atom or a break are in `inner`.
    """

    kind: Kind
    raw: str = ""
    text: str = ""
    is_soft: bool = True
    inner: tuple["Item", ...] = ()
    after: str = ""  # written behind `inner`
    name: str = ""  # of an HTML element with a meaning for the words around it
    cue: Cue | None = None  # of the text behind a break


def text_items(raw: str, *, collapses_space: bool = True) -> Iterator[Item]:
    """Yield a text of HTML or XML as items: one for each character that is written as a reference, and for the rest."""
    for index, piece in enumerate(_REFERENCE.split(raw) if "&" in raw else (raw,)):
        if piece:
            text = html.unescape(piece)
            yield Item(Kind.TEXT, piece, text if index % 2 or not collapses_space else _WHITE_SPACE.sub(" ", text))


def write_text(text: str) -> str:
    """Escape a translated text for XML and HTML."""
    return html.escape(safe_xml.fit_for_xml(text), quote=False)
