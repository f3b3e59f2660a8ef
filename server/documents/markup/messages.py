"""Messages of programs: their lines, and the texts inside plural and select arguments of ICU MessageFormat."""

import regex

_LINE = regex.compile(r"(\r\n|\n|\r)")
_COMPLEX = regex.compile(r"\{\s*+[\w.]++\s*+,\s*+(?:plural|select|selectordinal)\s*+,")
# The selector of a text: `one {`, `=0 {`, `other {`, with `offset:1` in front.
_SELECTOR = regex.compile(r"\s*+(?:offset:\d++\s*+)?+(?:=\d++|[\w-]++)\s*+\{")
_MAX_DEPTH = 8

# Whether a part is translated, and the part; joined they are the message.
Parts = list[tuple[bool, str]]


def message_parts(text: str) -> Parts:
    """Divide a message into texts to translate and the syntax between them; line breaks are syntax.

    A plural or select argument that is not well-formed is text.
    """
    if "{" not in text:
        return _lines(text)
    parts: Parts = []
    position = 0
    for begin in _COMPLEX.finditer(text):
        if begin.start() < position:
            continue
        argument: Parts = []
        end = _argument(text, begin.start(), argument, 0)
        if end is None:
            break
        parts += _lines(text[position : begin.start()])
        parts += argument
        position = end
    return parts + _lines(text[position:])


def _lines(text: str) -> Parts:
    if "\n" not in text and "\r" not in text:
        return [(True, text)] if text else []
    return [(not index % 2, part) for index, part in enumerate(_LINE.split(text)) if part]


def _argument(text: str, begin: int, parts: Parts, depth: int) -> int | None:
    """Add the parts of a complex argument, and return its end; None if it is not well-formed."""
    opening = _COMPLEX.match(text, begin)
    if opening is None or depth > _MAX_DEPTH:
        return None
    parts.append((False, opening[0]))
    position = opening.end()
    while selector := _SELECTOR.match(text, position):
        parts.append((False, selector[0]))
        end = _submessage(text, selector.end(), parts, depth)
        if end is None:
            return None
        position = end
    closing = regex.compile(r"\s*+\}").match(text, position)
    if closing is None:
        return None
    parts.append((False, closing[0]))
    return closing.end()


def _submessage(text: str, begin: int, parts: Parts, depth: int) -> int | None:
    """Add the text of one selector up to its closing brace, and return the end of that."""
    start = position = begin
    nested = 0
    while position < len(text):
        character = text[position]
        if character == "{" and _COMPLEX.match(text, position):
            parts += _lines(text[start:position])
            end = _argument(text, position, parts, depth + 1)
            if end is None:
                return None
            start = position = end
            continue
        if character == "}" and not nested:
            parts += _lines(text[start:position])
            parts.append((False, "}"))
            return position + 1
        nested += (character == "{") - (character == "}")
        position += 1
    return None
