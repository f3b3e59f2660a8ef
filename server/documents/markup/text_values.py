"""Texts inside a file of data: each value is replaced where it is written, and all other characters stay."""

import re
from collections.abc import Callable, Generator, Iterable, Iterator
from dataclasses import dataclass
from typing import BinaryIO

from server.documents.fragment import Fragment, Rewrite, as_window, next_window
from server.documents.input.encoding import read_text
from server.documents.input.limits import Density, FileLimits
from server.text.readers.icu_messages import Parts, message_parts

_WINDOW_VALUES = 2000
# Values, and lines of them with a letter: 5 to 10 us each. Of real files, a list of words in JSON has one in 18.
_VALUES = Density(20_000, 16)
# One word that is a name for programs: has_underscores, camelCase, paths, addresses, colours, codes with digits.
_NAME = re.compile(
    r"(?:\S*[_\\/@#:=<>\[\]$&|~]\S*|\S*[^\W\d_][0-9]\S*|\S*[0-9][^\W\d_]\S*|[a-z]+[A-Z]\w*|\w+\.\w[\w.]*"
    r"|[a-z]{2,3}-[A-Z][\w-]*|true|false|null|none)"
)
_SUFFIXES = ("...", ":")
_LINE_END = re.compile(r"(\r\n|\n|\r)")
# Keys of commands, and of values that are names for programs if they are one word.
_COMMAND_KEYS = frozenset(("run", "script", "command", "entrypoint", "cmd", "schema"))
_NAME_KEYS = frozenset(
    (
        "lang", "language", "locale", "id", "uuid", "guid", "url", "uri", "href", "src", "type", "version", "image",
        "uses", "path", "file", "class", "style", "format", "encoding", "ref", "context", "key", "icon", "color",
        "colour", "email", "date", "slug", "permalink", "layout",
    )
)  # fmt: skip
# Keys of tags of languages: sourceLanguage, default_locale.
_LANGUAGE_KEY = re.compile(r"(?:.*[^A-Za-z]|.*[a-z](?=[A-Z]))?(?i:lang|language|locale|culture)")
_LANGUAGE_TAG = re.compile(r"[a-z]{2,3}(?:[-_][A-Za-z0-9]{2,8}){0,2}")


@dataclass(frozen=True, slots=True)
class TextValue:
    """A value from `begin` to `end` of a file, its text, and the function that writes another text in its place."""

    begin: int
    end: int
    text: str
    write: Callable[[str], str]


def is_text(value: str) -> bool:
    """Return whether a value is for readers: it has a letter, and is not a single word with the form of a name."""
    word = value.strip()
    if not any(map(str.isalpha, word)):
        return False
    for suffix in _SUFFIXES:
        word = word.removesuffix(suffix)
    return any(map(str.isspace, word)) or _NAME.fullmatch(word) is None or _is_tagged(word)


def is_for_programs(key: str, value: str) -> bool:
    """Return whether the key states that its value is for programs. A value that repeats its key is a label."""
    name, word = key.lower().lstrip("@$"), value.strip()  # $ and @: of metadata
    if _LANGUAGE_KEY.fullmatch(key) and _LANGUAGE_TAG.fullmatch(word):
        return True
    is_name = name in _NAME_KEYS and word.lower() != name and not any(map(str.isspace, word))
    return is_name or name in _COMMAND_KEYS


def _is_tagged(word: str) -> bool:
    return word.startswith("<") and "</" in word


def rewrite_values(
    values: Callable[[str], Iterable[TextValue]],
    source: BinaryIO,
    sink: BinaryIO | None,
    limits: FileLimits,
    encoding: str | None = None,
) -> Rewrite:
    """Rewrite the values of a text file; `values` finds them, in their order, or raises `InvalidDocument`."""
    text, found = read_text(source, limits, encoding)
    written = yield from rewritten_values(text, values(text), limits)
    if sink is not None:
        sink.write(found.encode(written))


def rewritten_values(
    text: str, values: Iterable[TextValue], limits: FileLimits
) -> Generator[list[Fragment], list[Fragment], str]:
    """Yield the lines of all values as fragments, receive their translations, and return the file with them.

    `values` must be in the order of the file.
    """
    written: list[str] = []
    position = 0
    remaining = _VALUES.bounded(values, len(text), "texts")
    num_lines = 0
    is_held = limits.holds(len(text))
    while window := next_window(remaining, _WINDOW_VALUES, is_held=is_held):
        parts = [list(_lines(message_parts(value.text))) for value in window]
        places = [
            (index, number)
            for index, its_parts in enumerate(parts)
            for number, (is_translated, part) in enumerate(its_parts)
            if is_translated and any(map(str.isalpha, part))
        ]
        num_lines += len(places)
        _VALUES.check(num_lines, len(text), "lines of texts")
        fragments: list[Fragment] = [(parts[index][number][1].strip(),) for index, number in places]
        translations = (yield as_window(fragments, is_held=is_held)) if fragments else []
        for (index, number), translation in zip(places, translations, strict=True):
            part = parts[index][number][1]
            start = part.index(part.strip())
            new = part[:start] + "".join(map(str, translation)) + part[start + len(part.strip()) :]
            parts[index][number] = (True, new)
        for value, its_parts in zip(window, parts, strict=True):
            new = "".join(part for _, part in its_parts)
            if new != value.text:
                written += [text[position : value.begin], value.write(new)]
                position = value.end
    written.append(text[position:])
    return "".join(written)


def _lines(parts: Parts) -> Iterator[tuple[bool, str]]:
    """Yield the parts of a message with its line ends as parts that are not translated."""
    for is_text, part in parts:
        for index, line in enumerate(_LINE_END.split(part) if is_text else (part,)):
            if line:
                yield is_text and not index % 2, line
