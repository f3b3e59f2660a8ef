"""Pieces of HTML and XML, and their units. Everything that is not translated stays as it was written, byte for byte."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum, auto
from html import escape, unescape

from server.interface.interruption import checkpoint
from server.text.readers.unit_builder import UnitBuilder
from server.text.readers.units import Document, Unit
from server.text.unknown_characters import UnknownCharacters

_BYTE_ORDER_MARK = "\N{ZERO WIDTH NO-BREAK SPACE}"


class Role(Enum):
    """The role of a piece of a document in its translation."""

    TEXT = auto()
    REFERENCE = auto()  # text written as an entity or a character number
    OPENING = auto()  # of an inline element
    CLOSING = auto()
    MARK = auto()  # without words: a comment, an image, a script
    SPACE = auto()  # a line break inside a sentence
    PROTECTED = auto()  # part of a sentence, and not translated: code, names
    BORDER = auto()  # between units


@dataclass(frozen=True, slots=True)
class Piece:
    """A piece of a document as it was written; joined, the pieces are the document."""

    role: Role
    raw: str
    name: str = ""  # of an inline element


@dataclass(frozen=True, slots=True)
class MarkupOptions:
    """Names of elements to treat otherwise than HTML or the structure of the document requires."""

    splitting_tags: frozenset[str] = frozenset()  # these end a sentence
    non_splitting_tags: frozenset[str] = frozenset()  # these stand inside sentences
    ignore_tags: frozenset[str] = frozenset()  # these are not translated


NO_MARKUP_OPTIONS = MarkupOptions()


def split_byte_order_mark(text: str) -> tuple[list[Piece], str]:
    """Return the byte order mark of a document as a piece, if it has one, and the text behind it."""
    if not text.startswith(_BYTE_ORDER_MARK):
        return [], text
    return [Piece(Role.BORDER, _BYTE_ORDER_MARK)], text[1:]


@dataclass(slots=True)
class _Escape:
    """Escapes text for a document; characters that its author wrote as entities stay entities."""

    references: dict[str, str] = field(default_factory=dict)

    def __call__(self, text: str) -> str:
        written = escape(text, quote=False)
        for character, reference in self.references.items():
            if character not in "&<>":  # these are escaped already
                written = written.replace(character, reference)
        return written


def to_document(pieces: Iterable[Piece], unknown: UnknownCharacters) -> Document:
    """Return the document of these pieces: units to translate, and strings for all the rest."""
    document: Document = []
    builder, escaper = _new(unknown)
    text, raw = "", ""

    def end_text() -> None:
        nonlocal text, raw
        if raw:
            builder.text(text, raw)
        text, raw = "", ""

    for piece in _with_lines_joined(list(pieces)):
        checkpoint()
        if piece.role in (Role.TEXT, Role.REFERENCE):
            shown = unescape(piece.raw) if piece.role is Role.REFERENCE else piece.raw
            if piece.role is Role.REFERENCE and len(shown) == 1:
                if shown.isspace():
                    end_text()
                    builder.space(piece.raw)
                    continue
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
            case Role.SPACE:
                builder.space(piece.raw)
            case Role.PROTECTED:
                builder.protect(piece.raw)
            case _:
                _end_unit(document, builder)
                document.append(piece.raw)
                builder, escaper = _new(unknown)
    end_text()
    _end_unit(document, builder)
    return document


def _with_lines_joined(pieces: Sequence[Piece]) -> Iterator[Piece]:
    """Yield pieces; a line break inside a sentence, before a small letter, is a blank of the sentence."""
    before = ""  # the last character in front
    for index, piece in enumerate(pieces):
        if piece.role is Role.TEXT and (words := piece.raw.strip()):
            before = words[-1]
        elif piece.role is Role.BORDER:
            if piece.name == "br" and (before.isalnum() or before == ",") and _next_letter(pieces, index).islower():
                yield replace(piece, role=Role.SPACE)
                continue
            before = ""
        yield piece


def _next_letter(pieces: Sequence[Piece], index: int) -> str:
    """Return the first character behind a piece, up to the next border."""
    for place in range(index + 1, len(pieces)):
        if pieces[place].role is Role.BORDER:
            return ""
        if pieces[place].role is Role.TEXT and (words := pieces[place].raw.lstrip()):
            return words[0]
    return ""


def _new(unknown: UnknownCharacters) -> tuple[UnitBuilder, _Escape]:
    escaper = _Escape()
    return UnitBuilder(unknown, escaper, collapses_space=True), escaper


def _end_unit(document: Document, builder: UnitBuilder) -> None:
    if builder.is_empty:
        return
    unit: Unit = builder.build()
    document.append(unit if unit.has_words else unit.raw)
