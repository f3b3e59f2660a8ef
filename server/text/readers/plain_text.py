"""Reader of plain text: lines become units without the markers at their beginning, and inline markers become tags.

Markers are those of Markdown and of everyday typing: bullets, numbers, headings, quotations, emphasis, code, links.
"""

from bisect import bisect_left
from collections.abc import Iterator, Sequence

import regex

from server.interface.interruption import checkpoint
from server.text.items.patterns import BRACKETS, FILE_ENDINGS, KEYS, NAME_WITH_SIGNS, REMARKS, SINGLE_QUOTES
from server.text.items.spoken_times import has_spoken_time
from server.text.items.written_dates import MONTH
from server.text.readers.placeholders import EMOTICON, Found, find_placeholders
from server.text.readers.unit_builder import UnitBuilder
from server.text.readers.units import Document, Unit
from server.text.readers.unknown_characters import UnknownCharacters

# A text without any of these has nothing to protect and nothing in all caps. Searched for one by one they take half the
# time of one pattern of all of them, and a character that must be there is faster to look for than a pattern.
_SPECIAL = regex.compile(
    r"[%{}<>$€£¥@#`*_~\[\]\\&|\d°=\"“”„‟«»–—…§©®™×÷±≤≥≠≈→←⇒↔∞√∑₹₽¼½¾⅓⅔⅛⅜⅝⅞‘‚‹›⁰¹²³⁴-⁹₀-₉]|\p{Lu}{2}|://|www\.|--"
)
_BRACKETS = regex.compile(f"{BRACKETS}|{REMARKS}", regex.MULTILINE)
_SINGLE_QUOTES = regex.compile(SINGLE_QUOTES)
_NAME = regex.compile(NAME_WITH_SIGNS)
_KEYS = regex.compile(KEYS)
_PATH = regex.compile(r"(?<![\w/])/[\w.@~+-]|/[\w.-]+/|/[\w-]+\.\w")
_KEY = regex.compile(r"(?<!\w):\w")
_DOT = regex.compile(r"\.\w")
_FILE = regex.compile(rf"(?<=[\w-])(?i:{FILE_ENDINGS})")
_BULLET = regex.compile(r"^[ \t]*+(?:[-+•‣▪◦–—:]|[a-zA-Z]\))[ \t]", regex.MULTILINE)

_LINE_START = regex.compile(
    rf"[ \t]*(?:(?:[-*+•‣▪◦–—:]|\d{{1,3}}[.)](?![ \t]+{MONTH})|\(\d{{1,3}}\)(?![ \t]+\d)|[a-zA-Z]\)|#{{1,6}}"
    r"|\[[ xX]\])[ \t]+|>++(?:[ \t]+|(?=\S)))*"
    r"(?:\|[ \t]*)?"
)
_SPACE = " \t"
_CELL_BORDER = regex.compile(r"\|[ \t]*")
_TAB = regex.compile(r"\t[ \t]*")
_FENCE = regex.compile(r"[ \t]*(?:```|~~~)")
_INLINE = regex.compile(
    r"(?P<code>(?<!`)(?P<ticks>`++)[^\n]{1,2000}?(?<!`)(?P=ticks)(?!`))"
    r"|(?P<image>!)?\[(?P<label>[^\[\]\n]+)\](?P<target>\((?:[^()\s]|\([^()\s]*\))*(?:\s\"[^\"\n]*\")?\)|\[[^\[\]\n]*\])"
    r"|(?<![\w*_~\\])(?P<mark>\*{1,3}|_{1,3}|~~)(?=[^\s*_~])(?P<marked>(?:(?!(?P=mark)).)+?)(?<=[^\s*_~\\])(?P=mark)(?![\w*~])"
)


def may_be_special(text: str, unknown: UnknownCharacters) -> bool:
    """Return whether a plain translation of a text might lose something; fast, and True if in doubt."""
    if unknown.simple_text.match(text) is not None:
        return has_spoken_time(text)
    return bool(
        _SPECIAL.search(text)
        or "mailto:" in text
        or ("/" in text and (_PATH.search(text) or _NAME.search(text)))
        or ("(" in text and _BRACKETS.search(text))
        or ("'" in text and _SINGLE_QUOTES.search(text))
        or ("+" in text and ("++" in text or _KEYS.search(text)))
        or ".NET" in text
        or " - " in text
        or "\t" in text
        or EMOTICON.search(text)
        or "..." in text
        or (":" in text and _KEY.search(text))
        or ("." in text and _DOT.search(text) and _FILE.search(text))
        or _BULLET.search(text)
        or has_spoken_time(text)
        or not unknown.all_known(text)
    )


def read_text(text: str, unknown: UnknownCharacters) -> Document:
    """Return the document of a plain text, a unit a line."""
    document: Document = []
    in_fence = False
    for line in text.splitlines(keepends=True):
        checkpoint()
        content = line.rstrip("\r\n\v\f\x1c\x1d\x1e\x85\u2028\u2029")
        is_fence = _FENCE.match(content) is not None
        if is_fence or in_fence:
            in_fence ^= is_fence
            document.append(line)
            continue
        document += _line(content, unknown)
        document.append(line[len(content) :])
    return document


def read_whole(text: str, unknown: UnknownCharacters) -> Document:
    """Return the document of a text that is one unit, with all its lines."""
    return list(_cell(text, unknown))


def _line(line: str, unknown: UnknownCharacters) -> Iterator[str | Unit]:
    start = _LINE_START.match(line)
    first = start.end() if start else 0
    last = max(_end_of_words(line), first)
    yield line[:first]
    borders = _CELL_BORDER if line[:first].rstrip().endswith("|") else _TAB
    for border in borders.finditer(line, first, last):
        cell = line[first : border.start()].rstrip(_SPACE)
        yield from _cell(cell, unknown)
        yield line[first + len(cell) : border.end()]
        first = border.end()
    yield from _cell(line[first:last], unknown)
    yield line[last:]


def _end_of_words(line: str) -> int:
    """Return the position of the table border, the closing of a heading, or the white space at the end of a line."""
    words = line.rstrip(_SPACE)
    if words.endswith("|"):
        return len(words[:-1].rstrip(_SPACE))
    return len(words.rstrip("#").rstrip(_SPACE))


def _cell(text: str, unknown: UnknownCharacters) -> Iterator[str | Unit]:
    builder = UnitBuilder(unknown)
    _inline(text, builder)
    unit = builder.build()
    yield unit if unit.has_words else text


def _inline(text: str, builder: UnitBuilder) -> None:
    position = 0
    kept: list[Found] | None = None
    for match in _INLINE.finditer(text):
        if kept is None:
            kept = [found for found in find_placeholders(text, builder.unknown) if found.end - found.start > 1]
        if match.start() < position or _crosses(match, kept):
            continue
        if match.start() > position:
            _text(text[position : match.start()], builder)
        _marked(match, builder)
        position = match.end()
    if position < len(text):
        _text(text[position:], builder)


def _crosses(match: "regex.Match[str]", kept: Sequence[Found]) -> bool:
    """Return whether a marker begins or ends inside a placeholder, such as an address or a variable."""
    return any(_is_inside(position, kept) for position in match.span())


def _is_inside(position: int, kept: Sequence[Found]) -> bool:
    last = bisect_left(kept, position, key=lambda found: found.start) - 1
    return last >= 0 and position < kept[last].end


def _marked(match: "regex.Match[str]", builder: UnitBuilder) -> None:
    if match["code"]:
        builder.code(match["code"])
    elif match["label"]:
        builder.open("[", f"{match['image'] or ''}[")
        _inline(match["label"], builder)
        builder.close("[", f"]{match['target']}")
    else:
        builder.open(match["mark"], match["mark"])
        _inline(match["marked"], builder)
        builder.close(match["mark"], match["mark"])


def _text(text: str, builder: UnitBuilder) -> None:
    builder.text(text, text)
