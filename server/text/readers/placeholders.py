"""Parts of a text that must survive its translation: items, tags, and characters that the model would lose."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum, auto

import regex

from server.interface.interruption import checkpoint
from server.text.items.kinds import PLACED, ItemKind
from server.text.items.matching import find_items
from server.text.items.spoken_times import has_spoken_time
from server.text.readers.unknown_characters import UnknownCharacters


class Kind(Enum):
    """How a sentence depends on what was found."""

    ITEM = auto()  # the model reads it, or something that stands for it
    MARK = auto()  # the sentence is complete without it
    OPENING = auto()  # a tag whose closing follows
    CLOSING = auto()


@dataclass(frozen=True, slots=True)
class Found:
    """A part `text[start:end]`. Tags have a `name`, items a kind of their own."""

    start: int
    end: int
    kind: Kind
    name: str = ""
    item: ItemKind | None = None


# :) ;-P :'( =D
EMOTICON = regex.compile(r"(?<!\S)(?:[:;]['’]?-?[()DPpOo/|*]|=[()D])(?![^\s.,!?])")
# Tags, character references and escaped line breaks in plain text, and emoticons.
_MARK = regex.compile(
    rf"{EMOTICON.pattern}"
    r"|</?(?:(?P<name>[A-Za-z][\w:.-]*+)(?:\s[^<>\n]*+)?|(?P<name>\d++)\s?)/?>|&(?:#\d++|#x[\da-fA-F]++|[A-Za-z]\w++);|\\[nrt](?![a-z]{2})"
)
# A tag without attributes between words, which names an element, a key or a value. Others break lines.
_TAG_AS_WORD = regex.compile(r"(?<=[\w,:][ \u00a0][(\"']?)</?(?!(?:br|hr|wbr)>)[A-Za-z][\w:.-]*+>(?=[\s.,;:!?)\"'-]|$)")
# \X alone goes back from each letter of a flag to the first of a row of flags.
_GRAPHEME_OR_WORD = regex.compile(r"[\w\p{M}]+|\p{Regional_Indicator}{1,2}+[\p{M}\u200d]*+|\X")

# The longest item: a longer match is rather a mistake in the text than a variable.
_MAX_CHARACTERS = 2000


def find_placeholders(text: str, unknown: UnknownCharacters) -> list[Found]:
    """Return what must survive of a text, in its order and without overlaps."""
    if unknown.simple_text.match(text) and not has_spoken_time(text):
        return []
    found = _merged(_marks(text), _items(text, unknown))
    return found if unknown.all_known(text) else _merged(found, _lost(text, unknown))


def _items(text: str, unknown: UnknownCharacters) -> Iterator[Found]:
    for match in find_items(text):
        checkpoint()
        start, end, kind = match.start, match.end, match.kind
        if end - start > _MAX_CHARACTERS:
            continue
        if not unknown.all_known(text[start:end]) and any(map(unknown.is_lost, text[start:end])):
            # The model cannot read it, so nothing of it may be part of the model input.
            if kind in PLACED:
                yield Found(start, end, Kind.MARK)
                continue
            kind = ItemKind.WORD
        yield Found(start, end, Kind.ITEM, item=kind)


def _marks(text: str) -> list[Found]:
    """Return marks, and tags in pairs; tags that are not properly nested and closed are marks, or words."""
    found: list[Found] = []
    open_: list[int] = []  # indices in `found`
    num_open = Counter[str]()
    for match in _MARK.finditer(text):
        checkpoint()
        name, written = match["name"] or "", match.group()
        kind = Kind.MARK
        if name and written.startswith("</") and num_open[name]:
            index = -1
            while index < 0 or found[index].name != name:
                index = open_.pop()
                num_open[found[index].name] -= 1
            found[index] = replace(found[index], kind=Kind.OPENING)
            kind = Kind.CLOSING
        elif name and not written.startswith("</") and not written.endswith("/>"):
            open_.append(len(found))
            num_open[name] += 1
        is_entity = written.startswith("&")
        found.append(
            Found(*match.span(), Kind.ITEM, item=ItemKind.ENTITY) if is_entity else Found(*match.span(), kind, name)
        )
    return [
        replace(each, kind=Kind.ITEM, item=ItemKind.PLACEHOLDER)
        if each.kind is Kind.MARK and each.name and _TAG_AS_WORD.match(text, each.start) is not None
        else each
        for each in found
    ]


def _lost(text: str, unknown: UnknownCharacters) -> Iterator[Found]:
    """Yield words and symbols with characters that the model would lose."""
    for match in _GRAPHEME_OR_WORD.finditer(text):
        checkpoint()
        content = match.group()
        if any(map(unknown.is_lost, content)):
            if any(map(str.isalnum, content)):
                yield Found(*match.span(), Kind.ITEM, item=ItemKind.WORD)
            elif unknown.are_in_vocabulary(content):
                yield Found(*match.span(), Kind.ITEM, item=ItemKind.SYMBOL)
            else:
                yield Found(*match.span(), Kind.MARK)


def _merged(found: Sequence[Found], others: Iterable[Found]) -> list[Found]:
    """Return what was found, with those of the others that do not overlap it; both are in their order."""
    merged: list[Found] = []
    index = 0
    for other in others:
        checkpoint()
        while index < len(found) and found[index].end <= other.start:
            merged.append(found[index])
            index += 1
        if index == len(found) or other.end <= found[index].start:
            merged.append(other)
    return [*merged, *found[index:]]
