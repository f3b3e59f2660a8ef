"""Reader of plain text: lines become units without the markers at their beginning, and inline markers become tags.

Markers are those of Markdown, reStructuredText and everyday typing: bullets, numbers, headings, quotations, emphasis,
code, links. Line breaks that are written out, such as `\\n`, `<br />` and `||`, divide a line.
"""

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice

import regex

from server.interface.interruption import checkpoint
from server.text.readers.icu_messages import message_lines, message_parts
from server.text.readers.unit_builder import UnitBuilder
from server.text.readers.units import Document, Unit
from server.text.spans import Span, SpanKind, find_spans
from server.text.unknown_characters import UnknownCharacters

# Markers of structure, and markers of lists, which a line alone may have as part of its sentence: `24. Dezember`.
_STRUCTURE = r"[•‣▪◦]|#{1,6}|\[[ xX]\]|\.\.[ \t]+[\w:-]{1,60}?::"
_LIST = r"[-*+–—:]|\d{1,3}[.)]|\(\d{1,3}\)|[a-zA-Z]\)"
_LINE_START = regex.compile(rf"[ \t]*(?:(?:{_STRUCTURE})[ \t]+|>++(?:[ \t]+|(?=\S)))*(?:\|[ \t]*)?")
_LIST_START = regex.compile(rf"[ \t]*(?:(?:{_STRUCTURE}|{_LIST})[ \t]+|>++(?:[ \t]+|(?=\S)))*(?:\|[ \t]*)?")
# A line break that is written out: \n, \\n, \u000A, <br />, &#10;, [br], a sign; \N and %n behind a sentence.
_WRITTEN = (
    r"(?:(?<![\s\\])\\(?:r\\n|[nrt])(?!\\)|(?<!\\)\\{1,2}+(?:r\\{1,2}+n|[nrt])(?!\\|[a-z]{2})|\\u000[aAdD]"
    r"|(?i:<\s?br\s?/?\s?>|<br\s[^<>\n]{1,60}+>|\[/?br\s?/?\])|&\#(?:10|13|x0?[aAdD]);|[¶↵⏎]"
    r"|(?<=[\p{Sentence_Terminal}…][\p{Pe}\p{Pf}\"']?)(?P<certain>\\N|%n)(?=\p{Lu}|\s|\Z))"
)
_LIST_LINE = regex.compile(rf"(?:^|{_WRITTEN})[ \t>]*(?:{_LIST})[ \t]+\S", regex.MULTILINE)
_LINE_END = regex.compile(r"(?<![ \t])[ \t]*+\|\Z|[ \t]#+\Z|(?<=\w):(?=:\Z)")
_LINE_ENDS = ("|", "#", ":")  # of a line with one
_SPACE = " \t"
_CELL_BORDER = regex.compile(r"\|[ \t]*")
# White space around a mark stands between the parts. Four blanks and more are between columns.
_BREAK = regex.compile(rf"(?<![ \t])(?: {{4,}}+[ \t]*+|[ \t]*+(?:{_WRITTEN}|\|{{1,4}})+[ \t]*)|\t[ \t]*")
_LINE_BREAK = regex.compile(_WRITTEN)
_MAY_BREAK = re.compile(r"[\\<|\t¶↵⏎]|\[/?[bB]|&#|%n|    ")
_FENCE = regex.compile(r"[ \t]*(?:```|~~~)")
# One line that begins with a word and has no sign of markup: most texts of most requests.
_WORDS_ONLY = re.compile(
    r"[^\W\d_](?!\)|[^\n]*(?:%n| {4}))"
    r"[^\t\n\r\v\f\x1c-\x1e\x85\u2028\u2029|\\<`\[{*_~&¶↵⏎]*(?<![\s:#\u00a0\u202f\u3000])"
)
_INLINE = regex.compile(
    r"(?P<image>!)?\[(?!/|\w++=)(?P<label>[^\[\]\n]+)\](?P<target>\((?:[^()\s]|\([^()\s]*\))*(?:\s\"[^\"\n]*\")?\)|\[[^\[\]\n]*\])"
    r"|(?<![\w*_~\\])(?P<mark>\*{1,3}|_{1,3}|~~)(?=[^\s*_~])(?P<marked>(?:(?!(?P=mark)).)+?)(?<=[^\s*_~\\])(?P=mark)(?![\w*~])"
)
# Of a message of Java or ICU, in which a single apostrophe quotes.
_DOUBLED = regex.compile(r"^(?!.*(?<!')'(?:'')*+[{}]).*(?<=\p{L})''(?=\p{L})", regex.DOTALL)
_MAX_LABEL = 60
# In front of a word, or inside one where no name of a variable has it: `E_xit`, `Sa&ve`.
_ACCESS_KEY = regex.compile(
    r"(?<![\w&])[&_](?=\p{L}\p{M}*+(?:[^\p{Lu}]|\Z))|(?<=(?<!\w)\p{Lu}(?:\p{Ll}{0,9}(?=&))?)[&_](?=\p{Ll}{2})"
)
_MAY_BE_MARKED = regex.compile(r"[\[*_~]")


def read_text(text: str, unknown: UnknownCharacters) -> Document:
    """Return the document of a plain text, a unit a line."""
    if _WORDS_ONLY.fullmatch(text):
        builder = UnitBuilder(unknown)
        builder.text(text, text)
        return [builder.build()]
    document: Document = []
    in_fence = False
    start = _LIST_START if _is_list(text) else _LINE_START
    for line in message_lines(text):
        checkpoint()
        content = line.rstrip("\r\n\v\f\x1c\x1d\x1e\x85\u2028\u2029")
        is_fence = _FENCE.match(content) is not None
        if is_fence or in_fence:
            in_fence ^= is_fence
            document.append(line)
            continue
        document += _message(content, start, unknown)
        document.append(line[len(content) :])
    return document


def read_whole(text: str, unknown: UnknownCharacters) -> Document:
    """Return the document of a text that is one unit, with all its lines."""
    return [
        unit for is_text, part in message_parts(text) for unit in (_cell(part, unknown) if is_text else iter((part,)))
    ]


def _is_list(text: str) -> bool:
    """Return whether two lines have markers of a list."""
    if "\n" not in text and (_MAY_BREAK.search(text) is None or _LINE_BREAK.search(text) is None):
        return False
    return len(list(islice(_LIST_LINE.finditer(text), 2))) > 1


def _message(text: str, start: "regex.Pattern[str]", unknown: UnknownCharacters) -> Iterator[str | Unit]:
    """Yield a line; that of an ICU message has the lines in its branches as lines of their own."""
    for index, (is_text, part) in enumerate(message_parts(text)):
        for line in part.splitlines(keepends=True) if is_text else ():
            words = line.rstrip()
            yield from _line(words, _LINE_START if index else start, unknown)
            yield line[len(words) :]
        if not is_text:
            yield part


def _line(line: str, start: "regex.Pattern[str]", unknown: UnknownCharacters) -> Iterator[str | Unit]:
    match = start.match(line)
    first = match.end() if match else 0
    last = max(_end_of_words(line), first)
    yield line[:first]
    is_row = line[:first].rstrip().endswith("|")
    if is_row or (_MAY_BREAK.search(line, first, last) and _BREAK.search(line, first, last)):
        spans = [each for each in find_spans(line, unknown) if each.kind is not SpanKind.SYMBOL]
        paths = [each for each in spans if _BREAK.fullmatch(line, each.start, each.end) is None]  # <br> is none
        for border in (_CELL_BORDER if is_row else _BREAK).finditer(line, first, last):
            is_certain = not is_row and border["certain"] is not None  # a span that goes on behind it is none
            is_in_span = _is_inside(border.start() + 1, paths) or _ends_with(border.start(), paths)
            if border.start() < first or (is_in_span and not is_certain):
                continue
            cell = line[first : border.start()].rstrip(_SPACE)
            yield from _cell(cell, unknown)
            yield line[first + len(cell) : border.end()]
            first = border.end()
            if not is_row and _LINE_BREAK.search(border[0]) and (marker := start.match(line, first, last)) is not None:
                yield marker[0]
                first = marker.end()
    yield from _cell(line[first:last], unknown)
    yield line[last:]


def _end_of_words(line: str) -> int:
    """Return the position of the table border, the closing of a heading, or the white space at the end of a line."""
    words = line.rstrip(_SPACE)
    end = _LINE_END.search(words) if words.endswith(_LINE_ENDS) else None
    return len(words) if end is None else len(words[: end.start()].rstrip(_SPACE))


def _cell(text: str, unknown: UnknownCharacters) -> Iterator[str | Unit]:
    source, has_doubled = text, "''" in text and _DOUBLED.search(text) is not None
    builder = UnitBuilder(unknown, _with_doubled_apostrophes if has_doubled else str)
    if has_doubled:
        text = text.replace("''", "'")
    key = _access_key(text, unknown)
    if key is None:
        _inline(text, builder)
    else:
        builder.text(text[:key], text[:key])
        builder.mark(text[key])
        builder.text(text[key + 1 :], text[key + 1 :])
    unit = builder.build()
    if not unit.has_words:
        yield source
    else:
        yield replace(unit, raw=source) if has_doubled else unit


def _with_doubled_apostrophes(text: str) -> str:
    return text.replace("'", "''")


def _access_key(text: str, unknown: UnknownCharacters) -> int | None:
    """Return the place of the one mark of an access key in the text of a menu or a button: `Open _File`, `&Save`."""
    if len(text) > _MAX_LABEL or not ("&" in text or "_" in text):
        return None
    found = [match.start() for match in _ACCESS_KEY.finditer(text)]
    if len(found) != 1 or text.count(text[found[0]]) != 1:
        return None
    is_apart = all(not span.start <= found[0] < span.end for span in find_spans(text, unknown))
    return found[0] if is_apart else None


def _inline(text: str, builder: UnitBuilder) -> None:
    position = 0
    if _MAY_BE_MARKED.search(text):
        kept = [span for span in find_spans(text, builder.unknown) if span.end - span.start > 1]
        for match in _INLINE.finditer(text):
            if match.start() < position or _crosses(match, kept):
                continue
            if match.start() > position:
                builder.text(text[position : match.start()], text[position : match.start()])
            _marked(match, builder)
            position = match.end()
    if position < len(text):
        builder.text(text[position:], text[position:])


def _crosses(match: "regex.Match[str]", kept: Sequence[Span]) -> bool:
    """Return whether a marker begins or ends inside a span, such as an address or a variable, or is one itself."""
    return any(_is_inside(position, kept) for position in match.span()) or any(
        (each.start, each.end) == match.span() and each.kind is not SpanKind.UNKNOWN for each in kept
    )


def _is_inside(position: int, kept: Sequence[Span]) -> bool:
    last = bisect_left(kept, position, key=lambda found: found.start) - 1
    return last >= 0 and position < kept[last].end


def _ends_with(position: int, kept: Sequence[Span]) -> bool:
    """Return whether the character at this position is the last one of a span: `%|2$d|`."""
    last = bisect_left(kept, position, key=lambda found: found.start) - 1
    return last >= 0 and kept[last].end == position + 1


def _marked(match: "regex.Match[str]", builder: UnitBuilder) -> None:
    if match["label"]:
        builder.open("[", f"{match['image'] or ''}[")
        _inline(match["label"], builder)
        builder.close("[", f"]{match['target']}")
    else:
        builder.open(match["mark"], match["mark"])
        _inline(match["marked"], builder)
        builder.close(match["mark"], match["mark"])
