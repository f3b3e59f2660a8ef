"""Java properties: the values. Keys, comments, continued lines and escapes stay unless their value changes."""

from collections.abc import Iterator
from functools import partial
from itertools import islice

import regex

from server.documents.markup.text_values import TextValue, is_text, rewrite_values

_END = r"(?:\r\n|\n|\r|\Z)"
_CONTINUED = r"\\(?:\r\n|\n|\r)[ \t\f]*+"
_SPACE = rf"(?:[ \t\f]|{_CONTINUED})*+"
# https://docs.oracle.com/javase/8/docs/api/java/util/Properties.html#load-java.io.Reader-
_ENTRY = regex.compile(
    rf"[ \t\f]*+(?:[#!][^\r\n]*+|(?P<key>(?:[^\\ \t\f\r\n=:]|{_CONTINUED}|\\[\s\S])*+){_SPACE}[=:]?+{_SPACE}"
    rf"(?P<value>(?:[^\\\r\n]++|{_CONTINUED}|\\[\s\S])*+)\\?+){_END}"
)
_ESCAPE = regex.compile(r"\\(?:u([0-9a-fA-F]{4})|(\r\n|\n|\r)[ \t\f]*+|([\s\S]))")
_ARGUMENT = regex.compile(r"\{[0-9]")
_MAX_JUDGED = 20_000  # values of a file
_NAMED = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_WRITTEN = {"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r", "\f": "\\f"}


def _values(text: str) -> Iterator[TextValue]:
    # Before Java 9 these files were Latin-1, with escapes for everything else.
    is_ascii = text.isascii()

    def write(value: str) -> str:
        escaped = "".join(_WRITTEN.get(each, each) for each in value)
        if escaped.startswith((" ", "=", ":")):  # would be a part of the separator
            escaped = "\\" + escaped
        return "".join(map(_unicode_escape, escaped)) if is_ascii else escaped

    def write_message(value: str) -> str:
        return write(value.replace("'", "''"))

    doubles = "''" in text and _doubles_apostrophes(text)
    for begin, end, value in _entries(text):
        if doubles and _ARGUMENT.search(value):
            yield TextValue(begin, end, value.replace("''", "'"), write_message)
        else:
            yield TextValue(begin, end, value, write)


def _doubles_apostrophes(text: str) -> bool:
    """Return whether the messages with arguments write an apostrophe as two, and none alone.

    Java's MessageFormat takes a lone one for the beginning of a quotation, in which arguments are text.
    """
    values = (value for _, _, value in islice(_entries(text), _MAX_JUDGED) if _ARGUMENT.search(value))
    messages = [value for value in values if "'" in value]
    return bool(messages) and not any("'" in value.replace("''", "") for value in messages)


def _entries(text: str) -> Iterator[tuple[int, int, str]]:
    """Yield the places of values that are texts, and the values."""
    position = 0
    while position < len(text):
        entry = _ENTRY.match(text, position)
        assert entry is not None  # every line is an entry, a comment or blank
        position = entry.end() if entry.end() > position else len(text)
        if entry["value"]:
            value = _unescaped(entry["value"])
            if is_text(value):
                yield *entry.span("value"), value


def _unescaped(value: str) -> str:
    text = _ESCAPE.sub(lambda escape: _escaped_character(escape), value)
    # Two escapes may be one character outside the basic plane.
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _escaped_character(escape: regex.Match[str]) -> str:
    if escape[1]:
        return chr(int(escape[1], 16))
    return "" if escape[2] else _NAMED.get(escape[3], escape[3])


def _unicode_escape(character: str) -> str:
    if character.isascii():
        return character
    units = character.encode("utf-16-be", "replace")
    return "".join(f"\\u{units[index]:02x}{units[index + 1]:02x}" for index in range(0, len(units), 2))


rewrite = partial(rewrite_values, _values)
