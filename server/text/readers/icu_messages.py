"""Messages of ICU MessageFormat: the texts inside their plural and select arguments."""

from collections.abc import Iterator

import regex

_COMPLEX = regex.compile(r"\{\s*+[\w.]++\s*+,\s*+(?:plural|select|selectordinal|(?P<choice>choice))\s*+,")
# The selector of a text: `one {`, `=0 {`, `other {`, with `offset:1` in front.
_SELECTOR = regex.compile(r"\s*+(?:offset:\d++\s*+)?+(?:=\d++|[\w-]++)\s*+\{")
# That of a choice, Java's older form of a plural: `0#`, `1<`.
_LIMIT = regex.compile(r"\s*+[-+]?[\d.∞]++\s*+[#<≤]")
_MAX_DEPTH = 8

_CLOSING = regex.compile(r"\s*+\}")

# Whether a part is translated, and the part; joined they are the message.
Parts = list[tuple[bool, str]]


def message_parts(text: str) -> Parts:
    """Divide a message into texts to translate and the syntax between them. A text without arguments is one part.

    A plural or select argument that is not well-formed is text. Braces between apostrophes are text of their branch.
    """
    parts: Parts = []
    position = 0
    for begin, end, argument in _arguments(text):
        _add_text(parts, text[position:begin])
        parts += argument
        position = end
    _add_text(parts, text[position:])
    return parts


def message_lines(text: str) -> list[str]:
    """Return the lines of a text with their ends; those that a plural or select argument runs over are one."""
    arguments = _arguments(text)
    begin, end, _ = next(arguments, (len(text), len(text), []))
    joined = list[str]()
    position = 0
    for line in text.splitlines(keepends=True):
        while end <= position < len(text):
            begin, end, _ = next(arguments, (len(text), len(text), []))
        if begin < position:
            joined[-1] += line
        else:
            joined.append(line)
        position += len(line)
    return joined


def _arguments(text: str) -> Iterator[tuple[int, int, Parts]]:
    """Yield the beginning, the end and the parts of each complex argument."""
    position = 0
    for begin in _COMPLEX.finditer(text) if "{" in text else ():
        if begin.start() < position:
            continue
        argument: Parts = []
        end = _argument(text, begin.start(), argument, 0)
        if end is None:
            return
        yield begin.start(), end, argument
        position = end


def _add_text(parts: Parts, text: str) -> None:
    if text:
        parts.append((True, text))


def _argument(text: str, begin: int, parts: Parts, depth: int) -> int | None:
    """Add the parts of a complex argument, and return its end; None if it is not well-formed."""
    opening = _COMPLEX.match(text, begin)
    if opening is None or depth > _MAX_DEPTH:
        return None
    parts.append((False, opening[0]))
    position = opening.end()
    pattern, end_marks = (_LIMIT, "|}") if opening["choice"] else (_SELECTOR, "}")
    while selector := pattern.match(text, position):
        parts.append((False, selector[0]))
        end = _submessage(text, selector.end(), parts, depth, end_marks)
        if end is None:
            return None
        if end_marks == "}" or text[end] == "|":
            parts.append((False, text[end]))
            end += 1
        position = end
    closing = _CLOSING.match(text, position)
    if closing is None:
        return None
    parts.append((False, closing[0]))
    return closing.end()


def _submessage(text: str, begin: int, parts: Parts, depth: int, end_marks: str) -> int | None:
    """Add the text of one selector up to its end mark, a closing brace or a bar, and return the position of that."""
    start = position = begin
    nested = 0
    while position < len(text):
        character = text[position]
        if character == "{" and _COMPLEX.match(text, position):
            _add_text(parts, text[start:position])
            end = _argument(text, position, parts, depth + 1)
            if end is None:
                return None
            start = position = end
            continue
        if character in end_marks and not nested:
            _add_text(parts, text[start:position])
            return position
        if character == "'":
            behind = text[position + 1 : position + 2]
            if behind == "'":
                position += 2
                continue
            if behind in ("{", "}"):  # quoted, to the next apostrophe
                position = text.find("'", position + 1) + 1 or len(text)
                continue
        nested += (character == "{") - (character == "}")
        position += 1
    return None
