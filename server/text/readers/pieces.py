"""HTML and XML taken apart into units; everything that is not translated stays as it was written, byte for byte."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import Enum, auto
from html import escape, unescape

from server.text.readers.units import Document, Unit, UnitBuilder
from server.text.readers.unknown_characters import UnknownCharacters

_BYTE_ORDER_MARK = "\N{ZERO WIDTH NO-BREAK SPACE}"


class Role(Enum):
    """What a piece of a document is for those who translate it."""

    TEXT = auto()
    REFERENCE = auto()  # text that is written as an entity or by a number
    OPENING = auto()  # of an inline element
    CLOSING = auto()
    MARK = auto()  # nothing to read: a comment, an image, a script
    COPIED = auto()  # inside a sentence, and not translated: code, names
    BORDER = auto()  # between units


@dataclass(frozen=True, slots=True)
class Piece:
    """A piece of a document as it was written; together the pieces are the document."""

    role: Role
    raw: str
    name: str = ""  # of an inline element


@dataclass(frozen=True, slots=True)
class MarkupOptions:
    """Elements by their names, beyond what HTML or the document's structure says."""

    splitting_tags: tuple[str, ...] = ()  # end a sentence
    non_splitting_tags: tuple[str, ...] = ()  # stand inside sentences
    ignore_tags: tuple[str, ...] = ()  # are not translated


NO_MARKUP_OPTIONS = MarkupOptions()


def without_mark(text: str) -> tuple[list[Piece], str]:
    """A document's byte order mark, if it has one, and its text, which that is no part of."""
    if not text.startswith(_BYTE_ORDER_MARK):
        return [], text
    return [Piece(Role.BORDER, _BYTE_ORDER_MARK)], text[1:]


@dataclass(slots=True)
class _Escape:
    """Writes text as a document must; characters that its author has written as entities stay such."""

    references: dict[str, str] = field(default_factory=dict)

    def __call__(self, text: str) -> str:
        written = escape(text, quote=False)
        for character, reference in self.references.items():
            if character not in "&<>":  # which are written by now
                written = written.replace(character, reference)
        return written


def to_document(pieces: Iterable[Piece], symbols: UnknownCharacters) -> Document:
    """What is translated of a document, and all the rest as it is."""
    document: Document = []
    builder, escaper = _new(symbols)
    text, raw = "", ""

    def end_text() -> None:
        nonlocal text, raw
        if raw:
            builder.text(text, raw)
        text, raw = "", ""

    for piece in pieces:
        if piece.role in (Role.TEXT, Role.REFERENCE):
            shown = unescape(piece.raw) if piece.role is Role.REFERENCE else piece.raw
            if piece.role is Role.REFERENCE and len(shown) == 1:
                escaper.references[shown] = piece.raw
            text, raw = text + shown, raw + piece.raw
            continue
        end_text()
        match piece.role:
            case Role.OPENING:
                builder.open(piece.name, piece.raw)
            case Role.CLOSING:
                builder.close(piece.name, piece.raw)
            case Role.MARK:
                builder.mark(piece.raw)
            case Role.COPIED:
                builder.copied(piece.raw)
            case _:
                _end_unit(document, builder)
                document.append(piece.raw)
                builder, escaper = _new(symbols)
    end_text()
    _end_unit(document, builder)
    return document


def _new(symbols: UnknownCharacters) -> tuple[UnitBuilder, _Escape]:
    escaper = _Escape()
    return UnitBuilder(symbols, escaper, collapses_space=True), escaper


def _end_unit(document: Document, builder: UnitBuilder) -> None:
    if builder.is_empty:
        return
    unit: Unit = builder.build()
    document.append(unit if unit.has_words else unit.raw)
