"""Apple .strings tables: the value of each `"key" = "value";`. Comments and keys stay."""

from collections.abc import Iterator
from functools import partial

import regex

from server.documents.markup.text_values import TextValue, is_text, rewrite_values
from server.interface.errors import InvalidDocument

_SPACE = regex.compile(r"(?:\s++|/\*(?:[^*]++|\*(?!/))*+\*/|//[^\r\n]*+)*+")
_QUOTED = r'"(?:[^"\\]++|\\[\s\S])*+"'
_KEY = regex.compile(rf"{_QUOTED}|[\w.\-/$:]++")
_VALUE = regex.compile(_QUOTED)
_ESCAPE = regex.compile(r"\\(?:[Uu]([0-9a-fA-F]{4})|([0-7]{1,3})|([\s\S]))")
_NAMED = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "f": "\f", "v": "\v"}
_WRITTEN = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\t": "\\t", "\r": "\\r"}


def _values(text: str) -> Iterator[TextValue]:
    position = _skip(text, 0)
    while position < len(text):
        key = _KEY.match(text, position)
        if key is None:
            raise _mistake(text, position, "a key")
        position = _skip(text, key.end())
        if text[position : position + 1] == ";":  # the key is its own value
            position = _skip(text, position + 1)
            continue
        if text[position : position + 1] != "=":
            raise _mistake(text, position, "`=`")
        position = _skip(text, position + 1)
        value = _VALUE.match(text, position) or _KEY.match(text, position)
        if value is None:
            raise _mistake(text, position, "a value in quotes")
        end = _skip(text, value.end())
        if text[end : end + 1] != ";":
            raise _mistake(text, end, "`;`")
        if value[0].startswith('"'):
            content = _ESCAPE.sub(_escaped_character, value[0][1:-1])
            content = content.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
            if is_text(content):
                yield TextValue(value.start(), value.end(), content, _write)
        position = _skip(text, end + 1)


def _skip(text: str, position: int) -> int:
    space = _SPACE.match(text, position)
    return space.end() if space else position


def _escaped_character(escape: regex.Match[str]) -> str:
    if escape[1]:
        return chr(int(escape[1], 16))
    return chr(int(escape[2], 8)) if escape[2] else _NAMED.get(escape[3], escape[3])


def _write(value: str) -> str:
    return '"' + "".join(_WRITTEN.get(each, each) for each in value) + '"'


def _mistake(text: str, position: int, expected: str) -> InvalidDocument:
    line = text.count("\n", 0, position) + 1
    return InvalidDocument(
        f"invalid .strings file: line {line} must have {expected}. Given: {text[position : position + 20]!r}"
    )


rewrite = partial(rewrite_values, _values)
