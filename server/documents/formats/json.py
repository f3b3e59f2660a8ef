"""JSON: the texts among the values. Keys, numbers and all white space stay as they are written.

So do values that describe others: `"@greeting"` beside `"greeting"` and keys such as `"@@author"`, as in ARB.
"""

import json
import math
from collections.abc import Iterator
from functools import partial

import regex

from server.documents.markup.text_values import TextValue, is_for_programs, is_text, rewrite_values
from server.interface.errors import InvalidDocument

# Possessive, so that every character is read once. In a well-formed document every quote begins or ends a string.
_TOKEN = regex.compile(r'"(?:[^"\\]++|\\.)*+"(?P<key>\s*+:)?+|[{}]')
# Of a character that JSON could contain as it is; not a quotation mark, a backslash or half of an emoji.
_ESCAPE = regex.compile(r"(?<!\\)(?:\\\\)*+\K\\u(?!0022|005[cC]|00[01]|[dD][89a-fA-F])([0-9a-fA-F]{4})")


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
    # The file's own way to write letters outside ASCII, and signs such as `<`, which would be tags in a page.
    is_ascii = text.isascii() and "\\u" in text

    escapes = {int(escape[1], 16): escape[0] for escape in _ESCAPE.finditer(text)}

    def write(value: str) -> str:
        return json.dumps(value, ensure_ascii=is_ascii).translate(escapes)

    def write_with_slashes(value: str) -> str:  # in a script of a page, `</script>` would end it
        return write(value).replace("/", "\\/")

    keys = {_key(token) for token in _TOKEN.finditer(text) if token["key"] is not None}
    key, depth, depth_of_description = "", 0, math.inf
    for token in _TOKEN.finditer(text):
        if token["key"] is not None:
            key = _key(token)
            if depth <= depth_of_description:
                depth_of_description = (
                    depth if key.startswith("@@") or (key.startswith("@") and key[1:] in keys) else math.inf
                )
        elif token[0] == "{":
            depth += 1
        elif token[0] == "}":
            depth -= 1
            if depth < depth_of_description:
                depth_of_description = math.inf
        elif depth < depth_of_description:
            value = json.loads(token[0])
            if is_text(value) and not is_for_programs(key, value):
                yield TextValue(token.start(), token.end(), value, write_with_slashes if "\\/" in token[0] else write)


def _key(token: "regex.Match[str]") -> str:
    key: str = json.loads(token[0][: -len(token["key"])])
    return key


rewrite = partial(rewrite_values, _values)
