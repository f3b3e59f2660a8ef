"""JSON: the texts among the values. Keys, numbers and all white space stay as they are written."""

import json
from collections.abc import Iterator
from functools import partial

import regex

from server.documents.markup.text_values import TextValue, is_for_programs, is_text, rewrite_values
from server.interface.errors import InvalidDocument

# Possessive, so that every character is read once. In a well-formed document every quote begins or ends a string.
_STRING = regex.compile(r'"(?:[^"\\]++|\\.)*+"(?P<key>\s*+:)?+')


def _check(text: str) -> None:
    try:
        json.loads(text)
    except ValueError as error:
        raise InvalidDocument(f"invalid JSON: {error}") from error
    except RecursionError as error:
        raise InvalidDocument("the values of a JSON file may be nested about 1000 deep. Given: deeper") from error


def _values(text: str) -> Iterator[TextValue]:
    if text and not text.isspace():
        _check(text)
    # The file's own way to write letters outside ASCII.
    is_ascii = text.isascii() and "\\u" in text

    def write(value: str) -> str:
        return json.dumps(value, ensure_ascii=is_ascii)

    def write_with_slashes(value: str) -> str:  # in a script of a page, `</script>` would end it
        return write(value).replace("/", "\\/")

    key = ""
    for string in _STRING.finditer(text):
        if string["key"] is not None:
            key = json.loads(string[0][: -len(string["key"])])
            continue
        value = json.loads(string[0])
        if is_text(value) and not is_for_programs(key, value):
            yield TextValue(string.start(), string.end(), value, write_with_slashes if "\\/" in string[0] else write)


rewrite = partial(rewrite_values, _values)
